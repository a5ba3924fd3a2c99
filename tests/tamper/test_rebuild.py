"""Views damaged and derived again: equal tables, nothing invented, nothing of value thrown away."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit import AffidavitError, IntegrityViolation
from affidavit.core.views import LINKS, TABLES
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.ledger.results import Rebuild
from tamper.attack import (
    audit,
    looking,
    open_for_writing,
    put_row,
    replace_entry,
    row_at,
    tampering,
    told,
    without_types,
)

PAYLOADS = ("content", "intent", "title", "description", "reason", "args_sha256", "arguments_json")
PAYLOADS += ("outcome_sha256", "outcome_json", "error_msg", "attributes_json", "diffs_json")
KEPT = {"log_index", *PAYLOADS, *(f"{name}_salt" for name in PAYLOADS)}
# Not a time long ago: whoever opens the ledger ends sessions that are idle for a day.
LATE = "1800000000000000"
UNIQUE = [("thought_records", "id"), ("thought_records", "hash")]
UNIQUE += [("sessions", "session_id"), ("seals", "session_id")]
COLUMNS = [
    (table, name) for kind, table in TABLES.items() for name in kind._fields if name not in KEPT
]
FREE_OF_PAYLOADS = ("seals", "setting_changes", "merkle_nodes")


def contents(path: Path) -> dict[str, Any]:
    """Every row of every table in order, and the whole schema."""
    with looking(path) as connection:
        schema = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
        tables = [name for kind, name, _ in schema if kind == "table"]
        found: dict[str, Any] = {
            table: connection.execute(
                f"SELECT * FROM {table} NOT INDEXED ORDER BY 1, 2, 3"
            ).fetchall()
            for table in tables
        }
    return found | {"schema": set(schema)}


def rebuild(path: Path, *, check: bool = False) -> Rebuild:
    with open_for_writing(path) as ledger:
        return ledger.rebuild(check=check)


def check_restored(path: Path, original: Path) -> None:
    """Damage is reported, put right, and then there is nothing left to say."""
    damaged = contents(path)
    before = rebuild(path, check=True)
    assert not before.valid
    assert not before.repaired
    assert contents(path) == damaged
    after = rebuild(path)
    assert after.repaired
    assert after.difference_count == len(after.differences) > 0
    assert contents(path) == contents(original)
    assert rebuild(path, check=True).valid
    assert told(audit(path)) == []


def test_a_sound_ledger_is_left_as_it_is(victim: Path, original: Path) -> None:
    for check in (True, False):
        result = rebuild(victim, check=check)
        assert result.valid
        assert not result.repaired
        assert result.remaining_count == 0
        assert (result.difference_count, result.differences) == (0, ())
        assert contents(victim) == contents(original)


def test_only_looking_writes_nothing(victim: Path) -> None:
    with tampering(victim) as connection:
        connection.execute("DELETE FROM seals")
        connection.execute("UPDATE sessions SET caller = 'mallory'")
    before = victim.read_bytes()
    with affidavit.open(victim, readonly=True) as ledger:
        assert not ledger.rebuild(check=True).valid
    assert victim.read_bytes() == before


def is_integer(connection: sqlite3.Connection, table: str, column: str) -> bool:
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return next(type_ for _, name, type_, *_ in columns if name == column) == "INTEGER"


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=[".".join(pair) for pair in COLUMNS])
def test_a_column_damaged_in_every_row(
    victim: Path, original: Path, table: str, column: str
) -> None:
    unique = " || log_index" if (table, column) in UNIQUE else ""
    with tampering(victim) as connection:
        value = LATE if is_integer(connection, table, column) else "CAST(x'ff41' AS TEXT)"
        connection.execute(f"UPDATE {table} SET {column} = {value}{unique}")
    check_restored(victim, original)


def test_every_column_without_a_payload_damaged_at_once(victim: Path, original: Path) -> None:
    with tampering(victim) as connection:
        for table, column in COLUMNS:
            unique = " || log_index" if (table, column) in UNIQUE else ""
            value = LATE if is_integer(connection, table, column) else "'x'"
            connection.execute(f"UPDATE {table} SET {column} = {value}{unique}")
        connection.execute("UPDATE merkle_nodes SET hash = x'00'")
    check_restored(victim, original)


@pytest.mark.parametrize("table", FREE_OF_PAYLOADS)
def test_a_table_without_payloads_emptied(victim: Path, original: Path, table: str) -> None:
    with tampering(victim) as connection:
        connection.execute(f"DELETE FROM {table}")
    check_restored(victim, original)


def test_all_that_is_derived_alone_dropped(victim: Path, original: Path) -> None:
    with tampering(victim) as connection:
        for table in FREE_OF_PAYLOADS:
            connection.execute(f"DELETE FROM {table}")
        for table, names in LINKS.items():
            for name in names:
                connection.execute(f"UPDATE {table} SET {name} = NULL")
    check_restored(victim, original)


def test_links_that_lead_elsewhere(victim: Path, original: Path) -> None:
    with tampering(victim) as connection:
        sql = "UPDATE sessions SET ended_index = ended_index - 1 WHERE ended_index IS NOT NULL"
        connection.execute(sql)
        sql = "UPDATE sessions SET ended_index = 5, ended_at = 'x', end_reason = 'done'"
        connection.execute(f"{sql} WHERE ended_index IS NULL")
        connection.execute(
            "UPDATE task_versions SET superseded_by = coalesce(superseded_by, 0) + 1"
        )
    check_restored(victim, original)


def test_rows_and_nodes_that_belong_to_nothing(victim: Path, original: Path) -> None:
    with tampering(victim) as connection:
        for kind, table in TABLES.items():
            sql = f"SELECT min(log_index) FROM {table}"
            row = row_at(connection, kind, connection.execute(sql).fetchone()[0])
            new = {"id": "new", "hash": "new", "session_id": "new"}
            changes = {name: value for name, value in new.items() if name in kind._fields}
            for index in (-3, 0, 2_000):
                changes = {name: f"{name} {index}" for name in changes}
                put_row(connection, row._replace(log_index=index, **changes))
        for node in ((0, 8, 77), (0, 3, 0), (0, -8, 0), (5, 1, 0), (-1, 1, 1)):
            connection.execute("INSERT INTO merkle_nodes VALUES (?, ?, ?, x'00')", node)
    check_restored(victim, original)


@pytest.mark.parametrize(("table", "column"), UNIQUE, ids=[".".join(pair) for pair in UNIQUE])
def test_two_values_swapped_where_each_must_be_unique(
    victim: Path, original: Path, table: str, column: str
) -> None:
    """Putting the first row right must not remove the second one, with its payload."""
    with tampering(victim) as connection:
        swap(connection, table, column)
    check_restored(victim, original)


def swap(connection: sqlite3.Connection, table: str, column: str) -> None:
    sql = f"SELECT log_index, {column} FROM {table} ORDER BY log_index"
    rows = connection.execute(sql).fetchall()
    (one, first), (other, last) = rows[0], rows[-1]
    for index, value in ((one, "between"), (other, first), (one, last)):
        sql = f"UPDATE {table} SET {column} = ? WHERE log_index = ?"
        connection.execute(sql, (value, index))


@pytest.mark.parametrize(("table", "column"), UNIQUE, ids=[".".join(pair) for pair in UNIQUE])
def test_every_unique_value_moved_to_the_next_row(
    victim: Path, original: Path, table: str, column: str
) -> None:
    with tampering(victim) as connection:
        sql = f"SELECT log_index, {column} FROM {table} ORDER BY log_index"
        rows = connection.execute(sql).fetchall()
        connection.execute(f"UPDATE {table} SET {column} = 'x' || log_index")
        values = [value for _, value in rows]
        for (index, _), value in zip(rows, values[1:] + values[:1], strict=True):
            change = f"UPDATE {table} SET {column} = ? WHERE log_index = ?"
            connection.execute(change, (value, index))
    check_restored(victim, original)


@pytest.mark.parametrize("value", ["x'41'", "12", "NULL"])
def test_values_of_types_that_the_columns_do_not_take(
    victim: Path, original: Path, value: str
) -> None:
    with without_types(victim, "sessions"), tampering(victim) as connection:
        connection.execute(f"UPDATE sessions SET caller = {value}, started_at = {value}")
    check_restored(victim, original)


@pytest.mark.parametrize("column", ["caller", "genesis", "ended_at"])
def test_a_row_with_a_column_that_is_no_text_keeps_its_payload(
    victim: Path, original: Path, column: str
) -> None:
    with tampering(victim) as connection:
        connection.execute(f"UPDATE sessions SET {column} = CAST(x'ff' AS TEXT)")
    rebuild(victim)
    assert contents(victim)["sessions"] == contents(original)["sessions"]


# Payloads: reported, never invented, never thrown away

LOSABLE = [
    ("thought_records", "content", "''"),
    ("sessions", "intent", "NULL"),
    ("task_versions", "title", "NULL"),
    ("task_versions", "description", "NULL"),
    ("task_versions", "reason", "NULL"),
]


def first_with(connection: sqlite3.Connection, table: str, name: str) -> int:
    """The first row that holds this payload."""
    sql = f"SELECT min(log_index) FROM {table} WHERE {name} IS NOT NULL"
    return connection.execute(sql).fetchone()[0]


@pytest.mark.parametrize(("table", "name", "nothing"), LOSABLE, ids=[row[1] for row in LOSABLE])
def test_a_payload_that_is_gone_is_reported_and_stays_gone(
    victim: Path, table: str, name: str, nothing: str
) -> None:
    with tampering(victim) as connection:
        index = first_with(connection, table, name)
        connection.execute(f"UPDATE {table} SET {name} = {nothing} WHERE log_index = ?", (index,))
    damaged = contents(victim)
    lost = [("payload_lost", index, f"{table}.{name}")]
    for check in (True, False, False):
        result = rebuild(victim, check=check)
        assert not result.valid
        assert [(one.code, one.index, one.place) for one in result.differences] == lost
        assert contents(victim) == damaged
    assert told(audit(victim)) == lost


@pytest.mark.parametrize(("table", "name", "nothing"), LOSABLE, ids=[row[1] for row in LOSABLE])
def test_a_row_with_a_payload_that_is_gone_comes_back_without_it(
    victim: Path, original: Path, table: str, name: str, nothing: str
) -> None:
    with tampering(victim) as connection:
        index = first_with(connection, table, name)
        connection.execute(f"DELETE FROM {table} WHERE log_index = ?", (index,))
    codes = {one.code for one in rebuild(victim, check=True).differences}
    assert "view_missing" in codes
    result = rebuild(victim)
    assert "view_missing" in {one.code for one in result.differences}
    kind = next(kind for kind, its_table in TABLES.items() if its_table == table)
    with looking(victim) as connection, looking(original) as sound:
        is_now, was = row_at(connection, kind, index), row_at(sound, kind, index)
        sql = f"SELECT {name} IS {nothing} FROM {table} WHERE log_index = ?"
        assert connection.execute(sql, (index,)).fetchone()[0] == 1
    texts = {column: None for column in was._fields if column in KEPT - {"log_index", "content"}}
    texts |= {"content": ""} if kind is ThoughtRow else {}
    assert is_now == was._replace(**texts)
    assert {code for code, _, _ in told(audit(victim))} == {"payload_lost"}
    assert {place for _, place, _ in told(audit(victim))} == {index}


@pytest.mark.parametrize("forged", [b"forged", b"no text \xff"])
@pytest.mark.parametrize(("table", "name", "_"), LOSABLE, ids=[row[1] for row in LOSABLE])
def test_a_payload_that_is_another_one_stays_as_evidence(
    victim: Path, table: str, name: str, _: str, forged: bytes
) -> None:
    with tampering(victim) as connection:
        index = first_with(connection, table, name)
        sql = f"UPDATE {table} SET {name} = CAST(? AS TEXT), at = 1 WHERE log_index = ?"
        connection.execute(sql, (forged, index))
    rebuild(victim)
    with looking(victim) as connection:
        sql = f"SELECT CAST({name} AS BLOB) FROM {table} WHERE log_index = ?"
        assert connection.execute(sql, (index,)).fetchone()[0] == forged
    assert told(audit(victim)) == [("payload_mismatch", index, f"{table}.{name}")]


def cut_entry(connection: sqlite3.Connection, index: int) -> None:
    replace_entry(connection, index, b"{", rehash=False)


def forge_entry(connection: sqlite3.Connection, index: int) -> None:
    replace_entry(connection, index, b"{", rehash=True)


def delete_entry(connection: sqlite3.Connection, index: int) -> None:
    connection.execute("DELETE FROM log WHERE log_index = ?", (index,))


@pytest.mark.parametrize("table", ["thought_records", "sessions", "task_versions"])
@pytest.mark.parametrize("damage", [cut_entry, forge_entry, delete_entry])
def test_the_row_of_an_entry_that_is_damaged_is_not_thrown_away(
    victim: Path, table: str, damage: Callable[[sqlite3.Connection, int], None]
) -> None:
    """It may be the last trace of what the entry was, and holds the only copy of a text."""
    with tampering(victim) as connection:
        sql = f"SELECT log_index FROM {table} ORDER BY log_index LIMIT 1 OFFSET 2"
        damage(connection, connection.execute(sql).fetchone()[0])
    damaged = contents(victim)
    with suppress(IntegrityViolation):  # it may refuse; it must not delete
        rebuild(victim)
    assert contents(victim)[table] == damaged[table]
    assert contents(victim)["schema"] == damaged["schema"]


# What else a rebuild must not do


def test_the_guards_are_back_afterwards(victim: Path) -> None:
    with tampering(victim) as connection:
        connection.execute("DELETE FROM seals")
    rebuild(victim)
    with closing(sqlite3.connect(victim)) as connection:
        for table in ("log", "merkle_nodes", *TABLES.values()):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(f"DELETE FROM {table}")


def test_a_rebuild_that_fails_leaves_everything_as_it_was(
    victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from affidavit.stores.sqlite.repair import SqliteRepairer

    def fail(self: SqliteRepairer) -> None:
        raise RuntimeError("in the middle of it")

    with tampering(victim) as connection:
        connection.execute("DELETE FROM seals")
    damaged = contents(victim)
    monkeypatch.setattr(SqliteRepairer, "finish", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        rebuild(victim)
    assert contents(victim) == damaged


def test_a_handle_that_only_reads_does_not_rebuild(victim: Path) -> None:
    with tampering(victim) as connection:
        connection.execute("DELETE FROM seals")
    damaged = contents(victim)
    with affidavit.open(victim, readonly=True) as ledger:
        assert not ledger.rebuild(check=True).valid
        with pytest.raises(AffidavitError) as caught:
            ledger.rebuild()
    assert caught.value.code == "ERR_READONLY"
    assert contents(victim) == damaged


def test_the_ledger_goes_on_behind_a_rebuild(victim: Path) -> None:
    with tampering(victim) as connection:
        sql = "UPDATE thought_records SET hash = 'x' || log_index, chain_hash = 'y'"
        connection.execute(f"{sql} WHERE session_id = 'c-open'")
    with open_for_writing(victim) as ledger:
        ledger.rebuild()
        record = ledger.record_thought(
            type="reflection", task_id="t-2", agent_id="a", content="on", session_id="c-open"
        )
        assert record.session_seq == 7
        ledger.seal_session("c-open")
        assert ledger.verify().valid


def test_chains_cached_before_a_rebuild_are_read_again(victim: Path) -> None:
    with open_for_writing(victim) as ledger:
        thought = {"type": "plan", "task_id": "t-2", "agent_id": "a", "session_id": "c-open"}
        ledger.record_thought(content="before", **thought)
        with tampering(victim) as connection:
            connection.execute("UPDATE thought_records SET at = 1 WHERE log_index > 500")
        assert ledger.rebuild().repaired
        ledger.record_thought(content="after", **thought)
        assert told(ledger.verify()) == []
