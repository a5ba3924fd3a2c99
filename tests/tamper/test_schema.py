"""Attacks on the schema: guards taken away, definitions altered, things put in."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from affidavit import AffidavitError
from affidavit.stores.sqlite.queries import load_migrations
from tamper.attack import audit, first, looking, open_for_writing, rewrite_schema, tampering, told


def names_of(kind: str) -> list[str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for script in load_migrations():
            connection.executescript(script)
        sql = "SELECT name FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL"
        return [name for (name,) in connection.execute(sql, (kind,))]


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)


def schema_of(path: Path) -> dict[str, str]:
    with looking(path) as connection:
        return dict(connection.execute("SELECT name, sql FROM sqlite_schema").fetchall())


def check_found(path: Path, *names: str) -> None:
    report = audit(path)
    assert told(report) == [("schema_changed", None, "schema")] * len(names)
    for name, found in zip(names, report.findings, strict=True):
        assert name in found.message


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in ("trigger", "index", "view") for name in names_of(kind)],
)
def test_a_dropped_guard_index_or_view(victim: Path, kind: str, name: str) -> None:
    execute(victim, f"DROP {kind} {name}")
    check_found(victim, name)


@pytest.mark.parametrize("name", names_of("table"))
def test_a_dropped_table(victim: Path, name: str) -> None:
    execute(victim, f"DROP TABLE {name}")
    if name == "log":
        with pytest.raises(AffidavitError):
            audit(victim)
        return
    report = audit(victim)
    assert first(report).code == "schema_changed"
    assert any(name in found.message for found in report.findings)


@pytest.mark.parametrize("name", names_of("trigger"))
def test_a_guard_that_guards_nothing(victim: Path, name: str) -> None:
    sql = schema_of(victim)[name]
    execute(victim, f"DROP TRIGGER {name}")
    head = sql[: sql.index("BEGIN")]
    execute(victim, f"{head}BEGIN SELECT 1; END")
    check_found(victim, name)


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("CREATE TABLE notes (note TEXT)", "notes"),
        ("CREATE VIEW thoughts AS SELECT * FROM thought_records", "thoughts"),
        ("CREATE INDEX idx_more ON log (leaf_hash)", "idx_more"),
        ("CREATE TRIGGER quiet AFTER INSERT ON log BEGIN SELECT 1; END", "quiet"),
        (
            "CREATE TRIGGER forger AFTER INSERT ON log BEGIN DELETE FROM idempotency_keys; END",
            "forger",
        ),
        ("CREATE VIRTUAL TABLE words USING fts5 (word)", "words"),
    ],
)
def test_something_put_into_the_schema(victim: Path, sql: str, name: str) -> None:
    execute(victim, sql)
    report = audit(victim)
    assert any(f" {name} " in f" {found.message} " for found in report.findings)
    assert {found.code for found in report.findings} == {"schema_changed"}


ALTERED: dict[str, tuple[str, Callable[[str], str]]] = {
    "another default": (
        "setting_changes",
        lambda sql: sql.replace("changed_by  TEXT", "changed_by  TEXT DEFAULT 'nobody'"),
    ),
    "no longer strict": ("thought_records", lambda sql: sql.replace(" STRICT", "")),
    "null allowed": ("log", lambda sql: sql.replace("BLOB NOT NULL", "BLOB", 1)),
    "another type": ("seals", lambda sql: sql.replace("at                  INTEGER", "at TEXT")),
    "no longer unique": (
        "idx_trail_task",
        lambda sql: sql.replace("(task_id, created_at)", "(task_id)"),
    ),
    "another query": ("tasks", lambda sql: sql.replace("IS NULL", "IS NOT NULL")),
    "only a comment": ("audit_events", lambda sql: sql + " -- harmless"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_definition(victim: Path, what: str) -> None:
    name, alter = ALTERED[what]
    sql = schema_of(victim)[name]
    assert alter(sql) != sql
    rewrite_schema(victim, name, alter(sql))
    report = audit(victim)
    assert first(report).code == "schema_changed"
    assert name in first(report).message


@pytest.mark.parametrize(
    "table", [name for name in names_of("table") if name != "idempotency_keys"]
)
def test_a_column_added(victim: Path, table: str) -> None:
    execute(victim, f"ALTER TABLE {table} ADD COLUMN remark TEXT")
    report = audit(victim)
    assert first(report).code == "schema_changed"
    assert table in first(report).message


def test_a_column_renamed(victim: Path) -> None:
    execute(victim, "ALTER TABLE seals RENAME COLUMN root TO top")
    report = audit(victim)
    assert first(report).code == "schema_changed"
    assert "seals" in first(report).message


@pytest.mark.parametrize("name", ["log", "log_refuses_update", "idx_trail_task", "tasks"])
def test_a_definition_that_is_no_text(victim: Path, name: str) -> None:
    """SQLite quotes it when it complains, in bytes that are no text either."""
    with closing(sqlite3.connect(victim, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        sql = "UPDATE sqlite_schema SET sql = CAST(? || x'20ff20' AS TEXT) WHERE name = ?"
        connection.execute(sql, (schema_of(victim)[name], name))
    with pytest.raises(AffidavitError) as caught:
        audit(victim)
    assert caught.value.code in ("ERR_INTEGRITY", "ERR_STORE_UNAVAILABLE")


def test_where_only_a_guard_is_missing_the_rest_is_checked_all_the_same(victim: Path) -> None:
    with tampering(victim) as connection:
        connection.execute("UPDATE thought_records SET content = 'x' WHERE log_index = 200")
    execute(victim, "DROP TRIGGER log_refuses_update; CREATE TABLE notes (note TEXT)")
    report = audit(victim)
    assert sorted(found.code for found in report.findings) == [
        "payload_mismatch",
        "schema_changed",
        "schema_changed",
    ]
    assert report.checked["entries"] == 784


def test_where_rows_cannot_be_read_the_report_says_that_they_were_not(victim: Path) -> None:
    execute(victim, "DROP TABLE seals")
    report = audit(victim)
    assert report.checked.get("entries", 0) == 0
    assert any("schema" in said for said in report.unchecked)


def test_guards_taken_away_for_a_change_and_put_back_leave_the_schema_equal(victim: Path) -> None:
    """What the attacks of this folder rest on."""
    before = schema_of(victim)
    with tampering(victim) as connection:
        connection.execute("UPDATE log SET leaf_hash = leaf_hash")
    assert schema_of(victim) == before
    assert audit(victim).valid


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE log SET entry = x'00'",
        "DELETE FROM log",
        "UPDATE thought_records SET content = 'x'",
        "DELETE FROM thought_records",
        "UPDATE sessions SET intent = 'x'",
        "UPDATE sessions SET ended_at = 'x' WHERE ended_index IS NOT NULL",
        "DELETE FROM sessions",
        "UPDATE seals SET root = 'x'",
        "DELETE FROM seals",
        "UPDATE task_versions SET title = 'x'",
        "UPDATE task_versions SET superseded_by = 1 WHERE superseded_by IS NOT NULL",
        "DELETE FROM task_versions",
        "UPDATE setting_changes SET new = '1'",
        "DELETE FROM setting_changes",
        "UPDATE calls SET outcome = 'ok'",
        "DELETE FROM calls",
        "UPDATE key_changes SET state = 'added'",
        "DELETE FROM key_changes",
        "UPDATE origin_changes SET origin = 'x'",
        "DELETE FROM origin_changes",
        "UPDATE merkle_nodes SET hash = x'00'",
        "DELETE FROM merkle_nodes",
    ],
)
def test_the_guards_stop_who_does_not_take_them_away(victim: Path, sql: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        execute(victim, sql)
    assert audit(victim).valid


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("PRAGMA user_version = 99", "ERR_LEDGER_TOO_NEW"),
        ("PRAGMA application_id = 7", "ERR_NOT_A_LEDGER"),
    ],
)
def test_a_file_that_says_it_is_something_else(victim: Path, sql: str, code: str) -> None:
    execute(victim, sql)
    with pytest.raises(AffidavitError) as caught:
        audit(victim)
    assert caught.value.code == code


def test_a_file_that_says_it_has_no_schema_is_sound_once_it_was_opened(victim: Path) -> None:
    execute(victim, "PRAGMA user_version = 0")
    with open_for_writing(victim) as ledger:
        assert ledger.verify().valid
