"""Lists by state, as of any index, beside what each thing is then by its key."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import affidavit
from affidavit.errors import ConflictError

KEYS = [str(uuid.UUID(int=number)) for number in range(4)]
MOVES = ("request", "again", "complete", "orphan", "propose", "approve", "deny", "apply", "revert")
UNITS = st.lists(
    st.lists(st.tuples(st.sampled_from(MOVES), st.sampled_from(KEYS)), min_size=1, max_size=3),
    min_size=1, max_size=8,
)  # fmt: skip


def move(tx: Any, what: str, key: str, step: int) -> None:
    if what in ("request", "again"):
        model = f"m{step}" if what == "again" else None
        tx.request_tool_call(key, "c", None, "v", "t", {}, started_at_ms=step % 3, model=model)
    elif what == "complete":
        tx.finish_tool_call(key, "c", "completed", {})
    elif what == "orphan":
        tx.finish_tool_call(key, "c", "failed", error_kind="orphaned")
    elif what == "propose":
        tx.create_proposal(key, [])
    elif what in ("approve", "deny"):
        tx.decide_proposal(key, "approved" if what == "approve" else "denied", "me")
    else:
        (tx.apply_proposal if what == "apply" else tx.revert_proposal)(key)


def run(ledger: Any, unit: list[tuple[str, str]], step: int) -> None:
    try:
        with ledger.transaction() as tx:
            for what, key in unit:
                move(tx, what, key, step)
    except ConflictError:
        pass  # the whole unit is undone


def calls_by_key(ledger: Any, moment: dict[str, int], status: str) -> list[Any]:
    found = [ledger.get_tool_call(key, "c", **moment) for key in KEYS]
    return [pair for pair in found if pair is not None and state_of(pair) == status]


def state_of(pair: Any) -> str:
    return "requested" if pair[1] is None else pair[1].status


@settings(max_examples=40, deadline=None)
@given(UNITS)
def test_a_list_of_a_state_holds_what_was_in_it_then(units: list[Any]) -> None:
    at = iter(range(100, 10_000, 10))
    with affidavit.open(":memory:", clock=lambda: next(at)) as ledger:
        for step, unit in enumerate(units):
            run(ledger, unit, step)
        for index in range(len(ledger)):
            moment = {"as_of_index": index}
            for status in ("requested", "completed", "failed"):
                found = ledger.list_tool_calls(status=status, **moment)
                times = [asked.started_at_ms for asked, _ in found]
                assert times == sorted(times, reverse=True)
                wanted = calls_by_key(ledger, moment, status)
                assert sorted(found, key=str) == sorted(wanted, key=str), (moment, status)
                pages = [ledger.list_tool_calls(status=status, limit=1, **moment)]
                while pages[-1]:
                    after = (pages[-1][0][1] or pages[-1][0][0]).index
                    page = ledger.list_tool_calls(status=status, limit=1, after=after, **moment)
                    pages.append(page)
                assert [pair for page in pages for pair in page] == found
            proposals = [ledger.get_proposal(key, **moment) for key in KEYS]
            for status in ("pending", "approved", "denied", "applied", "reverted"):
                wanted = [one for one in proposals if one is not None and one.status == status]
                found = ledger.list_proposals(status=status, **moment)
                assert sorted(found, key=str) == sorted(wanted, key=str), (moment, status)
