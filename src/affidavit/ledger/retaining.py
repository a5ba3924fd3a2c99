"""Keeping texts for a period a person set: what is older is erased, as an erasure is.

Nothing goes unless a setting says so; records of decisions go by an explicit `erase` alone. Facts,
digests of the log and seals stay whatever the period.
"""

from __future__ import annotations

from typing import Final

from affidavit.core.views.payload import NO_PAYLOAD
from affidavit.errors import invalid
from affidavit.ledger import erasing
from affidavit.ledger.context import Context
from affidavit.ledger.keys import Said
from affidavit.ledger.ports import Reader
from affidavit.ledger.results import Overdue, Retained
from affidavit.ledger.settings import read_settings

# The settings, with the tables whose texts they are about.
RETAINED: Final = {
    "tool_call": ("retain_tool_call_days", ("tool_calls", "approvals", "calls")),
    "turn": ("retain_turn_days", ("conversation_turns",)),
    "proposal": ("retain_proposal_days", ("code_edit_proposals",)),
}
_DAY_US: Final = 86_400_000_000
# So many entries at once: the write lock is never held for long.
_PART: Final = 2_000
_BY: Final = Said("retention", NO_PAYLOAD)


def setting_of(kind: str) -> str:
    """The setting that says how long texts of a kind are kept."""
    if kind not in RETAINED:
        raise invalid(
            "kind",
            f"{kind!r:.60} is not one of {', '.join(RETAINED)}",
            hint="Records of decisions go by `affidavit erase` alone.",
        )
    return RETAINED[kind][0]


def retain(context: Context) -> Retained:
    """Erase what is older than its period allows."""
    erased: dict[str, int] = {}
    pending = not erasing.finish_scrub(context)
    for kind, before_us in _limits(context).items():
        while True:
            with context.store.read() as reader:
                indices = reader.older_texts(RETAINED[kind][1], before_us, _PART)
            if not indices:
                break
            done = erasing.erase_entries(context, indices, _BY)
            erased[kind] = erased.get(kind, 0) + done.field_count
            pending = pending or done.scrub == "pending"
    return Retained(erased, "pending" if pending else "done")


def _limits(context: Context) -> dict[str, int]:
    """Before when texts of each kind must go; kinds without a period are not in it."""
    with context.store.read() as reader:
        return _limits_in(reader, context.clock())


def _limits_in(reader: Reader, now_us: int) -> dict[str, int]:
    settings = read_settings(reader)
    periods = {kind: int(settings[name]) for kind, (name, _) in RETAINED.items()}
    return {kind: now_us - days * _DAY_US for kind, days in periods.items() if days}


def find_overdue(context: Context) -> tuple[Overdue, ...]:
    """Which kinds have texts older than they should be, and by how much."""
    found = []
    with context.store.read() as reader:
        for kind, before_us in _limits_in(reader, context.clock()).items():
            oldest = reader.older_texts(RETAINED[kind][1], before_us, 1)
            if oldest:
                found.append(Overdue(kind, oldest[0], before_us - reader.entry(oldest[0]).at))
    return tuple(found)
