"""`affidavit doctor`: what is wrong with the ledger's place and file, and what to do about it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from affidavit.apps.cli.checks import (
    FAIL,
    STAGES,
    WARN,
    Check,
    Question,
    Subject,
    check_hooks,
    examine,
)
from affidavit.apps.cli.opening import is_new, ledger_path
from affidavit.apps.cli.render import Answer, count
from affidavit.apps.plain import one_line
from affidavit.errors import CODES

_DAMAGED = CODES["ERR_INTEGRITY"].exit_code
_UNFIT = CODES["ERR_STORE_UNAVAILABLE"].exit_code


def doctor(args: argparse.Namespace) -> Answer:
    """Examine the ledger and its place."""
    path = ledger_path(args)
    stages = _choose_stages(path)
    found = examine(Subject(path), stages)
    failed = [check for check in found if check.status == FAIL]
    data = {
        "ledger": path,
        "healthy": not failed,
        "checks": [check._asdict() for check in found],
    }
    return Answer(data, list(_describe(found, sum(map(len, stages)))), _exit_code(failed))


def _choose_stages(path: str) -> tuple[tuple[Question, ...], ...]:
    """What to ask; of a user whose hooks record into another user's ledger, about the hooks."""
    from affidavit.apps.connecting.probing import goes_elsewhere  # noqa: PLC0415 - for doctor alone

    if is_new(path) and goes_elsewhere():
        return ((check_hooks,),)
    return STAGES


def _exit_code(failed: list[Check]) -> int:
    if not failed:
        return 0
    damaged = any(
        check.code in CODES and CODES[check.code].exit_code == _DAMAGED for check in failed
    )
    return _DAMAGED if damaged else _UNFIT


def _describe(found: list[Check], asked: int) -> Iterator[str]:
    width = max(len(check.name) for check in found)
    for check in found:
        mark = check.status.upper() if check.status == FAIL else check.status
        yield f"{mark:<4}  {check.name:<{width}}  {one_line(check.message)}"
        if check.hint:
            yield f"{'':<{width + 8}}{one_line(check.hint)}"
    failed = sum(check.status == FAIL for check in found)
    warned = sum(check.status == WARN for check in found)
    if not failed and not warned:
        yield "All is well."
        return
    parts = [count(failed, "problem")] if failed else []
    parts += [count(warned, "warning")] if warned else []
    yield " and ".join(parts) + "."
    if len(found) < asked:
        yield "What depends on it was not looked at."
