"""`affidavit` alone: what a newcomer does next."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from affidavit import __version__
from affidavit.apps import places
from affidavit.apps.cli.render import Answer
from affidavit.apps.plain import one_line


def welcome(args: argparse.Namespace) -> Answer:
    """The ledger in use and the three commands to start with."""
    path = places.ledger_path(getattr(args, "ledger", None))
    named = f"--ledger {shlex.quote(path)} " if getattr(args, "ledger", None) else ""
    there = Path(path).exists()
    steps = [
        ("affidavit {}init", "show the ledger" if there else "make the ledger"),
        (
            "affidavit {}record --type decision --task t1 --agent me 'what, and why'",
            "write down a decision",
        ),
        ("affidavit {}verify", "check that nothing was changed since"),
    ]
    steps = [(command.format(named), purpose) for command, purpose in steps]
    state = "exists" if there else "does not exist yet"
    lines = [
        f"affidavit {__version__}: the sworn record of what AI agents did and why",
        "",
        f"Your ledger is {one_line(path)} ({state}). Next:",
        "",
    ]
    for command, purpose in steps:
        lines += [f"  {one_line(command)}", f"      {purpose}"]
    lines += ["", "Every command: affidavit --help"]
    data = {
        "version": __version__,
        "ledger": path,
        "exists": there,
        "next": [{"command": command, "purpose": purpose} for command, purpose in steps],
    }
    return Answer(data, lines)
