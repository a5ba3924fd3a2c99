"""The states of a task and the moves between them."""

from __future__ import annotations

from typing import Final

TASK_STATES: Final = (
    "INIT",
    "GATHER",
    "ANALYZE",
    "PLAN",
    "APPLY",
    "VERIFY",
    "DONE",
    "CANCELLED",
)
TERMINAL_STATES: Final = ("DONE", "CANCELLED")

_FORWARD: Final = {
    "INIT": ("GATHER",),
    "GATHER": ("ANALYZE",),
    "ANALYZE": ("PLAN",),
    "PLAN": ("APPLY",),
    "APPLY": ("VERIFY",),
    "VERIFY": ("DONE", "GATHER"),
}


def find_allowed(status: str) -> tuple[str, ...]:
    """Where a task may go from here when transitions are enforced."""
    if status in TERMINAL_STATES:
        return ()
    return (*_FORWARD[status], "CANCELLED")


def next_attempt(attempt: int, status: str, to: str) -> int:
    """A failed verification sends the task back to gathering: that is a new attempt."""
    return attempt + 1 if (status, to) == ("VERIFY", "GATHER") else attempt
