"""Proofs of one record, and of the log's growth, for somebody who has only a checkpoint.

    record  --path-->  root of its session  <--named by--  seal  --path-->  root of a checkpoint
    record  --path-->  root of a checkpoint

What is proved is signed first, so that the proof covers it.
"""

from __future__ import annotations

from affidavit.core.checkpoint import Checkpoint
from affidavit.core.merkle import LeafTree, prove_consistency, prove_inclusion, read_root
from affidavit.core.tlog_proof import TlogProof, encode_proof
from affidavit.core.views.sessions import SealRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.errors import invalid
from affidavit.ledger.checkpoints import LogTree, checkpoint
from affidavit.ledger.context import Context
from affidavit.ledger.keys import read_identity
from affidavit.ledger.ports import Reader
from affidavit.ledger.results import GrowthProof, RecordProof, SessionProof


def prove_record(context: Context, record_id: str) -> RecordProof:
    """That a record is in the log, and in its session where that is sealed."""
    with context.store.read() as reader:
        if reader.find_thought(record_id) is None:
            raise invalid(
                "record_id",
                f"there is no record {record_id!r:.100}",
                code="ERR_NOT_FOUND",
                hint="`affidavit list` shows the records there are.",
            )
    signed = checkpoint(context)
    with context.store.read() as reader:
        row = reader.find_thought(record_id)
        assert row is not None  # noqa: S101 - records are never taken away
        return _prove(context, reader, row, signed)


def _prove(context: Context, reader: Reader, row: ThoughtRow, signed: Checkpoint) -> RecordProof:
    entry, proof = prove_entry(reader, row.log_index, signed)
    seal = None if row.session_id is None else reader.find_seal(row.session_id)
    session = None
    if seal is not None and seal.log_index < signed.head.size:
        session = _prove_in_session(context, reader, row, seal, signed)
    head = signed.head
    return RecordProof(
        row.id, row.log_index, entry, head.origin, head.size, head.root.hex(), proof, session
    )


def prove_entry(reader: Reader, index: int, signed: Checkpoint) -> tuple[str, str]:
    """An entry's exact text, and the proof that it is in the log, ending in the checkpoint."""
    [(_, entry)] = reader.entries(index, index + 1)
    path = prove_inclusion(index, signed.head.size, LogTree(reader))
    proof = TlogProof(index, tuple(path), signed.note.encode())
    return entry.decode(), encode_proof(proof).decode()


def _prove_in_session(
    context: Context, reader: Reader, row: ThoughtRow, seal: SealRow, signed: Checkpoint
) -> SessionProof:
    with context.store.audit() as source:
        leaves = source.session_leaves(seal.session_id, seal.log_index, thoughts=True, scan=False)
    position = row.session_seq or 0
    path = prove_inclusion(position, len(leaves), LeafTree(leaves))
    seal_entry, seal_proof = prove_entry(reader, seal.log_index, signed)
    return SessionProof(
        seal.session_id,
        seal.root,
        seal.record_count,
        position,
        tuple(digest.hex() for digest in path),
        seal.log_index,
        seal_entry,
        seal_proof,
    )


def prove_growth(context: Context, old_size: int, new_size: int | None) -> GrowthProof:
    """That the log at one size is the beginning of the log at another; by default, as it is now."""
    with context.store.read() as reader:
        size, tree = reader.size(), LogTree(reader)
        new_size = size if new_size is None else new_size
        if not 1 <= old_size <= new_size <= size:
            raise invalid(
                "old_size",
                f"{old_size} and {new_size} are not two sizes, in this order, of a log of {size}",
            )
        hashes = prove_consistency(old_size, new_size, tree)
        return GrowthProof(
            read_identity(reader).origin,
            old_size,
            read_root(old_size, tree).hex(),
            new_size,
            read_root(new_size, tree).hex(),
            tuple(digest.hex() for digest in hashes),
        )
