"""The same attacks seen by `verify_chain`: which chain breaks, where, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit import InputError
from affidavit.verify.findings import ChainCount, ChainReport
from tamper.attack import looking, replace_entry, tampering
from tamper.forge import forge_thought, rewrite_thought, thought_at

SESSION, TASK = "b-open", "t-2"


def walk(path: Path, **wanted: Any) -> ChainReport:
    with affidavit.open(path, readonly=True) as ledger:
        return ledger.verify_chain(**wanted)


def records(path: Path, **where: str) -> list[tuple[int, str]]:
    """Index and id of every record of a task or a session."""
    ((column, value),) = where.items()
    with looking(path) as connection:
        sql = f"SELECT log_index, id FROM thought_records WHERE {column} = ? ORDER BY log_index"
        return connection.execute(sql, (value,)).fetchall()


def change(path: Path, index: int, column: str, value: Any, sql: str = "?") -> None:
    with tampering(path) as connection:
        statement = f"UPDATE thought_records SET {column} = {sql} WHERE log_index = ?"
        connection.execute(statement, (value, index))


def check_broken(report: ChainReport, index: int, record_id: str, reason: str) -> None:
    assert not report.valid
    assert report.broken_count > 0
    assert report.first_broken_index == index
    assert report.first_broken_at == record_id
    assert reason in (report.reason or "")


def test_every_chain_of_a_sound_ledger(original: Path) -> None:
    report = walk(original)
    with looking(original) as connection:
        count = "SELECT count(*) FROM thought_records"
        assert report.record_count == connection.execute(count).fetchone()[0]
        bound = connection.execute(f"{count} WHERE session_id IS NOT NULL").fetchone()[0]
        sessions = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
    assert report.valid
    assert report.broken_count == 0
    assert (report.first_broken_index, report.first_broken_at, report.reason) == (None, None, None)
    assert sum(chain.record_count for chain in report.by_session.values()) == bound
    assert len(report.by_session) == sessions


def test_one_chain_of_a_sound_ledger(original: Path) -> None:
    by_task = walk(original, task_id=TASK)
    assert by_task.valid
    assert by_task.record_count == len(records(original, task_id=TASK))
    assert list(by_task.by_task) == [TASK]
    assert by_task.by_session == {}
    by_session = walk(original, session_id=SESSION)
    assert by_session.valid
    assert by_session.record_count == len(records(original, session_id=SESSION)) == 7
    assert list(by_session.by_session) == [SESSION]
    assert by_session.by_task == {}


def test_a_task_and_a_session_at_once_are_refused(original: Path) -> None:
    with pytest.raises(InputError) as caught:
        walk(original, task_id=TASK, session_id=SESSION)
    assert caught.value.field == "session_id"


@pytest.mark.parametrize("wanted", [{"task_id": "nobody"}, {"session_id": "nobody"}])
def test_a_chain_of_nothing_is_valid_and_empty(original: Path, wanted: dict[str, str]) -> None:
    report = walk(original, **wanted)
    assert report.valid
    assert report.record_count == 0


def test_a_ledger_of_nothing_is_valid_and_empty(tmp_path: Path) -> None:
    with affidavit.open(tmp_path / "empty.db") as ledger:
        report = ledger.verify_chain()
    assert report == ChainReport(
        valid=True,
        record_count=0,
        broken_count=0,
        first_broken_index=None,
        first_broken_at=None,
        reason=None,
        by_task={},
        by_session={},
    )


@pytest.mark.parametrize("place", [0, 3, 6], ids=["first", "middle", "last"])
@pytest.mark.parametrize("wanted", [{"session_id": SESSION}, {"task_id": TASK}, {}])
def test_content_edited(victim: Path, place: int, wanted: dict[str, str]) -> None:
    index, record_id = records(victim, session_id=SESSION)[place]
    change(victim, index, "content", "forged")
    check_broken(walk(victim, **wanted), index, record_id, "content")


@pytest.mark.parametrize("wanted", [{"session_id": SESSION}, {"task_id": TASK}, {}])
def test_the_walk_stops_at_the_first_break(victim: Path, wanted: dict[str, str]) -> None:
    for index, _ in records(victim, session_id=SESSION)[2:5]:
        change(victim, index, "content", "forged")
    index, record_id = records(victim, session_id=SESSION)[2]
    report = walk(victim, **wanted)
    check_broken(report, index, record_id, "content")
    assert report.broken_count == 1


def test_all_counts_every_break(victim: Path) -> None:
    for index, _ in records(victim, session_id=SESSION)[2:5]:
        change(victim, index, "content", "forged")
    report = walk(victim, session_id=SESSION, all=True)
    assert (report.broken_count, report.record_count) == (3, 7)
    assert report.by_session[SESSION] == ChainCount(valid=False, record_count=7, broken_count=3)
    report = walk(victim, task_id=TASK, all=True)
    assert report.broken_count == 3
    assert report.record_count == len(records(victim, task_id=TASK))
    everything = walk(victim, all=True)
    assert everything.by_task[TASK].broken_count == 3
    assert everything.by_session[SESSION].broken_count == 3
    # A bound record is a link of two chains, and breaks both.
    assert everything.broken_count == 6
    assert len(everything.by_session) == 27
    assert [name for name, chain in everything.by_task.items() if not chain.valid] == [TASK]


def test_another_chain_does_not_notice(victim: Path) -> None:
    index, _ = records(victim, session_id=SESSION)[3]
    change(victim, index, "content", "forged")
    assert walk(victim, session_id="b-sealed").valid
    assert walk(victim, task_id="t-1").valid


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "forged"),
        ("type", "plan"),
        ("agent_id", "mallory"),
        ("timestamp", "2020-01-01T00:00:00Z"),
        ("hash", "f" * 64),
        ("prev_hash", "e" * 64),
        ("created_at", "2020-01-01T00:00:00Z"),
        ("content_hash", "a" * 64),
        ("chain_hash", "b" * 64),
        ("parent_chain_hash", "c" * 64),
        ("parent_chain_hash", "no hash at all"),
        ("chain_hash", "no hash at all"),
        ("parent_chain_hash", None),
        ("session_seq", 77),
        ("session_seq", None),
        ("at", 1),
        ("erased_at", "2020-01-01T00:00:00Z"),
    ],
)
@pytest.mark.parametrize("wanted", [{"session_id": SESSION}, {"task_id": TASK}, {}])
def test_a_column_edited(victim: Path, column: str, value: Any, wanted: dict[str, str]) -> None:
    index, record_id = records(victim, session_id=SESSION)[3]
    change(victim, index, column, value)
    if column == "id":
        record_id = value
    check_broken(walk(victim, **wanted), index, record_id, column)


@pytest.mark.parametrize("column", ["id", "agent_id", "content", "hash", "prev_hash", "timestamp"])
@pytest.mark.parametrize("wanted", [{"session_id": SESSION}, {"task_id": TASK}, {}])
def test_a_column_that_is_no_text(victim: Path, column: str, wanted: dict[str, str]) -> None:
    index, _ = records(victim, session_id=SESSION)[3]
    change(victim, index, column, b"\xff\xfe", "CAST(? AS TEXT)")
    report = walk(victim, **wanted)
    assert not report.valid
    assert report.first_broken_index == index


@pytest.mark.parametrize("value", ["another-task", "no text"])
def test_the_last_record_of_a_task_moved_to_another(victim: Path, value: str) -> None:
    index, record_id = records(victim, task_id="alone-3")[-1]
    if value == "no text":
        change(victim, index, "task_id", b"\xff", "CAST(? AS TEXT)")
    else:
        change(victim, index, "task_id", value)
    check_broken(walk(victim), index, record_id, "")


def test_a_session_that_is_no_text(victim: Path) -> None:
    index, record_id = records(victim, session_id=SESSION)[-1]
    change(victim, index, "session_id", b"\xff", "CAST(? AS TEXT)")
    check_broken(walk(victim), index, record_id, "session_id")


def test_an_entry_that_is_missing(victim: Path) -> None:
    index, record_id = records(victim, session_id=SESSION)[3]
    with tampering(victim) as connection:
        connection.execute("DELETE FROM log WHERE log_index = ?", (index,))
    for wanted in ({"session_id": SESSION}, {"task_id": TASK}, {}):
        check_broken(walk(victim, **wanted), index, record_id, "missing")


def test_an_entry_that_is_not_canonical(victim: Path) -> None:
    index, record_id = records(victim, session_id=SESSION)[3]
    with tampering(victim) as connection:
        sql = "SELECT entry FROM log WHERE log_index = ?"
        entry = connection.execute(sql, (index,)).fetchone()[0]
        replace_entry(connection, index, entry + b" ")
    for wanted in ({"session_id": SESSION}, {"task_id": TASK}, {}):
        check_broken(walk(victim, **wanted), index, record_id, "canonical")


def test_a_record_deleted_everywhere_breaks_the_link_behind_it(victim: Path) -> None:
    (gone, _), (index, record_id) = records(victim, session_id=SESSION)[3:5]
    with tampering(victim) as connection:
        for table in ("log", "thought_records"):
            connection.execute(f"DELETE FROM {table} WHERE log_index = ?", (gone,))
    check_broken(walk(victim, session_id=SESSION), index, record_id, "parent_chain_hash")
    report = walk(victim, task_id=TASK)
    assert not report.valid
    assert "prev_hash" in (report.reason or "")


def test_a_record_rewritten_with_its_own_hashes_breaks_the_link_behind_it(victim: Path) -> None:
    (index, _), (after, record_id) = records(victim, session_id=SESSION)[3:5]
    with tampering(victim) as connection:
        rewrite_thought(connection, index, "what was never said")
    check_broken(walk(victim, session_id=SESSION), after, record_id, "parent_chain_hash")


def test_two_records_swapped_in_log_and_view(victim: Path) -> None:
    (one, _), (other, record_id) = records(victim, task_id="alone-3")[1:3]
    with tampering(victim) as connection:
        for table in ("log", "thought_records"):
            for old, new in ((one, -5), (other, one), (-5, other)):
                sql = f"UPDATE {table} SET log_index = ? WHERE log_index = ?"
                connection.execute(sql, (new, old))
    check_broken(walk(victim, task_id="alone-3"), one, record_id, "prev_hash")


def test_the_genesis_of_a_session_edited(victim: Path) -> None:
    index, record_id = records(victim, session_id=SESSION)[0]
    with tampering(victim) as connection:
        sql = "UPDATE sessions SET genesis = ? WHERE session_id = ?"
        connection.execute(sql, ("d" * 64, SESSION))
    check_broken(walk(victim, session_id=SESSION), index, record_id, "parent_chain_hash")
    assert walk(victim, task_id=TASK).valid


@pytest.mark.parametrize(
    ("changes", "sees_it"),
    [
        ({"prev_hash": "e" * 64}, "task"),
        ({"parent_chain_hash": "e" * 64}, "session"),
        ({"session_seq": 99}, "session"),
    ],
)
def test_each_walk_looks_at_its_own_links(
    victim: Path, changes: dict[str, Any], sees_it: str
) -> None:
    with tampering(victim) as connection:
        index = forge_thought(connection, "unlinked", "c-open", task_id=TASK, **changes)
        record_id = thought_at(connection, index).id
    by_task, by_session = walk(victim, task_id=TASK), walk(victim, session_id="c-open")
    seen, unseen = (by_task, by_session) if sees_it == "task" else (by_session, by_task)
    check_broken(seen, index, record_id, next(iter(changes)))
    assert unseen.valid


def test_a_body_key_no_check_knows_breaks_no_chain(victim: Path) -> None:
    with tampering(victim) as connection:
        forge_thought(connection, "x", "c-open", redaction={"count": 1, "rules": "2026-04"})
    assert walk(victim, session_id="c-open").valid
    assert walk(victim, task_id="t-1").valid
    assert walk(victim).valid


def test_a_seal_is_refused_over_a_broken_chain(victim: Path) -> None:
    index, record_id = records(victim, session_id="c-open")[3]
    change(victim, index, "content", "forged")
    with affidavit.open(victim, clock=lambda: 1_776_390_000_000_000) as ledger:
        before = len(ledger)
        with pytest.raises(affidavit.IntegrityViolation) as caught:
            ledger.seal_session("c-open")
        assert len(ledger) == before
    assert caught.value.code == "ERR_CHAIN_BROKEN"
    assert caught.value.details["index"] == index
    assert caught.value.details["id"] == record_id


@pytest.mark.parametrize("value", ["no hash at all", "c" * 64, None])
def test_a_seal_is_refused_over_a_garbled_link(victim: Path, value: str | None) -> None:
    index, _ = records(victim, session_id="c-open")[3]
    change(victim, index, "parent_chain_hash", value)
    with (
        affidavit.open(victim, clock=lambda: 1_776_390_000_000_000) as ledger,
        pytest.raises(affidavit.IntegrityViolation) as caught,
    ):
        ledger.seal_session("c-open")
    assert caught.value.code == "ERR_CHAIN_BROKEN"
    assert caught.value.details["index"] == index
