"""`affidavit checkpoint`, `affidavit key ...` and `affidavit recover`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from affidavit.apps.cli.opening import open_for_reading, open_for_writing
from affidavit.apps.cli.render import Answer, table
from affidavit.ledger.results import Key, SignedCheckpoint


def checkpoint(args: argparse.Namespace) -> Answer:
    """The signed note, so that it can be sent into a file as it is."""
    with open_for_writing(args) as ledger:
        return _answer(ledger.checkpoint())


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
