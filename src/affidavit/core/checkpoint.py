r"""Checkpoints: a signed note that says how large a log is and what its root is.

c2sp.org/tlog-checkpoint v1.0.0, without extension lines:

    <origin>\n<size, decimal>\n<base64 of the root>\n

The origin is the log's name and the name of the keys that sign for it.

    >>> head = decode_tree_head("a.example\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")
    >>> head.origin, head.size, head.root.hex()[:8]
    ('a.example', 0, 'e3b0c442')

What an `UnverifiedCheckpoint` claims is not to be believed; `check_checkpoint` makes a `Checkpoint`
of it. `check_cosignatures` then tells which witnesses had seen it, and when.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from affidavit.core.merkle import Digest
from affidavit.core.note import (
    COSIGNATURE,
    ED25519,
    Signature,
    SigningKey,
    UnverifiedNote,
    VerifierKey,
    check_note,
    decode_base64,
    encode_base64,
    parse_note,
    sign_note,
)
from affidavit.errors import CannotVerify, InputError

SIZE_MAX: Final = 2**63 - 1
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,18})\Z", re.ASCII)
_DIGEST_BYTES: Final = 32


class TreeHead(NamedTuple):
    """Which log, how many entries, and the root over them."""

    origin: str
    size: int
    root: Digest


class UnverifiedCheckpoint(NamedTuple):
    """A checkpoint as it is written: claims, and lines that may be signatures."""

    claims: TreeHead
    note: UnverifiedNote


class Checkpoint(NamedTuple):
    """A tree head that the log is known to have signed, with the note that shows it."""

    head: TreeHead
    note: UnverifiedNote


def encode_tree_head(head: TreeHead) -> str:
    """The text that is signed."""
    return f"{head.origin}\n{head.size}\n{encode_base64(head.root)}\n"


def decode_tree_head(text: str) -> TreeHead:
    """Read the text of a checkpoint strictly: three lines, and no extension lines."""
    lines = text.split("\n")
    if len(lines) != 4 or lines[3] or not lines[0]:
        raise InputError("checkpoint: the text is not origin, size and root", field="checkpoint")
    root = decode_base64(lines[2], "checkpoint")
    if len(root) != _DIGEST_BYTES:
        raise InputError(f"checkpoint: a root of {len(root)} bytes", field="checkpoint")
    return TreeHead(lines[0], decode_number(lines[1], "checkpoint"), Digest(root))


def decode_number(text: str, what: str) -> int:
    """A size or an index: ASCII decimal without leading zeros, below 2^63."""
    number = int(text) if _NUMBER.match(text) else SIZE_MAX + 1
    if number > SIZE_MAX:
        raise InputError(f"{what}: {text!r:.40} is not a number below 2^63", field=what)
    return number


def sign_checkpoint(head: TreeHead, keys: Sequence[SigningKey]) -> bytes:
    """The note by which the log commits itself; only keys of its name may sign."""
    if any(key.name != head.origin for key in keys):
        raise InputError(f"keys: not all are of {head.origin}", field="keys")
    return sign_note(encode_tree_head(head), keys)


def parse_checkpoint(data: bytes) -> UnverifiedCheckpoint:
    """Read a checkpoint without believing it."""
    note = parse_note(data)
    return UnverifiedCheckpoint(decode_tree_head(note.text), note)


def check_checkpoint(found: UnverifiedCheckpoint, log_keys: Sequence[VerifierKey]) -> Checkpoint:
    """Believe a checkpoint that a key of the log signed; other keys count for nothing here."""
    own = [key for key in log_keys if key.type == ED25519 and key.name == found.claims.origin]
    if not own:
        raise CannotVerify(
            f"no key of {found.claims.origin!r:.200} is known",
            hint="Give the log's verifier key.",
        )
    check_note(found.note, own)
    return Checkpoint(found.claims, found.note)


def check_cosignatures(
    found: UnverifiedCheckpoint | Checkpoint, witness_keys: Sequence[VerifierKey]
) -> tuple[Signature, ...]:
    """Which of these witnesses cosigned, each line with its time; none is no error."""
    wanted = {(key.name, key.id) for key in witness_keys}
    lines = tuple(one for one in found.note.signatures if (one.name, one.key_id) in wanted)
    if any(key.type != COSIGNATURE for key in witness_keys):
        raise InputError("keys: not all are keys of witnesses (type 0x04)", field="keys")
    if not lines:
        return ()
    return check_note(found.note._replace(signatures=lines), witness_keys).signatures
