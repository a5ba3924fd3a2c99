"""Calls that tests make again and again, a clock they can set, and how a refusal is expected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from affidavit.errors import CODES, AffidavitError

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
NOON_US = 1_776_427_200_000_000  # 2026-04-17T12:00:00Z


class Clock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now_us: int = NOON_US) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us

    def advance(self, step_us: int) -> None:
        self.now_us += step_us


class Ids:
    """Ids in order: i1, i2, ..."""

    def __init__(self, prefix: str = "i") -> None:
        self.prefix = prefix
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count}"


def draft(**given: Any) -> dict[str, Any]:
    """A record's arguments, of which a test names those it is about."""
    return {"type": "plan", "task_id": "t1", "agent_id": "a1", "content": "a thought", **given}


def record(ledger: Any, **given: Any) -> Any:
    return ledger.record_thought(**draft(**given))


def reflect(ledger: Any, **given: Any) -> Any:
    return record(ledger, **{"type": "reflection", **given})


def start(ledger: Any, **given: Any) -> str:
    session_id: str = ledger.start_session(**{"intent": "ship it", **given}).session_id
    return session_id


@contextmanager
def refused(code: str, field: str | None = None) -> Iterator[pytest.ExceptionInfo[AffidavitError]]:
    """The block must be refused with this code, and with the class that the code stands for."""
    with pytest.raises(AffidavitError) as caught:
        yield caught
    error = caught.value
    assert error.code == code, f"{error.code}: {error}"
    assert type(error) is CODES[code].error
    if field is not None:
        assert error.details["field"] == field
        assert str(error).startswith(f"{field}: ")
