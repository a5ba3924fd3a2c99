"""`affidavit hook`, where it was not taken care of before the command line was parsed."""

from __future__ import annotations

import argparse

from affidavit.apps.cli.render import Answer
from affidavit.apps.hook import take_anyway


def hook(args: argparse.Namespace) -> Answer:
    """Take one event from stdin."""
    ledger = getattr(args, "ledger", None)
    words = [args.client]
    words += ["--gate"] if args.gate else []
    words += [] if ledger is None else ["--ledger", ledger]
    words += [] if args.to is None else ["--to", args.to]
    return Answer({}, (), take_anyway(words), is_shown=True)
