"""Lists of turns, tool calls and proposals walk one index, however many there are."""

import sqlite3
from contextlib import closing

import pytest

from affidavit.core.views.proposals import ProposalRow
from affidavit.core.views.tool_calls import ToolCallRow
from affidavit.core.views.turns import TurnRow
from affidavit.ledger.ports import Listing
from affidavit.ledger.versions import PROPOSALS, TOOL_CALLS, TURNS
from affidavit.stores.sqlite.observations import list_statement
from affidavit.stores.sqlite.queries import load_migrations

FEW = 1_000
ORDERS = {
    "conversation_turns": ("created_at_ms", "log_index"),
    "tool_calls": ("started_at_ms", "created_index"),
    "code_edit_proposals": ("created_at_ms", "created_index"),
}
LISTS = [
    (TURNS, {}, "idx_turns_time"),
    (TURNS, {"thread_id": "t1"}, "idx_turns_thread"),
    (TURNS, {"message_id": "m1"}, "idx_turns_message"),
    (TURNS, {"session_id": "s1"}, "idx_turns_session"),
    (TOOL_CALLS, {}, "idx_tool_calls_time"),
    (TOOL_CALLS, {"request_id": "r1"}, "idx_tool_calls_request"),
    (TOOL_CALLS, {"parent_id": "p1"}, "idx_tool_calls_parent"),
    (TOOL_CALLS, {"session_id": "s1"}, "idx_tool_calls_session"),
    (TOOL_CALLS, {"status": "requested"}, "idx_tool_calls_status"),
    (TOOL_CALLS, {"status": "completed"}, "idx_tool_calls_status"),
    (TOOL_CALLS, {"tool_name": "n1"}, "idx_tool_calls_tool"),
    (TOOL_CALLS, {"vendor": "v1"}, "idx_tool_calls_vendor"),
    (PROPOSALS, {}, "idx_proposals_time"),
    (PROPOSALS, {"status": "pending"}, "idx_proposals_status"),
]


def listing(view, equal, **more):
    return Listing(view, ORDERS[view.table], equal, 100, **more)


def insert(connection, kind, table, rows):
    defaults = dict.fromkeys(kind._fields)
    sql = f"INSERT INTO {table} VALUES ({', '.join('?' * len(kind._fields))})"
    connection.executemany(sql, [tuple({**defaults, **row}.values()) for row in rows])


def call_rows(count):
    """Two versions of each call, but for one in ten, which is still open."""
    for n in range(count):
        shared = {
            "request_id": f"r{n % 9}", "call_id": f"c{n}", "parent_id": f"p{n % 9}",
            "session_id": f"s{n % 9}", "vendor": f"v{n % 9}", "tool_name": f"n{n % 9}",
            "args_form": "jcs", "late": 0, "started_at_ms": n // 3, "paths_outside": 0,
            "requested_index": 2 * n, "created_index": 2 * n,
        }  # fmt: skip
        is_open = n % 10 == 0
        asked = {"log_index": 2 * n, "status": "requested", "at": 2 * n}
        yield {**shared, **asked, "superseded_by": None if is_open else 2 * n + 1}
        if not is_open:
            yield {**shared, "log_index": 2 * n + 1, "status": "completed", "at": 2 * n + 1}


def fill(connection, count):
    for script in load_migrations():
        connection.executescript(script)
    turns = (
        {
            "log_index": n, "id": f"i{n}", "message_id": f"m{n % 9}", "thread_id": f"t{n % 9}",
            "session_id": f"s{n % 9}", "kind": "user", "content": "x", "created_at_ms": n // 3,
            "retracted": 0, "at": n,
        }
        for n in range(count)
    )  # fmt: skip
    proposals = (
        {
            "log_index": n, "request_id": f"r{n}", "created_at_ms": n // 3, "paths_outside": 0,
            "status": "pending" if n % 2 else "denied", "created_index": n, "at": n,
        }
        for n in range(count)
    )  # fmt: skip
    insert(connection, TurnRow, "conversation_turns", turns)
    insert(connection, ToolCallRow, "tool_calls", call_rows(count))
    insert(connection, ProposalRow, "code_edit_proposals", proposals)
    connection.commit()


def steps_of(connection, wanted, end=None):
    """How many steps SQLite's machine takes, which do not depend on the load of this one."""
    count = [0]

    def tick():
        count[0] += 1

    connection.set_progress_handler(tick, 1)
    found = connection.execute(*list_statement(wanted, end)).fetchall()
    connection.set_progress_handler(None, 1)
    assert len(found) == 100
    return count[0]


@pytest.fixture(scope="module")
def few():
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, FEW)
        yield connection


@pytest.mark.parametrize(("view", "equal", "index"), LISTS, ids=lambda one: str(one)[:40])
@pytest.mark.parametrize("past", [False, True], ids=["now", "past"])
@pytest.mark.parametrize("more", [{}, {"since_ms": 5, "after": (900, 9)}], ids=["all", "page"])
def test_each_list_walks_the_index_of_what_it_names(few, view, equal, index, past, more):
    more = {**more, "moment": FEW - 1} if past else more  # each row is of a time of its own
    sql, values = list_statement(listing(view, equal, **more), FEW if past else None)
    steps = [row[3] for row in few.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    if past and "status" in equal:
        # What is in that state now, and what has left it since.
        now, left = (step for step in steps if "INDEX" in step)
        assert f"SEARCH {view.table} USING INDEX {index} (status=?" in now
        left_index = index.replace("status", "left")
        assert f"USING INDEX {left_index} (status=? AND superseded_by>?)" in left
        return
    if view is TURNS:
        # Beside the walk only look-ups of one turn: by its row, and of its versions by its id.
        walk, found, *looked_up = (step for step in steps if "SUBQUERY" not in step)
        assert found == "SEARCH f USING INTEGER PRIMARY KEY (rowid=?)"
        assert all("INDEX idx_turns_id (id=?" in step for step in looked_up), steps
        steps = [walk]
    assert len(steps) == 1, steps
    assert f"USING INDEX {index}" in steps[0], steps
    assert equal == {} or past or "SEARCH" in steps[0]


@pytest.mark.parametrize(
    "many", [10_000, pytest.param(100_000, marks=pytest.mark.long)], ids="{:,}".format
)
def test_a_list_among_many_costs_what_it_does_among_few(few, many):
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, many)
        for view, equal, _ in LISTS:
            for newest_first in (True, False) if view is TURNS else (True,):
                wanted = listing(view, equal, newest_first=newest_first)
                cost = steps_of(connection, wanted)
                assert cost <= 1.5 * steps_of(few, wanted), (view.table, equal)
