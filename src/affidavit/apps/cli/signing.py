"""`affidavit checkpoint`, `key ...`, `recover`, `publish` and `prove`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from affidavit.apps.cli.opening import open_for_reading, open_for_writing
from affidavit.apps.cli.render import Answer, count, fields, table
from affidavit.apps.plain import one_line
from affidavit.errors import InputError
from affidavit.ledger.results import Key, RecordProof, SignedCheckpoint


def checkpoint(args: argparse.Namespace) -> Answer:
    """The signed note, so that it can be sent into a file as it is."""
    with open_for_writing(args) as ledger:
        return _answer(ledger.checkpoint())


def publish(args: argparse.Namespace) -> Answer:
    """What is published now."""
    with open_for_writing(args) as ledger:
        done = ledger.publish(args.to)
    new = count(done.written, "new file")
    size = count(done.size, "entry", "entries")
    line = f"Published {size} of {done.origin} in {one_line(done.place)}, {new}"
    return Answer(done.to_dict(), [line])


def prove(args: argparse.Namespace) -> Answer:
    """The proof of one record, or of the log's growth."""
    if (args.record is None) == (args.growth is None):
        raise InputError(
            "name either a record or --growth OLD[:NEW]",
            hint="`affidavit thoughts` shows the ids of records.",
        )
    if args.growth is not None:
        with open_for_reading(args) as ledger:
            grown = ledger.prove_growth(*args.growth)
        lines = fields(list(grown.to_dict().items())[:-1])
        return Answer(grown.to_dict(), [*lines, *grown.hashes])
    with open_for_writing(args) as ledger:
        proof = ledger.prove(args.record)
    return Answer(proof.to_dict(), _describe_proof(proof))


def _describe_proof(proof: RecordProof) -> list[str]:
    lines = [f"Record {one_line(proof.id)} is entry {proof.index} of {proof.origin}", proof.entry]
    lines += proof.proof.removesuffix("\n").split("\n")
    if (session := proof.session) is None:
        return [*lines, "It is in no sealed session."]
    lines.append(
        f"It is record {session.position} of {session.record_count} of the session "
        f"{one_line(session.session_id)}, sealed by entry {session.seal_index}"
    )
    return [*lines, *session.path, session.seal_entry, *session.seal_proof[:-1].split("\n")]


def recover(args: argparse.Namespace) -> Answer:
    """The first note that is signed again."""
    with open_for_writing(args) as ledger:
        return _answer(ledger.recover(args.how, reason=args.reason))


def show_keys(args: argparse.Namespace) -> Answer:
    """The keys of the log."""
    with open_for_reading(args) as ledger:
        return _answer_keys(ledger.list_keys())


def add_key(args: argparse.Namespace) -> Answer:
    """A key that signs beside the others."""
    with open_for_writing(args) as ledger:
        ledger.add_key(by=args.by, reason=args.reason)
        return _answer_keys(ledger.list_keys())


def retire_key(args: argparse.Namespace) -> Answer:
    """A key that signs no more."""
    with open_for_writing(args) as ledger:
        ledger.retire_key(args.vkey, by=args.by, reason=args.reason)
        return _answer_keys(ledger.list_keys())


def _answer(signed: SignedCheckpoint) -> Answer:
    return Answer(signed.to_dict(), signed.note.removesuffix("\n").split("\n"))


def _answer_keys(keys: Sequence[Key]) -> Answer:
    """All keys; `vkey` is the newest one that signs."""
    newest = next((key.vkey for key in reversed(keys) if key.state == "active"), None)
    data = {"vkey": newest, "keys": [key.to_dict() for key in keys]}
    rows = [(key.state, "yes" if key.here else "no", key.added_index, key.vkey) for key in keys]
    if not rows:
        return Answer(data, ["No key yet: `affidavit checkpoint` makes it."])
    return Answer(data, list(table(("state", "here", "added at", "verifier key"), rows)))
