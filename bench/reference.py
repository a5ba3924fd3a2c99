"""What a raw engine could do at least: the same rows, pragmas and disk, nothing else.

The rows are computed beforehand, so a reference pays for storing them and for nothing else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from affidavit.stores.sqlite.connection import CHECKPOINT_PAGES, WRITER_CACHE_KIB

Row = Sequence[Any]

# The table and indices that a decision trail alone needs.
TRAIL = """
CREATE TABLE thought_records (
  id TEXT PRIMARY KEY, type TEXT NOT NULL, task_id TEXT NOT NULL, agent_id TEXT NOT NULL,
  content TEXT NOT NULL, timestamp TEXT NOT NULL, prev_hash TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL, session_id TEXT);
CREATE INDEX idx_trail_task ON thought_records(task_id, created_at);
CREATE INDEX idx_trail_prev ON thought_records(prev_hash);
"""
INSERT_TRAIL = "INSERT INTO thought_records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_LOG = "INSERT INTO log VALUES (?, ?, ?)"
INSERT_VIEW = f"INSERT INTO thought_records VALUES ({', '.join('?' * 17)})"


def open_raw(path: str, schema: str) -> sqlite3.Connection:
    """A connection as durable as a ledger's."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
    connection.executescript(schema)
    return connection


def trail_row(view_row: Row) -> Row:
    """The columns of a view row that `TRAIL` has."""
    return view_row[1:11]


def insert_each(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """One commit a row."""
    for row in rows:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(INSERT_TRAIL, row)
        connection.execute("COMMIT")


def insert_together(
    connection: sqlite3.Connection, log: Sequence[Row], view: Sequence[Row]
) -> None:
    """One commit for all, log and view."""
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT_LOG, log)
    connection.executemany(INSERT_VIEW, view)
    connection.execute("COMMIT")


def fetch_and_hash(connection: sqlite3.Connection) -> None:
    """Fetch every log and view row and hash entry and content once: what no verifier can save."""
    view = connection.execute("SELECT * FROM thought_records ORDER BY log_index")
    log = connection.execute("SELECT * FROM log ORDER BY log_index")
    for row in view:
        sha256(row[5].encode()).digest()
    for row in log:
        sha256(row[1]).digest()
