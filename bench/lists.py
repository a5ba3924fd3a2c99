"""Every list of turns, tool calls and proposals among many rows, beside the same among few."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import affidavit
from affidavit.core.views.proposals import ProposalRow
from affidavit.core.views.tool_calls import ToolCallRow
from affidavit.core.views.turns import TurnRow
from affidavit.ledger.ledger import Ledger
from bench.harness import Line, at_most, paired, show_us

FEW = 1_000
# What is asked for by name is shared by so many.
_SHARED = 10
_TIMES = 20
# How many entries came after the moment of the past.
_SINCE = 500
_REACH = 1.5
_SALT = b"s" * 32
_ENTRY = b'{"at":%d,"body":{},"kind":"bench.filled","src":{},"v":1}'


def lists(folder: Path, many: int, blocks: int) -> list[Line]:
    """Each list among this many of each noun: now, and as of a moment as long ago in both."""
    places = [folder / f"lists-{count}.db" for count in (many, FEW)]
    for place, count in zip(places, (many, FEW), strict=True):
        affidavit.open(place, clock=lambda: 1).close()
        with closing(sqlite3.connect(place)) as raw:
            _fill(raw, count)
    with affidavit.open(places[0]) as large, affidavit.open(places[1]) as small:
        return [
            _measure(name, when, (large, small), past, blocks)
            for when, past in (("now", False), ("as of before", True))
            for name in _asks(small)
        ]


def _measure(name: str, when: str, ledgers: tuple[Ledger, Ledger], past: bool, blocks: int) -> Line:
    runs = [
        _repeat(_asks(ledger)[name], {"as_of": len(ledger) - _SINCE} if past else {})
        for ledger in ledgers
    ]
    ours, theirs, ratio = paired(runs[0], runs[1], blocks)
    figures = show_us(ours, _TIMES), show_us(theirs, _TIMES)
    return at_most(f"list of {name}, {when}", *figures, 1 / ratio, _REACH)


def _repeat(ask: Callable[..., list[Any]], moment: dict[str, int]) -> Callable[[], None]:
    assert len(ask(**moment)) == _SHARED

    def run() -> None:
        for _ in range(_TIMES):
            ask(**moment)

    return run


def _asks(ledger: Ledger) -> dict[str, Callable[..., list[Any]]]:
    """The lists, by the filter they have."""
    one = str(UUID(int=7))

    def turns(**wanted: Any) -> Callable[..., list[Any]]:
        return lambda **moment: ledger.list_turns(limit=_SHARED, **wanted, **moment)

    def calls(**wanted: Any) -> Callable[..., list[Any]]:
        return lambda **moment: ledger.list_tool_calls(limit=_SHARED, **wanted, **moment)

    def proposals(**wanted: Any) -> Callable[..., list[Any]]:
        return lambda **moment: ledger.list_proposals(limit=_SHARED, **wanted, **moment)

    return {
        "turns": turns(),
        "turns, newest first": turns(newest_first=True),
        "turns since": turns(since_ms=FEW // 2),
        "turns of a thread": turns(thread_id=one),
        "turns of a message": turns(message_id=one),
        "turns of a session": turns(session_id=one),
        "calls": calls(),
        "calls since and until": calls(since_ms=FEW // 4, until_ms=FEW // 2),
        "calls of a request": calls(request_id=one),
        "calls of a parent": calls(parent_id=one),
        "calls of a session": calls(session_id=one),
        "calls of a tool": calls(tool_name="t7"),
        "calls of a vendor": calls(vendor="v7"),
        "calls requested": calls(status="requested"),
        "calls completed": calls(status="completed"),
        "calls failed": calls(status="failed"),
        "proposals": proposals(),
        "proposals since": proposals(since_ms=FEW // 4),
        "proposals pending": proposals(status="pending"),
        "proposals approved": proposals(status="approved"),
    }


def _fill(raw: sqlite3.Connection, count: int) -> None:
    """So many turns, calls and proposals, five entries a step; a tenth of each stays open."""
    entries = ((index, _ENTRY % index, b"h" * 32) for index in range(1, count * 5 + 1))
    raw.executemany("INSERT INTO log VALUES (?, ?, ?)", entries)
    for table, kind, rows in (
        ("conversation_turns", TurnRow, _turns(count)),
        ("tool_calls", ToolCallRow, _calls(count)),
        ("code_edit_proposals", ProposalRow, _proposals(count)),
    ):
        nothing = dict.fromkeys(kind._fields)
        marks = ", ".join("?" * len(nothing))
        values = (tuple({**nothing, **row}.values()) for row in rows)
        raw.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
    raw.commit()


def _name(step: int) -> str:
    return str(UUID(int=step // 3 % _SHARED))


def _turns(count: int) -> Iterator[dict[str, Any]]:
    for step in range(count):
        yield {
            "log_index": 1 + 5 * step, "at": 1 + 5 * step, "id": str(UUID(int=step)),
            "message_id": _name(step), "thread_id": _name(step), "session_id": _name(step),
            "kind": "user", "content": "x" * 200, "content_salt": _SALT, "created_at_ms": step,
            "retracted": 0,
        }  # fmt: skip


def _calls(count: int) -> Iterator[dict[str, Any]]:
    for step in range(count):
        index = 2 + 5 * step
        asked = {
            "request_id": _name(step), "call_id": f"c{step}", "parent_id": _name(step),
            "session_id": _name(step), "vendor": f"v{step // 3 % _SHARED}", "args_form": "jcs",
            "tool_name": f"t{step // 3 % _SHARED}", "late": 0, "started_at_ms": step,
            "paths_outside": 0, "requested_index": index, "created_index": index,
        }  # fmt: skip
        is_open = step % 10 == 0
        later = {"superseded_by": None if is_open else index + 1}
        yield {**asked, "log_index": index, "at": index, "status": "requested", **later}
        if not is_open:
            status = "failed" if step % 10 == 1 else "completed"
            ended = {"status": status, "ended_at_ms": step, "latency_ms": 0}
            yield {**asked, "log_index": index + 1, "at": index + 1, **ended}


def _proposals(count: int) -> Iterator[dict[str, Any]]:
    for step in range(count):
        index = 4 + 5 * step
        made = {
            "request_id": str(UUID(int=step)), "created_at_ms": step, "paths_outside": 0,
            "created_index": index,
        }  # fmt: skip
        texts = {"diffs_json": "[]", "diffs_json_salt": _SALT}
        is_open = step % 10 == 0
        later = {"superseded_by": None if is_open else index + 1}
        yield {**made, **texts, "log_index": index, "at": index, "status": "pending", **later}
        if not is_open:
            decided = {"status": "approved", "decided_at_ms": step, "decided_index": index + 1}
            yield {**made, **decided, "log_index": index + 1, "at": index + 1}
