"""The entry point: parse the words, run one command, print its answer, choose the exit code.

    0    done; for verify: all that was checked holds
    1    checked and false: something recorded does not hold
    2    the call cannot be carried out as it stands
    3    could not be judged, or there is nothing to judge
    4    the environment: no such ledger, no rights, disk, lock, version
    70   a bug in affidavit          130  interrupted          141  nobody reads the output

`errors.CODES` says which error means which. Only light modules are imported here: a command loads
its own when it is called.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from affidavit.apps.cli.answering import answer_with, show_every_character

if TYPE_CHECKING:
    from affidavit.apps.cli.render import Answer


def run() -> NoReturn:
    """The `affidavit` command."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & {*sys.argv}:
        # A client waits for this at every event: not even the parser is loaded.
        from affidavit.apps.hook import run as take_event  # noqa: PLC0415

        take_event(sys.argv[2:])
    show_every_character()
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and answer with its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    return answer_with(_run_command, words)


def _run_command(words: list[str]) -> Answer:
    from affidavit.apps.cli.arguments import build_parser  # noqa: PLC0415 - not for a hook

    args = build_parser().parse_args(words)
    module, _, function = args.handler.partition(":")
    answer: Answer = getattr(importlib.import_module(f"{__package__}.{module}"), function)(args)
    return answer
