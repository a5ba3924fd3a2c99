"""Queries find their rows by an index, whatever the size; and rows keep their numbers."""

import re
import sqlite3
from pathlib import Path

import pytest

import affidavit
from affidavit.stores.sqlite import queries
from affidavit.stores.sqlite.queries import load_queries
from affidavit.stores.sqlite.reading import SESSION_ENTRIES

# Those that are meant to walk a whole table or index, each with why.
WHOLE = {
    "newest_remembered": "verification looks at every key",
    "stray_nodes": "verification looks at every node",
    "session_ids": "every session is wanted",
    "task_ids_with_thoughts": "every task is wanted; an index is walked, no row is read",
    "sessions": "a page from the newest on: it stops at the limit",
    "setting_changes": "settings are few",
    "identity_changes": "keys are few",
    "captures_of_all": "channels that are not of one session are few",
    "dropped": "losses are few",
    "count_entries_holding": "every entry is looked at, before an erasure",
    "erasures_viewed": "every erasure is wanted",
    "forget_inputs": "every key is looked at, in an erasure",
    "calls_that_wrote": "every call is looked at, before an erasure",
    "log_bytes": "all bytes are wanted",
    "head": "stops at the first row, from the end",
    "idle_sessions": "every session that is not ended, by the index of those",
    "erasures": "walks the log, only when a text is gone that an export must account for",
    "session_entries": "walks the log from where the session started, once, to seal it",
}


def thought(number, **more):
    return {"type": "plan", "task_id": f"t{number % 5}", "agent_id": "a", "content": "c", **more}


@pytest.fixture
def filled(path):
    """A ledger with some of everything, and a plain connection to it."""
    with affidavit.open(path) as ledger:
        fill(ledger)
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


def fill(ledger):
    for number in range(4):
        session = ledger.start_session(intent="i", session_id=f"s{number}").session_id
        ledger.record_thoughts([thought(at, session_id=session) for at in range(80)])
        if number % 2:
            ledger.seal_session(session)
        task = ledger.create_task(title="t", project_id="p")
        ledger.update_task(task.id, status="PLAN")
    ledger.end_session("s0")
    ledger.set(writeback="reflection")
    ledger.record_thought(**thought(0), idempotency_key="k")


def plan(connection, sql):
    """How SQLite runs a statement, line by line; values do not matter to it here."""
    names = set(re.findall(r":(\w+)", sql))
    values = dict.fromkeys(names, 1) if names else (1,) * count_of_marks(sql)
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def count_of_marks(sql):
    numbered = {int(number) for number in re.findall(r"\?(\d+)", sql)}
    return max(numbered) if numbered else sql.count("?")


@pytest.mark.parametrize("name", load_queries())
def test_every_query_finds_its_rows_by_an_index(filled, name):
    steps = plan(filled, load_queries()[name])
    scans = [step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step]
    if name in WHOLE:
        assert all("thought_records" not in s or "INDEX" in s for s in scans), scans
        return
    assert not scans, steps
    # Order comes from an index, never from sorting what a large table gives.
    assert name.endswith("_entry_indices") or not any("TEMP B-TREE" in step for step in steps), (
        steps
    )


def test_the_entries_of_a_session_are_found_by_indexes(filled):
    steps = plan(filled, SESSION_ENTRIES)
    assert not [step for step in steps if step.startswith("SCAN")], steps


def test_every_query_is_asked_somewhere():
    code = "".join(file.read_text() for file in Path(queries.__file__).parent.glob("*.py"))
    assert [name for name in load_queries() if f'"{name}"' not in code] == []


def test_what_may_walk_a_whole_table_is_still_there():
    assert set(WHOLE) <= set(load_queries())


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"status": "PLAN"},
        {"project_id": "p"},
        {"project_id": None},
        {"status": "PLAN", "project_id": "p"},
        {"include_deleted": True},
    ],
)
def test_lists_of_tasks_come_from_the_indexes_of_current_versions(ledger, wanted):
    for number in range(20):
        ledger.create_task(title="t", project_id="p" if number % 2 else None)
    ran = run_traced(ledger, lambda: ledger.list_tasks(**wanted))
    listed = [sql for sql in ran if "superseded_by IS NULL" in sql]
    assert listed
    with sqlite3.connect(ledger.location) as connection:
        for sql in listed:
            steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
            assert any("USING" in step and "INDEX idx_tasks_" in step for step in steps), steps
    connection.close()


def run_traced(ledger, call):
    """The statements that a reading call runs."""
    len(ledger)
    (reader,) = ledger._context.store._idle
    ran = []
    reader.set_trace_callback(ran.append)
    call()
    reader.set_trace_callback(None)
    return ran


def test_the_ten_thousandth_record_of_a_chain_costs_what_the_first_did(ledger):
    """Counted in steps of SQLite's machine, which do not depend on the load of this one."""

    def steps_of(call):
        writer = ledger._context.store._committer.connection()
        count = [0]

        def tick():
            count[0] += 1

        writer.set_progress_handler(tick, 1)
        call()
        writer.set_progress_handler(None, 1)
        return count[0]

    def record():
        ledger._context.store._committer._tips.clear()
        ledger.record_thought(**thought(0))

    record()
    first = steps_of(record)
    ledger.record_thoughts([thought(0)] * 10_000)
    assert steps_of(record) <= first * 1.2


def test_vacuum_keeps_every_index(path):
    with affidavit.open(path) as ledger:
        fill(ledger)
        before = [record.to_dict() for record in ledger.iter_thoughts()]
        tasks = ledger.list_tasks()
        seals = [ledger.merkle_root(name) for name in ("s1", "s3")]
    connection = sqlite3.connect(path)
    connection.execute("VACUUM")
    connection.close()
    with affidavit.open(path) as ledger:
        assert [record.to_dict() for record in ledger.iter_thoughts()] == before
        assert ledger.list_tasks() == tasks
        assert [ledger.merkle_root(name) for name in ("s1", "s3")] == seals
        assert ledger.verify().valid
        assert ledger.rebuild(check=True).valid
        ledger.record_thought(**thought(0))
        assert ledger.verify().valid


def test_analyze_and_reindex_do_no_harm(path):
    """What a person may do with the shell."""
    with affidavit.open(path) as ledger:
        fill(ledger)
    connection = sqlite3.connect(path)
    for statement in ("ANALYZE", "REINDEX", "PRAGMA optimize", "PRAGMA wal_checkpoint(TRUNCATE)"):
        connection.execute(statement).fetchall()
    connection.close()
    with affidavit.open(path) as ledger:
        assert ledger.verify().valid
        ledger.record_thought(**thought(0))
        assert ledger.verify().valid
