r"""Proof that a log signed two histories, in one file that anybody can check alone.

    {"kind":"fork","notes":[<older>,<newer>],"prefix_root":"<hex>","proof":["<hex>",...],"v":1}

Both notes are of one origin; the older is not larger. `prefix_root` is the root that the newer
tree has at the older one's size: the consistency proof shows it, as for two honest checkpoints, and
yet the older note says another. No log that only grows can sign both. For notes of one size the
proof is empty and `prefix_root` is the newer root.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from affidavit.core.canonical import canonicalize_value, decode_utf8, parse_json
from affidavit.core.checkpoint import UnverifiedCheckpoint, parse_checkpoint
from affidavit.core.merkle import Digest, check_consistency
from affidavit.core.names import is_digest
from affidavit.errors import InputError, IntegrityViolation

_KEYS: Final = {"kind", "notes", "prefix_root", "proof", "v"}
_HASHES_MAX: Final = 64
MISBEHAVIOUR_BYTES_MAX: Final = 4_000_000


class Fork(NamedTuple):
    """Two notes of one log that cannot both be of one history, and what shows it."""

    older: UnverifiedCheckpoint
    newer: UnverifiedCheckpoint
    prefix_root: Digest
    proof: tuple[Digest, ...]


def encode_fork(fork: Fork) -> bytes:
    """The bytes of the file."""
    value = {
        "kind": "fork",
        "notes": [one.note.encode().decode() for one in (fork.older, fork.newer)],
        "prefix_root": fork.prefix_root.hex(),
        "proof": [digest.hex() for digest in fork.proof],
        "v": 1,
    }
    return canonicalize_value(value).encode() + b"\n"


def decode_fork(data: bytes) -> Fork:
    """Read the file strictly, without believing it."""
    text = decode_utf8(data[: MISBEHAVIOUR_BYTES_MAX + 1], "fork")
    value = parse_json(text, "fork")
    if len(data) > MISBEHAVIOUR_BYTES_MAX or canonicalize_value(value) + "\n" != text:
        raise _malformed("is not RFC 8785 text with a newline, or too large")
    if not isinstance(value, dict) or value.keys() != _KEYS or value["kind"] != "fork":
        raise _malformed("is not a proof of a fork")
    notes, proof = value["notes"], value["proof"]
    if not isinstance(notes, list) or len(notes) != 2 or not all(isinstance(n, str) for n in notes):
        raise _malformed("has not two notes")
    if not isinstance(proof, list) or len(proof) > _HASHES_MAX or not all(map(is_digest, proof)):
        raise _malformed("has a proof that is not of hashes")
    if type(value["v"]) is not int or value["v"] != 1 or not is_digest(value["prefix_root"]):
        raise _malformed("is of another version, or its prefix_root is no hash")
    older, newer = (parse_checkpoint(note.encode()) for note in notes)
    return Fork(older, newer, _digest(value["prefix_root"]), tuple(map(_digest, proof)))


def check_fork(fork: Fork) -> None:
    """That these two notes cannot both be honest; who signed them is not asked here."""
    older, newer = fork.older.claims, fork.newer.claims
    if older.origin != newer.origin:
        raise IntegrityViolation("the notes are of two logs")
    if fork.prefix_root == older.root:
        raise IntegrityViolation("the newer log begins as the older note says")
    check_consistency(older.size, newer.size, fork.prefix_root, newer.root, fork.proof)


def find_fork(
    older: UnverifiedCheckpoint,
    newer: UnverifiedCheckpoint,
    prefix_root: Digest | None = None,
    proof: Sequence[Digest] = (),
) -> Fork | None:
    """The proof that two notes are of two histories, where these show it."""
    fork = Fork(older, newer, prefix_root or newer.claims.root, tuple(proof))
    try:
        check_fork(fork)
    except IntegrityViolation:
        return None
    return fork


def _digest(text: str) -> Digest:
    return Digest(bytes.fromhex(text))


def _malformed(message: str) -> InputError:
    return InputError(f"fork: {message}", field="fork")
