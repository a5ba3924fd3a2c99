"""Whole rows deleted, inserted, moved and swapped, in every table."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from affidavit.core.entry import commitment
from affidavit.core.views import TABLES
from tamper.attack import append, audit, log_size, looking, put_row, tampering, told, value_at
from tamper.forge import SALT, thought_body

VIEWS = {name: kind for kind, name in TABLES.items()}


def indices(path: Path, table: str) -> list[int]:
    with looking(path) as connection:
        rows = connection.execute(f"SELECT log_index FROM {table} ORDER BY log_index").fetchall()
    return [index for (index,) in rows]


def some(items: list[Any]) -> list[Any]:
    """The first, a middle and the last."""
    return [items[0], items[len(items) // 2], items[-1]]


def read_row(connection: sqlite3.Connection, table: str, index: int) -> Any:
    sql = f"SELECT * FROM {table} WHERE log_index = ?"
    return VIEWS[table]._make(connection.execute(sql, (index,)).fetchone())


# Deleted


@pytest.mark.parametrize("table", VIEWS)
@pytest.mark.parametrize("which", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_deleted_row_of_a_view(victim: Path, table: str, which: int) -> None:
    index = some(indices(victim, table))[which]
    with tampering(victim) as connection:
        connection.execute(f"DELETE FROM {table} WHERE log_index = ?", (index,))
    found = told(audit(victim))
    assert found[0] == ("view_missing", index, table)
    assert {code for code, _, _ in found[1:]} <= {"payload_lost"}
    assert {place for _, place, _ in found} == {index}


@pytest.mark.parametrize("table", VIEWS)
def test_a_view_without_rows(victim: Path, table: str) -> None:
    gone = indices(victim, table)
    with tampering(victim) as connection:
        connection.execute(f"DELETE FROM {table}")
    found = told(audit(victim))
    assert [index for code, index, _ in found if code == "view_missing"] == gone
    assert {code for code, _, _ in found} <= {"view_missing", "payload_lost"}
    assert {index for _, index, _ in found} == set(gone)


def test_all_views_without_rows(victim: Path) -> None:
    gone = sorted(index for table in VIEWS for index in indices(victim, table))
    with tampering(victim) as connection:
        for table in (*VIEWS, "merkle_nodes"):
            connection.execute(f"DELETE FROM {table}")
    found = told(audit(victim))
    assert [index for code, index, _ in found if code == "view_missing"] == gone
    assert {code for code, _, _ in found} == {"view_missing", "payload_lost", "tree_node_bad"}


@pytest.mark.parametrize("table", ["log", *VIEWS])
def test_rows_of_a_table_for_keys_are_no_facts(victim: Path, table: str) -> None:
    with tampering(victim) as connection:
        connection.execute("DELETE FROM idempotency_keys")
    assert audit(victim).valid
    assert indices(victim, table)


def test_the_first_entry_deleted(victim: Path) -> None:
    with tampering(victim) as connection:
        connection.execute("DELETE FROM log WHERE log_index = 0")
    assert told(audit(victim)) == [("index_gap", 0, "log")]


def test_every_entry_deleted_and_the_views_left(victim: Path) -> None:
    rows = sorted(index for table in VIEWS for index in indices(victim, table))
    with tampering(victim) as connection:
        first = connection.execute("SELECT * FROM log WHERE log_index = 0").fetchone()
        connection.execute("DELETE FROM log")
        connection.execute("INSERT INTO log VALUES (?, ?, ?)", first)
    found = told(audit(victim))
    assert [index for code, index, _ in found if code == "view_extra"] == rows


@pytest.mark.parametrize("kind", sorted({"setting.changed", "session.ended", "task.deleted"}))
def test_an_entry_deleted_from_the_log_alone(victim: Path, kind: str) -> None:
    with tampering(victim) as connection:
        index = find_entry(connection, kind)
        connection.execute("DELETE FROM log WHERE log_index = ?", (index,))
    found = told(audit(victim))
    assert len(found) <= 4, found
    assert ("index_gap", index, "log") in found
    assert min(place for _, place, _ in found) == index or kind in ("session.ended", "task.deleted")


def find_entry(connection: sqlite3.Connection, kind: str, number: int = 1) -> int:
    """Where the second (or another) entry of a kind is."""
    found = [n for n in range(log_size(connection)) if value_at(connection, n)["kind"] == kind]
    return found[number]


@pytest.mark.parametrize("index", [200, 391, 780])
def test_a_record_deleted_from_the_log_alone(victim: Path, index: int) -> None:
    with tampering(victim) as connection:
        connection.execute("DELETE FROM log WHERE log_index = ?", (index,))
    found = told(audit(victim))
    assert len(found) <= 4, found
    assert found[0] == ("index_gap", index, "log")
    assert ("view_extra", index, "thought_records") in found


@pytest.mark.parametrize("index", [200, 391, 780])
def test_a_record_deleted_from_log_and_view(victim: Path, index: int) -> None:
    with tampering(victim) as connection:
        task_id = value_at(connection, index)["body"]["task_id"]
        connection.execute("DELETE FROM log WHERE log_index = ?", (index,))
        connection.execute("DELETE FROM thought_records WHERE log_index = ?", (index,))
        sql = "SELECT min(log_index) FROM thought_records WHERE task_id = ? AND log_index > ?"
        after = connection.execute(sql, (task_id, index)).fetchone()[0]
    found = told(audit(victim))
    broken = [] if after is None else [("chain_broken", after, "thought_records.prev_hash")]
    assert found == [("index_gap", index, "log"), *broken]


def test_a_bound_record_deleted_from_log_and_view_breaks_its_chain_once(victim: Path) -> None:
    with tampering(victim) as connection:
        sql = "SELECT log_index FROM thought_records WHERE session_id = 'b-open'"
        first, second, third, *_ = [index for (index,) in connection.execute(sql).fetchall()]
        connection.execute("DELETE FROM log WHERE log_index = ?", (second,))
        connection.execute("DELETE FROM thought_records WHERE log_index = ?", (second,))
    found = told(audit(victim))
    assert len(found) <= 4, found
    assert found[0] == ("index_gap", second, "log")
    assert ("chain_broken", third) in [one[:2] for one in found]
    assert first < second


def test_a_sealed_record_deleted_from_log_and_view(victim: Path) -> None:
    with tampering(victim) as connection:
        sql = "SELECT log_index FROM thought_records WHERE session_id = 'b-sealed'"
        _, second, *_ = [index for (index,) in connection.execute(sql).fetchall()]
        sql = "SELECT log_index FROM seals WHERE session_id = 'b-sealed'"
        seal = connection.execute(sql).fetchone()[0]
        connection.execute("DELETE FROM log WHERE log_index = ?", (second,))
        connection.execute("DELETE FROM thought_records WHERE log_index = ?", (second,))
    found = told(audit(victim))
    assert len(found) <= 4, found
    assert found[0] == ("index_gap", second, "log")
    assert ("seal_mismatch", seal, "seals.root") in found


def test_a_stretch_of_the_log_deleted(victim: Path) -> None:
    with tampering(victim) as connection:
        connection.execute("DELETE FROM log WHERE log_index BETWEEN 130 AND 149")
        for table in VIEWS:
            connection.execute(f"DELETE FROM {table} WHERE log_index BETWEEN 130 AND 149")
    report = audit(victim)
    assert told(report)[0] == ("index_gap", 130, "log")
    assert "entries 130 to 149" in report.findings[0].message
    # Nine tasks are thought about in this stretch: each chain breaks once.
    assert len(told(report)) <= 1 + 9


def test_the_last_entry_deleted_from_the_log_alone(victim: Path) -> None:
    with tampering(victim) as connection:
        index = log_size(connection) - 1
        connection.execute("DELETE FROM log WHERE log_index = ?", (index,))
    assert told(audit(victim)) == [("view_extra", index, "thought_records")]


# Inserted


def forged_copy(connection: sqlite3.Connection, table: str, source: int, target: int) -> None:
    """A row of a view once more under another index, with other names where one must be unique."""
    row = read_row(connection, table, source)._replace(log_index=target)
    if table == "thought_records":
        row = row._replace(id="forged", hash="f" * 64)
    elif table in ("sessions", "seals"):
        row = row._replace(session_id="forged")
    put_row(connection, row)


@pytest.mark.parametrize("table", VIEWS)
@pytest.mark.parametrize("where", ["before all", "at another kind's entry", "behind all"])
def test_a_row_inserted_into_a_view(victim: Path, table: str, where: str) -> None:
    taken = indices(victim, table)
    with tampering(victim) as connection:
        free = next(n for n in range(taken[1], log_size(connection)) if n not in taken)
        target = {"before all": -1, "behind all": log_size(connection) + 5}.get(where, free)
        forged_copy(connection, table, taken[0], target)
    found = told(audit(victim))
    assert found == [("view_extra", target, table)]


@pytest.mark.parametrize("table", VIEWS)
def test_a_forged_row_behind_all(victim: Path, table: str) -> None:
    """A row with names of its own: a session, a task, a record nobody wrote."""
    with tampering(victim) as connection:
        index = log_size(connection)
        forged_copy(connection, table, indices(victim, table)[-1], index)
        if table == "task_versions":
            connection.execute("UPDATE task_versions SET id = 'x' WHERE log_index = ?", (index,))
    assert told(audit(victim)) == [("view_extra", index, table)]


def test_a_forged_version_between_two_of_its_task(victim: Path) -> None:
    """The version behind a forged one is judged by the log, not by the forged row."""
    with tampering(victim) as connection:
        sql = "SELECT log_index, superseded_by FROM task_versions WHERE superseded_by IS NOT NULL"
        taken = set(indices(victim, "task_versions"))
        source, after = next(
            (a, b)
            for a, b in connection.execute(sql).fetchall()
            if any(n not in taken for n in range(a + 1, b))
        )
        target = next(n for n in range(source + 1, after) if n not in taken)
        row = read_row(connection, "task_versions", source)
        put_row(connection, row._replace(log_index=target, status="DONE", assignee="mallory"))
    assert told(audit(victim)) == [("view_extra", target, "task_versions")]


def test_a_forged_record_without_its_row(victim: Path) -> None:
    with tampering(victim) as connection:
        index = append(connection, "thought.recorded", thought_body(connection, "x", None, {}))
    assert told(audit(victim)) == [("view_missing", index, "thought_records")]


def test_a_forged_task_without_its_row(victim: Path) -> None:
    body: dict[str, Any] = dict.fromkeys(("description", "project_id", "priority", "assignee"))
    body |= {"task_id": "forged", "status": "INIT", "title": commitment(SALT, "forged")}
    with tampering(victim) as connection:
        index = append(connection, "task.created", body)
    assert told(audit(victim)) == [
        ("view_missing", index, "task_versions"),
        ("payload_lost", index, "task_versions.title"),
    ]


def test_a_forged_setting_without_its_row(victim: Path) -> None:
    body = {"name": "writeback", "old": "any", "new": "reflection", "by": None}
    with tampering(victim) as connection:
        index = append(connection, "setting.changed", body)
    assert told(audit(victim)) == [("view_missing", index, "setting_changes")]


def test_an_entry_repeated_behind_the_last_one(victim: Path) -> None:
    with tampering(victim) as connection:
        body = value_at(connection, 391)["body"]
        index = append(connection, "thought.recorded", body)
    found = told(audit(victim))
    assert found[0] == ("view_missing", index, "thought_records")
    assert {place for _, place, _ in found} == {index}


def test_an_update_of_a_task_that_was_never_created(victim: Path) -> None:
    with tampering(victim) as connection:
        index = append(connection, "task.deleted", {"task_id": "nowhere", "reason": None})
    found = told(audit(victim))
    assert ("chain_broken", index, "task_versions") in found
    assert {place for _, place, _ in found} == {index}


def test_a_task_created_twice(victim: Path) -> None:
    with tampering(victim) as connection:
        body = value_at(connection, find_entry(connection, "task.created"))["body"]
        index = append(connection, "task.created", body)
    found = told(audit(victim))
    assert ("chain_broken", index, "task_versions") in found
    assert {place for _, place, _ in found} == {index}


# Moved


@pytest.mark.parametrize("table", VIEWS)
@pytest.mark.parametrize("target", [-(2**63), -1, 2_000, 2**63 - 1])
@pytest.mark.parametrize("which", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_row_moved_in_a_view(victim: Path, table: str, target: int, which: int) -> None:
    index = some(indices(victim, table))[which]
    with tampering(victim) as connection:
        sql = f"UPDATE {table} SET log_index = ? WHERE log_index = ?"
        connection.execute(sql, (target, index))
    found = told(audit(victim))
    assert ("view_missing", index, table) in found
    assert ("view_extra", target, table) in found
    assert {place for _, place, _ in found} == {index, target}


@pytest.mark.parametrize("table", VIEWS)
def test_a_row_moved_to_the_entry_of_another_kind(victim: Path, table: str) -> None:
    taken = indices(victim, table)
    with tampering(victim) as connection:
        free = next(n for n in range(taken[1], log_size(connection)) if n not in taken)
        sql = f"UPDATE {table} SET log_index = ? WHERE log_index = ?"
        connection.execute(sql, (free, taken[0]))
    found = told(audit(victim))
    assert found[0] == ("view_missing", taken[0], table)
    assert ("view_extra", free, table) in found
    assert {place for _, place, _ in found} == {taken[0], free}


@pytest.mark.parametrize("target", [-(2**63), -1, 2_000, 2**63 - 1])
@pytest.mark.parametrize("index", [391, 783], ids=["middle", "last"])
def test_an_entry_moved_in_the_log(victim: Path, index: int, target: int) -> None:
    with tampering(victim) as connection:
        sql = "UPDATE log SET log_index = ? WHERE log_index = ?"
        connection.execute(sql, (target, index))
    report = audit(victim)
    found = told(report)
    assert found[0] == ("index_gap", min(index, target), "log")
    assert (index in [place for code, place, _ in found if code == "index_gap"]) == (
        target > index or index < 783
    )
    assert ("view_extra", index, "thought_records") in found
    assert report.finding_count <= 6, found


# Swapped


@pytest.mark.parametrize("table", VIEWS)
def test_two_rows_swapped_in_a_view(victim: Path, table: str) -> None:
    first, _, last = some(indices(victim, table))
    with tampering(victim) as connection:
        one = read_row(connection, table, first)
        other = read_row(connection, table, last)
        sql = f"DELETE FROM {table} WHERE log_index IN (?, ?)"
        connection.execute(sql, (first, last))
        put_row(connection, one._replace(log_index=last))
        put_row(connection, other._replace(log_index=first))
    found = told(audit(victim))
    assert {place for _, place, _ in found} == {first, last}, found
    assert {code for code, _, _ in found} <= {"view_differs", "payload_mismatch", "payload_lost"}


PAYLOADS = [
    ("sessions", "intent", True),
    ("task_versions", "title", True),
    ("task_versions", "description", True),
    ("task_versions", "reason", True),
    ("thought_records", "content", False),
]


@pytest.mark.parametrize(("table", "name", "salted"), PAYLOADS, ids=[p[1] for p in PAYLOADS])
def test_two_payloads_swapped_with_their_salts(
    victim: Path, table: str, name: str, salted: bool
) -> None:
    with tampering(victim) as connection:
        sql = f"SELECT log_index FROM {table} WHERE {name} IS NOT NULL ORDER BY log_index"
        first, _, last = some([index for (index,) in connection.execute(sql).fetchall()])
        for column in (name, f"{name}_salt") if salted else (name,):
            sql = f"SELECT {column} FROM {table} WHERE log_index = ?"
            one, other = (connection.execute(sql, (n,)).fetchone()[0] for n in (first, last))
            sql = f"UPDATE {table} SET {column} = ? WHERE log_index = ?"
            connection.execute(sql, (other, first))
            connection.execute(sql, (one, last))
    place = f"{table}.{name}"
    assert told(audit(victim)) == [
        ("payload_mismatch", first, place),
        ("payload_mismatch", last, place),
    ]


@pytest.mark.parametrize(("one", "other"), [(200, 201), (200, 391), (200, 780), (770, 780)])
def test_two_entries_swapped_with_their_hashes(victim: Path, one: int, other: int) -> None:
    with tampering(victim) as connection:
        for old, new in ((one, -5), (other, one), (-5, other)):
            sql = "UPDATE log SET log_index = ? WHERE log_index = ?"
            connection.execute(sql, (new, old))
    found = told(audit(victim))
    assert found[0][1] == one
    assert other in [place for _, place, _ in found]
    # At each of the two: the row, the record, the next one of its chain, the time, the tree.
    assert len(found) <= 12, found


def test_two_records_swapped_in_log_and_view(victim: Path) -> None:
    one, other = 770, 780
    with tampering(victim) as connection:
        for table in ("log", "thought_records"):
            for old, new in ((one, -5), (other, one), (-5, other)):
                sql = f"UPDATE {table} SET log_index = ? WHERE log_index = ?"
                connection.execute(sql, (new, old))
    found = told(audit(victim))
    assert found[0][1] == one
    assert {code for code, _, _ in found} == {"chain_broken"}
    assert len(found) <= 6, found


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("content = '', erased_at = '2026-01-01T00:00:00.000Z'", "erasure_unexplained erased_at"),
        ("content = ''", "payload_lost content"),
    ],
    ids=["and marked as erased", "and not marked"],
)
def test_a_text_erased_without_an_entry(victim: Path, sql: str, found: str) -> None:
    with tampering(victim) as connection:
        connection.execute(f"UPDATE thought_records SET {sql} WHERE log_index = 200")
    code, column = found.split()
    assert told(audit(victim)) == [(code, 200, f"thought_records.{column}")]


def test_the_list_of_what_was_erased_emptied(victim: Path) -> None:
    with tampering(victim) as connection:
        erased = connection.execute("SELECT count(*) FROM erasures").fetchone()[0]
        connection.execute("UPDATE erasures SET fields = '[]'")
    assert [code for code, *_ in told(audit(victim))] == ["view_differs"] * erased
