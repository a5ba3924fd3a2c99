"""What surrounds every command: its answer or error is printed, and the exit code says which.

Only light modules are imported here, and none that an auditor has not.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from affidavit.errors import CODES, AffidavitError

if TYPE_CHECKING:
    from affidavit.apps.cli.render import Answer

BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141


def show_every_character() -> None:
    """A terminal that cannot show a character gets its code instead of a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def answer_with(find: Callable[[list[str]], Answer], words: list[str]) -> int:
    """Print what is found, or what was in its way; the exit code says which, whatever happens."""
    try:
        return _answer_with(find, words)
    except BrokenPipeError:
        from affidavit.apps.cli.printing import discard_stdout  # noqa: PLC0415

        discard_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED


def _answer_with(find: Callable[[list[str]], Answer], words: list[str]) -> int:
    as_json = _wants_json(words)
    try:
        answer = find(words)
        _print(answer, as_json=as_json)
    except SystemExit as stop:  # argparse has printed the help
        return int(stop.code or 0)
    except AffidavitError as error:
        _say(error, as_json=as_json)
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


def _print(answer: Answer, *, as_json: bool) -> None:
    from affidavit.apps.cli.printing import printing  # noqa: PLC0415
    from affidavit.apps.cli.render import show  # noqa: PLC0415

    with printing("the answer", "What the command did stands; only its answer is lost."):
        show(answer, as_json=as_json)


def _show_bug(error: Exception, *, as_json: bool) -> None:
    if os.environ.get("AFFIDAVIT_DEBUG") == "1":
        import traceback  # noqa: PLC0415 - only when asked for

        traceback.print_exception(error)
    found = AffidavitError(
        f"this is a bug: {type(error).__name__}: {error}",
        hint="Please report it; AFFIDAVIT_DEBUG=1 shows where it happened.",
    )
    _say(found, as_json=as_json)


def _say(error: AffidavitError, *, as_json: bool) -> None:
    from affidavit.apps.cli.printing import saying  # noqa: PLC0415
    from affidavit.apps.cli.render import show_error  # noqa: PLC0415 - not for a hook

    with saying():
        show_error(error, as_json=as_json)
