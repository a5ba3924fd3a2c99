"""States and the moves between them: of tasks, of tool calls, of proposals."""

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


FINISHED: Final = ("completed", "failed")
DECISIONS: Final = ("approved", "denied")
# A tool call that nobody finished was marked as failed with this; only then may a result be late.
ORPHANED: Final = "orphaned"

# Where a tool call or a proposal may go from a state; from None where it never was.
TOOL_CALL_MOVES: Final[dict[str | None, tuple[str, ...]]] = {
    None: ("requested",),
    "requested": ("requested", *FINISHED),
}
PROPOSAL_MOVES: Final[dict[str | None, tuple[str, ...]]] = {
    None: ("pending",),
    "pending": DECISIONS,
    "approved": ("applied",),
    "applied": ("reverted",),
}
