"""Every column of every table: a changed value is found at its place, or `exempt.txt` says why."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from affidavit.core.views import LINKS, TABLES
from affidavit.stores.sqlite.queries import load_migrations
from tamper.attack import audit, looking, tampering, told, without_types

EXEMPT_FILE = Path(__file__).with_name("exempt.txt")
FINDINGS_MAX = 4
PAYLOADS = {
    "calls": ("args_sha256",),
    "erasures": ("reason",),
    "key_changes": ("reason",),
    "origin_changes": ("reason",),
    "sessions": ("intent",),
    "task_versions": ("title", "description", "reason"),
    "thought_records": ("content",),
    "conversation_turns": ("content", "attributes_json", "reason"),
    "tool_calls": (
        "args_sha256",
        "arguments_json",
        "outcome_sha256",
        "outcome_json",
        "error_msg",
        "attributes_json",
    ),
    "code_edit_proposals": ("diffs_json", "reason"),
    "approvals": ("reason",),
}
# Where a row stands is no value of it: moves have tests of their own below.
PLACES = {"merkle_nodes": ("tree", "level", "position")}


class Column(NamedTuple):
    table: str
    name: str
    type: str
    not_null: bool
    is_key: bool

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"

    @property
    def is_place(self) -> bool:
        return self.name == "log_index" or self.name in PLACES.get(self.table, ())


class Change(NamedTuple):
    """A value put into rows by their key; `wild` needs a table that takes any type."""

    what: str
    values: dict[tuple[Any, ...], Any]
    sql: str = "?"
    wild: bool = False


def columns_of(connection: sqlite3.Connection) -> list[Column]:
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    return [
        Column(table, name, type_, bool(not_null) or bool(key), bool(key))
        for (table,) in tables
        for _, name, type_, not_null, _, key in connection.execute(f"PRAGMA table_info({table})")
    ]


def schema_columns() -> list[Column]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for script in load_migrations():
            connection.executescript(script)
        return columns_of(connection)


def read_exemptions() -> dict[str, str]:
    lines = EXEMPT_FILE.read_text(encoding="utf-8").splitlines()
    pairs = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return dict(pairs)


COLUMNS = schema_columns()
EXEMPT = read_exemptions()
VALUES = [column for column in COLUMNS if not column.is_place and str(column) not in EXEMPT]


def key_names(table: str) -> tuple[str, ...]:
    return tuple(column.name for column in COLUMNS if column.table == table and column.is_key)


def read_values(connection: sqlite3.Connection, column: Column) -> list[tuple[Any, Any]]:
    """Every row's key and value of this column."""
    keys = key_names(column.table)
    rows = connection.execute(
        f"SELECT {', '.join(keys)}, {column.name} FROM {column.table} ORDER BY {', '.join(keys)}"
    )
    return [(row[:-1], row[-1]) for row in rows]


def pick_rows(rows: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The first, a middle and the last row that has a value, and one that has none."""
    full = [row for row in rows if row[1] is not None]
    empty = [row for row in rows if row[1] is None]
    picked = [full[0], full[len(full) // 2], full[-1]] if full else []
    return picked + empty[-1:]


def changes_of(column: Column, key: Any, value: Any, rows: list[Any]) -> Iterator[Change]:
    """Everything done to one value."""
    others = [row for row in rows if row[1] not in (None, value)]
    other = others[len(others) // 2] if others else None
    if other is not None and value is not None:
        yield Change("swapped with another row's", {key: other[1], other[0]: value})
    if other is not None and not is_unique(column):
        yield Change("another row's", {key: other[1]})
    if not column.not_null and value is not None:
        yield Change("NULL", {key: None})
    yield from typed_changes(column, key, value)


def typed_changes(column: Column, key: Any, value: Any) -> Iterator[Change]:
    if column.type == "TEXT":
        text = value or "x"
        yield Change("another text", {key: "forged"})
        yield Change("empty", {key: ""})
        yield Change("its last character changed", {key: text[:-1] + "~"})
        yield Change("a space behind it", {key: text + " "})
        raw = (value or "x").encode()
        yield Change("no UTF-8", {key: raw[:-1] + b"\xff"}, "CAST(? AS TEXT)")
        yield Change("a NUL behind it", {key: text + "\0"})
        yield Change("bytes", {key: raw}, wild=True)
        yield Change("a number", {key: 7}, wild=True)
    elif column.type == "BLOB":
        data = value or b"x"
        yield Change("other bytes", {key: b"f" * 32})
        yield Change("empty", {key: b""})
        yield Change("one bit changed", {key: bytes([data[0] ^ 1]) + data[1:]})
        yield Change("cut", {key: data[:-1]})
        yield Change("text", {key: data.decode("latin-1")}, wild=True)
        yield Change("a number", {key: 7}, wild=True)
    else:
        number = 0 if value is None else value
        yield Change("one more", {key: number + 1})
        yield Change("one less", {key: number - 1})
        yield Change("zero", {key: 0 if number else 2})
        yield Change("huge", {key: 2**63 - 1})
        yield Change("a text", {key: "12"}, wild=True)
        yield Change("a fraction", {key: float(number)}, wild=True)
    if column.not_null:
        yield Change("NULL", {key: None}, wild=True)


def is_unique(column: Column) -> bool:
    return str(column) in (
        "thought_records.id",
        "thought_records.hash",
        "sessions.session_id",
        "seals.session_id",
    )


def make_change(path: Path, column: Column, change: Change) -> None:
    if change.wild:
        with without_types(path, column.table), tampering(path) as connection:
            apply_change(connection, column, change)
    else:
        with tampering(path) as connection:
            apply_change(connection, column, change)


def apply_change(connection: sqlite3.Connection, column: Column, change: Change) -> None:
    where = " AND ".join(f"{name} = ?" for name in key_names(column.table))
    if len(change.values) > 1 and is_unique(column):
        for key in change.values:
            values = (f"between {key}", *key)
            connection.execute(f"UPDATE {column.table} SET {column.name} = ? WHERE {where}", values)
    for key, value in change.values.items():
        cursor = connection.execute(
            f"UPDATE {column.table} SET {column.name} = {change.sql} WHERE {where}", (value, *key)
        )
        assert cursor.rowcount == 1


def place_of(column: Column, key: Any) -> int:
    """The log index a change to this row must be reported at."""
    if column.table != "merkle_nodes":
        return key[0]
    tree, level, position = key
    return tree or ((position + 1) << level) - 1


def codes_of(column: Column, before: Any, change: Any, *, wild: bool) -> set[str]:
    if column.table == "log":
        return {"entry_changed", "entry_not_canonical"}
    if column.table == "merkle_nodes":
        return {"tree_node_bad"}
    if str(column) == "thought_records.erased_at":
        return {"view_differs", "erasure_unexplained"}
    if before is not None and column.name.removesuffix("_salt") in PAYLOADS.get(column.table, ()):
        gone = not change and not column.name.endswith("_salt")
        return {"payload_lost", "payload_mismatch"} if gone or wild else {"payload_mismatch"}
    return {"view_differs"}


def is_at(column: Column, place: str) -> bool:
    if column.table in ("log", "merkle_nodes"):
        return place.startswith(column.table)
    if column.name in LINKS.get(column.table, ()):
        return place in [f"{column.table}.{name}" for name in LINKS[column.table]]
    return place in (str(column), str(column).removesuffix("_salt"))


def find_fault(
    path: Path, column: Column, change: Change, before: dict[Any, Any], *, in_parts: bool
) -> str | None:
    """Why this change was not found as it must be: at its rows, and nothing else blamed."""
    try:
        report = audit(path, in_parts=in_parts)
    except Exception as error:
        return f"raised {error!r}"
    places = {place_of(column, key) for key in change.values}
    if report.valid:
        return "not found"
    if {found.index for found in report.findings} != places:
        return f"other places than {places} are blamed: {told(report)}"
    if report.finding_count > FINDINGS_MAX * len(places):
        return f"{report.finding_count} findings: {told(report)}"
    for key, value in change.values.items():
        code, _, place = next(one for one in told(report) if one[1] == place_of(column, key))
        if code not in codes_of(column, before[key], value, wild=change.wild):
            return f"the code is {code}"
        if not is_at(column, place):
            return f"the place is {place}"
    return None


@pytest.mark.parametrize("column", VALUES, ids=str)
def test_a_changed_value_is_found_at_its_place(
    column: Column, original: Path, copy: Callable[[], Path], request: pytest.FixtureRequest
) -> None:
    """Every change to a row in the middle; to others the first one, and all in the long rounds."""
    with looking(original) as connection:
        rows = read_values(connection, column)
    wrong = []
    picked = pick_rows(rows)
    middle = picked[len(picked) // 2][0]
    for key, value in picked:
        for number, change in enumerate(changes_of(column, key, value, rows)):
            if key != middle and (
                change.wild or (number and not request.config.getoption("--long"))
            ):
                continue
            path = copy()
            make_change(path, column, change)
            said = find_fault(path, column, change, dict(rows), in_parts=number == 0)
            if said is not None:
                wrong.append(f"{column} of row {key}: {change.what}: {said:.300}")
    assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", EXEMPT)
def test_an_exempt_column_is_not_found_and_has_a_reason(
    name: str, original: Path, copy: Callable[[], Path]
) -> None:
    column = {str(column): column for column in COLUMNS}[name]
    assert len(EXEMPT[name].split()) > 3
    with looking(original) as connection:
        rows = read_values(connection, column)
    key, value = rows[-1]
    change = next(iter(typed_changes(column, key, value)))
    path = copy()
    make_change(path, column, change)
    assert audit(path).valid, f"{name} is found: take it out of {EXEMPT_FILE.name}"


def test_the_walk_knows_every_column_of_a_ledger(original: Path) -> None:
    with looking(original) as connection:
        assert columns_of(connection) == COLUMNS
        tables = {column.table for column in COLUMNS}
        for table in tables:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] >= 3
    assert {*TABLES.values(), "log", "merkle_nodes", "idempotency_keys"} == tables
    assert {str(c) for c in COLUMNS if c.table == "idempotency_keys"} == set(EXEMPT)
    assert {name for names in LINKS.values() for name in names} <= {c.name for c in VALUES}


def test_every_column_has_values_in_the_history(original: Path) -> None:
    with looking(original) as connection:
        empty = {
            str(column)
            for column in COLUMNS
            if all(value is None for _, value in read_values(connection, column))
        }
    assert empty == set()
