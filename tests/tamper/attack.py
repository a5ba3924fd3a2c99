"""What an attacker with the file can do: raw SQL behind the guards, and entries forged by hand."""

from __future__ import annotations

import json
import re
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import affidavit
from affidavit.core.entry import Entry, Source, encode_entry
from affidavit.core.merkle import leaf_hash
from affidavit.core.views import TABLES
from affidavit.verify.findings import Finding, Report
from affidavit.verify.ledger import join, split, verify_stretch
from affidavit.verify.ports import LedgerSource

# A clock behind every entry of the histories here, and too early for any session to be idle.
NOW_US = 1_776_384_000_000_000 + 3_600_000_000
SOURCE = Source()


@contextmanager
def tampering(path: Path | str) -> Iterator[sqlite3.Connection]:
    """One raw transaction with the guards lifted; they come back to the byte as they were."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        guards = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in guards:
            connection.execute(sql)
        connection.execute("COMMIT")


@contextmanager
def looking(path: Path | str) -> Iterator[sqlite3.Connection]:
    """A raw connection that only reads; bytes that are no text are no reason to stop."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
        yield connection


@contextmanager
def without_types(path: Path | str, table: str) -> Iterator[None]:
    """Have a table take values of any type for a while."""
    with looking(path) as connection:
        sql = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name = ?", (table,)
        ).fetchone()[0]
    loose = re.sub(r"\b(TEXT|BLOB|NOT NULL|STRICT,?|INTEGER(?! PRIMARY))", "", sql)
    rewrite_schema(path, table, loose)
    yield
    rewrite_schema(path, table, sql)


def rewrite_schema(path: Path | str, name: str, sql: str) -> None:
    """Put another definition where the schema keeps one."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))
        connection.execute(f"PRAGMA schema_version = {version + 1}")


@contextmanager
def open_for_writing(path: Path | str) -> Iterator[Any]:
    """The ledger, at a time when opening it ends no session.

    It is a copy, and what was last signed is remembered elsewhere: closing it says so.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "recorded, but not signed", RuntimeWarning)
        with affidavit.open(path, clock=lambda: NOW_US) as ledger:
            yield ledger


def audit(path: Path | str, *, in_parts: bool = True) -> Report:
    """What the product says about this file."""
    with affidavit.open(path, readonly=True) as ledger:
        report = ledger.verify()
        if in_parts:
            with ledger._context.store.audit() as source:
                assert_stretches_agree(source, report)
        return report


def assert_stretches_agree(source: LedgerSource, report: Report) -> None:
    """Verified in parts, the same holds; where anything is wrong, no parts ever say it holds.

    A file of another schema is never verified in parts, nor one with kinds nobody here knows.
    """
    if source.schema_differences() or source.unreadable_tables():
        return
    stretches = split(source.size(), 8)
    together = join(source, [verify_stretch(source, stretch) for stretch in stretches])
    if together is None:
        assert not report.valid or has_unknown_kinds(report)
    else:
        assert together.to_dict() == report.to_dict()


def has_unknown_kinds(report: Report) -> bool:
    return any("kinds this version does not know" in said for said in report.unchecked)


def told(report: Report) -> list[tuple[str, int | None, str]]:
    """The findings without their words."""
    return [(found.code, found.index, found.place) for found in report.findings]


def first(report: Report) -> Finding:
    """The first finding of a report that must have one."""
    assert not report.valid
    assert report.finding_count == len(report.findings) > 0
    return report.findings[0]


def entry_at(connection: sqlite3.Connection, index: int) -> bytes:
    return connection.execute("SELECT entry FROM log WHERE log_index = ?", (index,)).fetchone()[0]


def value_at(connection: sqlite3.Connection, index: int) -> dict[str, Any]:
    """An entry, parsed loosely."""
    return json.loads(entry_at(connection, index))


def log_size(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT max(log_index) + 1 FROM log").fetchone()[0]


def last_at(connection: sqlite3.Connection) -> int:
    return value_at(connection, log_size(connection) - 1)["at"]


def replace_entry(
    connection: sqlite3.Connection, index: int, entry: bytes, *, rehash: bool = True
) -> None:
    """Another entry in the place of one, with or without its leaf hash."""
    connection.execute("UPDATE log SET entry = ? WHERE log_index = ?", (entry, index))
    if rehash:
        connection.execute(
            "UPDATE log SET leaf_hash = ? WHERE log_index = ?", (leaf_hash(entry), index)
        )


def append_raw(connection: sqlite3.Connection, entry: bytes) -> int:
    """An entry behind the last one, hashed as it should be."""
    index = log_size(connection)
    connection.execute("INSERT INTO log VALUES (?, ?, ?)", (index, entry, leaf_hash(entry)))
    return index


def append(connection: sqlite3.Connection, kind: str, body: dict[str, Any], **other: Any) -> int:
    """A forged entry of a kind behind the last one."""
    at = other.get("at", last_at(connection) + 1)
    return append_raw(connection, encode_entry(at, kind, body, SOURCE))


def as_entry(value: dict[str, Any]) -> Entry:
    """A parsed entry as the core has it."""
    return Entry(value["at"], value["kind"], value["body"], Source(**value["src"]))


def canonical(value: dict[str, Any]) -> bytes:
    """The bytes of a parsed entry."""
    entry = as_entry(value)
    return encode_entry(entry.at, entry.kind, entry.body, entry.src)


def put_row(connection: sqlite3.Connection, row: Any) -> None:
    """A view row, over whatever stood in its place."""
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT OR REPLACE INTO {TABLES[type(row)]} VALUES ({marks})", tuple(row))


def row_at(connection: sqlite3.Connection, kind: Any, index: int) -> Any:
    """A view row as the core has it."""
    sql = f"SELECT * FROM {TABLES[kind]} WHERE log_index = ?"
    return kind._make(connection.execute(sql, (index,)).fetchone())


def dump(path: Path | str) -> list[str]:
    """Everything in a file, as SQL."""
    with looking(path) as connection:
        return list(connection.iterdump())
