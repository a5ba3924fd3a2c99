r"""Signed notes and keys: c2sp.org/signed-note v1.0.0, and cosignatures of a witness over them.

    <text, ending in a newline>
    <an empty line; the text itself may have others, the last one counts>
    — <key name> <base64(key ID || signature)>        one line a signature, at most 100

UTF-8, no control character but the newline. A key name is not empty and has no space and no `+`.

    verifier key    <name>+<key ID, 8 hex>+<base64(type || public key)>
    signing key     PRIVATE+KEY+<name>+<key ID, 8 hex>+<base64(0x01 || secret)>
    key ID          first 4 bytes of SHA-256(name || 0x0A || type || public key)

Type 0x01 signs the text. Type 0x04 is a cosignature: 8 bytes of big-endian POSIX seconds and then
an Ed25519 signature of `cosignature/v1\ntime <seconds>\n` and the text; it says that the witness
had seen no larger log by then. No other type is read. A printed key ID that is not the computed one
is refused, and so is base64 that does not encode back to itself.

    >>> key = parse_signing_key(
    ...     "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz")
    >>> note = sign_note("hello\n", [key])
    >>> print(note.decode().split("\n")[2][:28])
    — PeterNeumann x08go1b7TyKgx
    >>> check_note(parse_note(note), [key.verifier]).text
    'hello\n'

Nothing in an `UnverifiedNote` is to be believed; `check_note` makes a `Note` of it, or raises:
`CannotVerify` where no known key signed it, `IntegrityViolation` where a known key did not.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple

from affidavit.core import ed25519
from affidavit.core.canonical import decode_utf8, encode_utf8
from affidavit.errors import CannotVerify, InputError, IntegrityViolation

NOTE_BYTES_MAX: Final = 1_000_000
SIGNATURES_MAX: Final = 100
ED25519: Final = 0x01
COSIGNATURE: Final = 0x04

_ID_BYTES: Final = 4
_TIME_BYTES: Final = 8
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
_NAME = re.compile(r"[^\s+]+\Z")
_LINE = re.compile(r"— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})\Z")
_KEY = re.compile(r"([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})\Z")
_PRIVATE: Final = "PRIVATE+KEY+"


class VerifierKey(NamedTuple):
    """Who may sign, and how: a public key under a name."""

    name: str
    type: int
    public: bytes

    @property
    def id(self) -> bytes:
        """The four bytes that signature lines carry."""
        head = encode_utf8(self.name, "key") + bytes((0x0A, self.type))
        return sha256(head + self.public).digest()[:_ID_BYTES]

    def __str__(self) -> str:
        raw = bytes((self.type,)) + self.public
        return f"{self.name}+{self.id.hex()}+{encode_base64(raw)}"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """What signs under a name; printing it shows no secret."""

    name: str
    secret: bytes = field(repr=False)

    @property
    def verifier(self) -> VerifierKey:
        """What others check its signatures with."""
        return VerifierKey(self.name, ED25519, ed25519.public_key(self.secret))

    def encode(self) -> str:
        """The secret text of the key."""
        raw = encode_base64(bytes((ED25519,)) + self.secret)
        return f"{_PRIVATE}{self.name}+{self.verifier.id.hex()}+{raw}"


class UnverifiedSignature(NamedTuple):
    """A signature line as it is written; nobody has checked it."""

    name: str
    key_id: bytes
    value: bytes

    def __str__(self) -> str:
        return f"— {self.name} {encode_base64(self.key_id + self.value)}\n"


class Signature(NamedTuple):
    """A signature that was checked; `time_s` is when a witness says it was made."""

    key: VerifierKey
    time_s: int | None


class UnverifiedNote(NamedTuple):
    """A note as it is written."""

    text: str
    signatures: tuple[UnverifiedSignature, ...]

    def encode(self) -> bytes:
        """The bytes it was read from."""
        return f"{self.text}\n{''.join(map(str, self.signatures))}".encode()


class Note(NamedTuple):
    """A text, those who are known to have signed it, and lines of keys that are not known."""

    text: str
    signatures: tuple[Signature, ...]
    others: tuple[UnverifiedSignature, ...]


def encode_base64(data: bytes) -> str:
    """RFC 4648 section 4, padded."""
    return b64encode(data).decode()


def decode_base64(text: str, what: str) -> bytes:
    """The bytes of base64 that is spelled in the one right way."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:  # characters, padding; also text that is not ASCII
        data = b""
    if not data or encode_base64(data) != text:
        raise _malformed(what, "has base64 that does not encode back to itself")
    return data


def is_key_name(name: str) -> bool:
    """Whether keys, and so logs, may have this name."""
    return _NAME.match(name) is not None and _CONTROL.search(name) is None


def parse_verifier_key(text: str) -> VerifierKey:
    """Read a verifier key, of a log (0x01) or of a witness (0x04)."""
    name, key_id, raw = _split_key(text, "verifier key")
    key = VerifierKey(name, raw[0], raw[1:])
    if key.type not in (ED25519, COSIGNATURE) or len(key.public) != ed25519.KEY_BYTES:
        raise _malformed("verifier key", f"is of type 0x{key.type:02x}; 0x01 and 0x04 are read")
    _check_id(key, key_id)
    return key


def is_log_key(value: object) -> bool:
    """Whether this is the verifier key of a log, as text."""
    try:
        return isinstance(value, str) and parse_verifier_key(value).type == ED25519
    except InputError:
        return False


def parse_signing_key(text: str) -> SigningKey:
    """Read a signing key; a refusal does not show it."""
    if not text.startswith(_PRIVATE):
        raise _malformed("signing key", "does not begin as one does")
    name, key_id, raw = _split_key(text.removeprefix(_PRIVATE), "signing key")
    if raw[0] != ED25519 or len(raw) != 1 + ed25519.KEY_BYTES:
        raise _malformed("signing key", "is not an Ed25519 key")
    key = SigningKey(name, raw[1:])
    _check_id(key.verifier, key_id)
    return key


def _split_key(text: str, what: str) -> tuple[str, str, bytes]:
    match = _KEY.match(text)
    if match is None or not is_key_name(match[1]):
        raise _malformed(what, "is not <name>+<8 hex>+<base64>")
    return match[1], match[2], decode_base64(match[3], what)


def _check_id(key: VerifierKey, printed: str) -> None:
    if key.id.hex() != printed:
        raise _malformed(f"key {key.name}", f"prints the ID {printed}, but has {key.id.hex()}")


def sign_note(text: str, keys: Sequence[SigningKey]) -> bytes:
    """The note with a signature by each of these keys, in this order."""
    message = encode_utf8(text, "note")
    if not text.endswith("\n") or _CONTROL.search(text) or not keys:
        raise _malformed("note", "needs a text that ends in a newline, and a key")
    lines = tuple(
        UnverifiedSignature(key.name, key.verifier.id, ed25519.sign(key.secret, message))
        for key in keys
    )
    return UnverifiedNote(text, lines).encode()


def parse_note(data: bytes) -> UnverifiedNote:
    """Read a note strictly; what is read encodes back to the same bytes."""
    if len(data) > NOTE_BYTES_MAX:
        raise _malformed("note", f"has more than {NOTE_BYTES_MAX:,} bytes")
    whole = decode_utf8(data, "note")
    if _CONTROL.search(whole):
        raise _malformed("note", "has a control character")
    text, blank, lines = whole.rpartition("\n\n")
    if not blank or not lines.endswith("\n"):
        raise _malformed("note", "has no empty line with signature lines after it")
    signatures = [_parse_line(line) for line in lines[:-1].split("\n")]
    if len(signatures) > SIGNATURES_MAX:
        raise _malformed("note", f"has more than {SIGNATURES_MAX} signatures")
    return UnverifiedNote(f"{text}\n", tuple(signatures))


def _parse_line(line: str) -> UnverifiedSignature:
    match = _LINE.match(line)
    raw = decode_base64(match[2], "signature line") if match else b""
    if match is None or len(raw) <= _ID_BYTES:
        raise _malformed("note", "has a signature line that is not `— <name> <base64>`")
    return UnverifiedSignature(match[1], raw[:_ID_BYTES], raw[_ID_BYTES:])


def check_note(note: UnverifiedNote, keys: Sequence[VerifierKey]) -> Note:
    """Believe a note that at least one of these keys signed; what any of them did not is false."""
    known = {(key.name, key.id): key for key in keys}
    if len(known) != len(keys):
        raise InputError("keys: one of them is given twice", field="keys")
    checked, others = [], []
    for line in note.signatures:
        key = known.get((line.name, line.key_id))
        if key is None:
            others.append(line)
        else:
            checked.append(_check_line(note.text, line, key))
    if not checked:
        signers = ", ".join(f"{line.name}+{line.key_id.hex()}" for line in note.signatures)
        raise CannotVerify(
            f"none of the known keys signed the note; {signers[:500]} did, or say so",
            hint="Give the verifier key of who should have signed it.",
        )
    return Note(note.text, tuple(checked), tuple(others))


def _check_line(text: str, line: UnverifiedSignature, key: VerifierKey) -> Signature:
    value, message, time_s = line.value, text, None
    if key.type == COSIGNATURE:
        time_s, value = int.from_bytes(value[:_TIME_BYTES], "big"), value[_TIME_BYTES:]
        message = f"cosignature/v1\ntime {time_s}\n{text}"
    if (time_s or 0) >= 2**63 or not ed25519.is_signature(key.public, value, message.encode()):
        raise IntegrityViolation(
            f"the signature of {key.name} does not fit the note", key=str(key), note=text[:2000]
        )
    return Signature(key, time_s)


def _malformed(what: str, message: str) -> InputError:
    return InputError(f"{what}: {message}", field=what)
