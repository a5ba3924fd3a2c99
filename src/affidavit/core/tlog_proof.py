r"""Proofs that an entry is in a log, in one text: c2sp.org/tlog-proof@v1.

c2sp.org/tlog-proof@v1
extra <base64>                  optional; nobody signed it
index <decimal>
<base64 of a hash>              the audit path, from the leaf's sibling upwards
<empty line>
<a checkpoint, as it is>

>>> proof = TlogProof(0, (), b"the checkpoint\n")
>>> encode_proof(proof)
b'c2sp.org/tlog-proof@v1\nindex 0\n\nthe checkpoint\n'
>>> decode_proof(encode_proof(proof)) == proof
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from affidavit.core.canonical import decode_utf8
from affidavit.core.checkpoint import Checkpoint, check_checkpoint, decode_number, parse_checkpoint
from affidavit.core.merkle import Digest, check_inclusion, leaf_hash
from affidavit.core.note import NOTE_BYTES_MAX, VerifierKey, decode_base64, encode_base64
from affidavit.errors import InputError

_HEADER: Final = "c2sp.org/tlog-proof@v1"
# A log of 2^63 entries has no longer path.
_HASHES_MAX: Final = 63


class TlogProof(NamedTuple):
    """A proof as it is written; the checkpoint in it is not read yet."""

    log_index: int
    hashes: tuple[Digest, ...]
    checkpoint: bytes
    extra: bytes | None = None


def encode_proof(proof: TlogProof) -> bytes:
    """The text of a proof."""
    lines = [_HEADER]
    if proof.extra is not None:
        lines.append(f"extra {encode_base64(proof.extra)}")
    lines.append(f"index {proof.log_index}")
    lines += map(encode_base64, proof.hashes)
    return "".join(f"{line}\n" for line in lines).encode() + b"\n" + proof.checkpoint


def decode_proof(data: bytes) -> TlogProof:
    """Read a proof strictly; what is read encodes back to the same bytes."""
    head, blank, checkpoint = data[: 2 * NOTE_BYTES_MAX].partition(b"\n\n")
    lines = decode_utf8(head, "proof").split("\n")
    if lines.pop(0) != _HEADER or not blank or not lines or len(data) > 2 * NOTE_BYTES_MAX:
        raise _malformed(f"is not {_HEADER!r}, an index and a checkpoint")
    extra = None
    if lines[0].startswith("extra "):
        extra = decode_base64(lines.pop(0).removeprefix("extra "), "proof")
    if not lines or not lines[0].startswith("index "):
        raise _malformed("has no index")
    index = decode_number(lines.pop(0).removeprefix("index "), "proof")
    hashes = tuple(Digest(decode_base64(line, "proof")) for line in lines)
    if len(hashes) > _HASHES_MAX or any(len(one) != 32 for one in hashes):
        raise _malformed("has a hash that is not 32 bytes, or too many")
    return TlogProof(index, hashes, checkpoint, extra)


def check_proof(proof: TlogProof, entry: bytes, log_keys: Sequence[VerifierKey]) -> Checkpoint:
    """That these bytes are the entry at that index of the log that one of these keys signs for."""
    checkpoint = check_checkpoint(parse_checkpoint(proof.checkpoint), log_keys)
    head = checkpoint.head
    check_inclusion(proof.log_index, head.size, leaf_hash(entry), proof.hashes, head.root)
    return checkpoint


def _malformed(message: str) -> InputError:
    return InputError(f"proof: {message}", field="proof")
