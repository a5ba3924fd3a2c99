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
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from affidavit.errors import CODES, AffidavitError, StoreError

if TYPE_CHECKING:
    import argparse

    from affidavit.apps.cli.render import Answer

BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141


def run() -> NoReturn:
    """The `affidavit` command."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & {*sys.argv}:
        # A client waits for this at every event: not even the parser is loaded.
        from affidavit.apps.hook import run as take_event  # noqa: PLC0415

        take_event(sys.argv[2:])
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets its code instead of a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and answer with its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run_command(words)
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED


def _run_command(words: list[str]) -> int:
    from affidavit.apps.cli.arguments import build_parser  # noqa: PLC0415 - not for a hook
    from affidavit.apps.cli.render import show_error  # noqa: PLC0415

    as_json = _wants_json(words)
    try:
        args = build_parser().parse_args(words)
        answer = _carry_out(args)
        _print(answer, as_json=as_json)
    except SystemExit as stop:  # argparse has printed the help
        return int(stop.code or 0)
    except AffidavitError as error:
        show_error(error, as_json=as_json)
        return exit_code_of(error)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback for users
        _show_bug(error, as_json=as_json)
        return BUG
    return answer.exit_code


def exit_code_of(error: AffidavitError) -> int:
    """What the shell gets to see of an error."""
    known = CODES.get(error.code)
    return BUG if known is None else known.exit_code


def _wants_json(words: list[str]) -> bool:
    # Asked of the words themselves, so that a call that cannot be parsed is answered alike.
    end = words.index("--") if "--" in words else len(words)
    return "--json" in words[:end]


def _carry_out(args: argparse.Namespace) -> Answer:
    module, _, function = args.handler.partition(":")
    answer: Answer = getattr(importlib.import_module(f"{__package__}.{module}"), function)(args)
    return answer


def _print(answer: Answer, *, as_json: bool) -> None:
    from affidavit.apps.cli.render import show  # noqa: PLC0415

    try:
        show(answer, as_json=as_json)
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_stdout()
        raise StoreError(
            f"the answer cannot be printed ({error.strerror})",
            hint="What the command did stands; only its answer is lost.",
        ) from None


def _discard_stdout() -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _show_bug(error: Exception, *, as_json: bool) -> None:
    if os.environ.get("AFFIDAVIT_DEBUG") == "1":
        import traceback  # noqa: PLC0415 - only when asked for

        traceback.print_exception(error)
    from affidavit.apps.cli.render import show_error  # noqa: PLC0415

    found = AffidavitError(
        f"this is a bug: {type(error).__name__}: {error}",
        hint="Please report it; AFFIDAVIT_DEBUG=1 shows where it happened.",
    )
    show_error(found, as_json=as_json)
