"""One change, one finding: what was changed is named, and nobody else is blamed."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from affidavit.core.entry import commitment
from affidavit.core.merkle import leaf_hash
from tamper.attack import (
    audit,
    canonical,
    entry_at,
    looking,
    replace_entry,
    tampering,
    told,
    value_at,
)
from tamper.forge import rehash_thought, thought_at

ALONE = 200
FINDINGS_MAX = 4


def find(path: Path, sql: str) -> int:
    with looking(path) as connection:
        return connection.execute(sql).fetchone()[0]


# A record of a sealed session, one of an open one, one that is the first of its task, and so on.
RECORDS = {
    "alone": f"SELECT {ALONE}",
    "in a sealed session": "SELECT log_index FROM thought_records"
    " WHERE session_id = 'a-sealed' AND session_seq = 3",
    "first of a sealed session": "SELECT log_index FROM thought_records"
    " WHERE session_id = 'b-sealed' AND session_seq = 0",
    "last of a sealed session": "SELECT max(log_index) FROM thought_records"
    " WHERE session_id = 'c-sealed'",
    "in an open session": "SELECT log_index FROM thought_records"
    " WHERE session_id = 'b-open' AND session_seq = 2",
    "last of all": "SELECT max(log_index) FROM thought_records",
    "first of all": "SELECT min(log_index) FROM thought_records",
}
FIELDS: dict[str, Any] = {
    "id": "forged",
    "type": None,
    "task_id": "another-task",
    "agent_id": "mallory",
    "timestamp": "2020-01-01T00:00:00Z",
    "prev_hash": "e" * 64,
    "hash": "f" * 64,
}
BOUND_FIELDS: dict[str, Any] = {
    "session_id": "c-open",
    "session_seq": 77,
    "content_hash": "a" * 64,
    "chain_hash": "b" * 64,
    "parent_chain_hash": "c" * 64,
}


def another(field: str, value: Any) -> Any:
    """A value this field may have, other than the one it has."""
    if field == "type":
        return "plan" if value != "plan" else "decision"
    return (FIELDS | BOUND_FIELDS)[field]


@pytest.mark.parametrize("where", RECORDS)
def test_content_edited(victim: Path, where: str) -> None:
    index = find(victim, RECORDS[where])
    with tampering(victim) as connection:
        sql = "UPDATE thought_records SET content = content || '!' WHERE log_index = ?"
        connection.execute(sql, (index,))
    assert told(audit(victim)) == [("payload_mismatch", index, "thought_records.content")]


@pytest.mark.parametrize("where", RECORDS)
def test_content_emptied(victim: Path, where: str) -> None:
    index = find(victim, RECORDS[where])
    with tampering(victim) as connection:
        sql = "UPDATE thought_records SET content = '' WHERE log_index = ?"
        connection.execute(sql, (index,))
    assert told(audit(victim)) == [("payload_lost", index, "thought_records.content")]


@pytest.mark.parametrize("where", RECORDS)
@pytest.mark.parametrize("field", FIELDS | BOUND_FIELDS)
def test_a_column_of_a_record_edited(victim: Path, where: str, field: str) -> None:
    index = find(victim, RECORDS[where])
    with tampering(victim) as connection:
        value = another(field, thought_at(connection, index)._asdict()[field])
        sql = f"UPDATE thought_records SET {field} = ? WHERE log_index = ?"
        connection.execute(sql, (value, index))
    assert told(audit(victim)) == [("view_differs", index, f"thought_records.{field}")]


@pytest.mark.parametrize("where", RECORDS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_an_entry_edited(victim: Path, where: str, field: str) -> None:
    index = find(victim, RECORDS[where])
    with tampering(victim) as connection:
        value = value_at(connection, index)
        value["body"][field] = another(field, value["body"][field])
        replace_entry(connection, index, canonical(value), rehash=False)
    assert told(audit(victim)) == [("entry_changed", index, f"log.entry {field}")]


@pytest.mark.parametrize("where", RECORDS)
@pytest.mark.parametrize("hours", [-1, 1, 100_000])
def test_the_time_of_an_entry_edited(victim: Path, where: str, hours: int) -> None:
    index = find(victim, RECORDS[where])
    with tampering(victim) as connection:
        value = value_at(connection, index)
        value["at"] += hours * 3_600_000_000
        replace_entry(connection, index, canonical(value), rehash=False)
    assert told(audit(victim)) == [("entry_changed", index, "log.entry at")]


@pytest.mark.parametrize("where", RECORDS)
def test_an_entry_that_is_no_entry_any_more(victim: Path, where: str) -> None:
    index = find(victim, RECORDS[where])
    with tampering(victim) as connection:
        replace_entry(connection, index, entry_at(connection, index)[1:], rehash=False)
    assert told(audit(victim)) == [("entry_changed", index, "log.entry")]


@pytest.mark.parametrize("index", range(0, 784, 6))
def test_a_leaf_hash_edited_anywhere(victim: Path, index: int) -> None:
    with tampering(victim) as connection:
        sql = "UPDATE log SET leaf_hash = ? WHERE log_index = ?"
        connection.execute(sql, (b"x" * 32, index))
    found = told(audit(victim))
    assert [one[:2] for one in found] == [("entry_changed", index)]


@pytest.mark.parametrize("index", range(1, 784, 6))
def test_an_entry_cut_anywhere(victim: Path, index: int) -> None:
    with tampering(victim) as connection:
        replace_entry(connection, index, entry_at(connection, index)[:-1], rehash=False)
    found = told(audit(victim))
    assert [one[:2] for one in found] == [("entry_changed", index)]


@pytest.mark.parametrize("start", range(1, 30))
def test_a_time_edited_in_an_entry_of_any_kind(victim: Path, start: int) -> None:
    """Settings, tasks and sessions: every kind is among the first entries."""
    index = 522 + start
    with tampering(victim) as connection:
        value = value_at(connection, index)
        value["at"] += 1
        replace_entry(connection, index, canonical(value), rehash=False)
    found = told(audit(victim))
    assert [one[:2] for one in found] == [("entry_changed", index)]


@pytest.mark.parametrize("kind", ["session.ended", "session.sealed", "session.started"])
def test_a_session_renamed_in_an_entry(victim: Path, kind: str) -> None:
    with tampering(victim) as connection:
        index = find_last(connection, kind)
        value = value_at(connection, index)
        value["body"]["session_id"] = "c-open"
        replace_entry(connection, index, canonical(value), rehash=False)
    found = told(audit(victim))
    assert found[0][:2] == ("entry_changed", index) or found[0][1] < index
    assert ("entry_changed", index) in [one[:2] for one in found]
    assert len(found) <= FINDINGS_MAX, found


def find_last(connection: sqlite3.Connection, kind: str) -> int:
    indices = range(783, 0, -1)
    return next(index for index in indices if value_at(connection, index)["kind"] == kind)


@pytest.mark.parametrize("where", RECORDS)
def test_content_and_hashes_of_a_row_edited_together(victim: Path, where: str) -> None:
    """The row agrees with itself; the entry, whose own hash holds, says otherwise."""
    index = find(victim, RECORDS[where])
    with tampering(victim) as connection:
        body = dict(value_at(connection, index)["body"])
        rehash_thought(body, "what was never said")
        sql = (
            "UPDATE thought_records SET content = ?, hash = ?, content_hash = ?, chain_hash = ?"
            " WHERE log_index = ?"
        )
        hashes = (body["hash"], body["content_hash"], body["chain_hash"])
        connection.execute(sql, ("what was never said", *hashes, index))
    assert told(audit(victim)) == [("view_differs", index, "thought_records.hash")]


@pytest.mark.parametrize("where", RECORDS)
def test_a_garbled_link_written_into_two_rows(victim: Path, where: str) -> None:
    """The next row links to what this one says, but neither is a hash."""
    index = find(victim, RECORDS[where])
    with tampering(victim) as connection:
        row = thought_at(connection, index)
        sql = "UPDATE thought_records SET chain_hash = 'no hash' WHERE log_index = ?"
        connection.execute(sql, (index,))
        sql = "UPDATE thought_records SET parent_chain_hash = 'no hash' WHERE parent_chain_hash = ?"
        follows = connection.execute(sql, (row.chain_hash,)).rowcount
    found = told(audit(victim))
    assert found[0] == ("view_differs", index, "thought_records.chain_hash")
    assert len(found) == 1 + follows


TASK_COLUMNS = ["status", "project_id", "priority", "assignee", "title_index", "created_at"]


@pytest.mark.parametrize("column", [*TASK_COLUMNS, "attempt", "created_index", "id"])
def test_a_version_of_a_task_edited_does_not_blame_the_next_one(victim: Path, column: str) -> None:
    sql = "SELECT superseded_by FROM task_versions WHERE superseded_by IS NOT NULL"
    index = find(victim, f"{sql} AND superseded_by > 280 ORDER BY log_index LIMIT 1")
    with tampering(victim) as connection:
        change = f"UPDATE task_versions SET {column} = 7 WHERE log_index = ?"
        connection.execute(change, (index,))
    assert told(audit(victim)) == [("view_differs", index, f"task_versions.{column}")]


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_version_of_a_task_deleted_does_not_blame_its_neighbours(
    victim: Path, number: int
) -> None:
    sql = "SELECT log_index FROM task_versions WHERE id = (SELECT id FROM task_versions"
    index = find(victim, f"{sql} LIMIT 1) ORDER BY log_index LIMIT 1 OFFSET {number}")
    with tampering(victim) as connection:
        connection.execute("DELETE FROM task_versions WHERE log_index = ?", (index,))
    found = told(audit(victim))
    assert found[0] == ("view_missing", index, "task_versions")
    assert {place for _, place, _ in found} == {index}


def test_the_row_of_a_session_deleted_does_not_blame_its_records(victim: Path) -> None:
    index = find(victim, "SELECT log_index FROM sessions WHERE session_id = 'b-sealed'")
    with tampering(victim) as connection:
        connection.execute("DELETE FROM sessions WHERE log_index = ?", (index,))
    assert told(audit(victim)) == [
        ("view_missing", index, "sessions"),
        ("payload_lost", index, "sessions.intent"),
    ]


def test_the_start_of_a_session_deleted_everywhere_is_told_once(victim: Path) -> None:
    index = find(victim, "SELECT log_index FROM sessions WHERE session_id = 'b-open'")
    with tampering(victim) as connection:
        connection.execute("DELETE FROM sessions WHERE log_index = ?", (index,))
        connection.execute("DELETE FROM log WHERE log_index = ?", (index,))
    found = told(audit(victim))
    assert found[0] == ("index_gap", index, "log")
    assert len(found) <= FINDINGS_MAX, found


@pytest.mark.parametrize("number", range(8))
def test_a_record_deleted_everywhere(victim: Path, number: int) -> None:
    """Any record of a sealed session: gap, both chains once, the seal once."""
    sql = "SELECT log_index FROM thought_records WHERE session_id = 'b-sealed'"
    index = find(victim, f"{sql} ORDER BY log_index LIMIT 1 OFFSET {number}")
    with tampering(victim) as connection:
        connection.execute("DELETE FROM thought_records WHERE log_index = ?", (index,))
        connection.execute("DELETE FROM log WHERE log_index = ?", (index,))
    found = told(audit(victim))
    assert found[0] == ("index_gap", index, "log")
    assert len(found) <= FINDINGS_MAX, found


@pytest.mark.parametrize("name", ["title", "description", "reason"])
def test_a_text_of_a_task_edited(victim: Path, name: str) -> None:
    sql = f"SELECT log_index FROM task_versions WHERE {name} IS NOT NULL"
    index = find(victim, f"{sql} AND superseded_by IS NOT NULL ORDER BY log_index DESC LIMIT 1")
    with tampering(victim) as connection:
        sql = f"UPDATE task_versions SET {name} = 'forged' WHERE log_index = ?"
        connection.execute(sql, (index,))
    assert told(audit(victim)) == [("payload_mismatch", index, f"task_versions.{name}")]


def test_an_intent_edited_in_row_and_entry_without_the_leaf_hash(victim: Path) -> None:
    index = find(victim, "SELECT log_index FROM sessions WHERE session_id = 'b-sealed'")
    with tampering(victim) as connection:
        value = value_at(connection, index)
        kept = leaf_hash(entry_at(connection, index))
        value["body"]["intent"] = commitment(b"n" * 32, "forged")
        replace_entry(connection, index, canonical(value), rehash=False)
        sql = "UPDATE sessions SET intent = 'forged', intent_salt = ? WHERE log_index = ?"
        connection.execute(sql, (b"n" * 32, index))
        assert kept != leaf_hash(entry_at(connection, index))
    found = told(audit(victim))
    assert found[0][:2] == ("entry_changed", index)
    assert len(found) <= FINDINGS_MAX, found
