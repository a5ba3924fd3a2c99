"""The index for full-text search: a file of its own beside the ledger, filled behind the commits.

It is derived from the ledger and may be deleted at any time. Recording never waits for it: whoever
searches first adds what was recorded since. What an answer shows is read from the ledger itself.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final

from affidavit.core.tokens import index_tokens
from affidavit.errors import InputError, IntegrityViolation
from affidavit.ledger.ports import Hit, WordQuery
from affidavit.stores.sqlite import failures, files
from affidavit.stores.sqlite.reading import SqliteReader

# Counts up when tokens change: an index of other rules is filled anew.
_RULES: Final = 2
_PAGE: Final = 500
_WAIT_S: Final = 10.0
_SCHEMA: Final = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
  body, detail=none, tokenize="unicode61 remove_diacritics 0");
CREATE TABLE IF NOT EXISTS texts (
  id INTEGER PRIMARY KEY, log_index INTEGER NOT NULL, field TEXT NOT NULL, kind TEXT NOT NULL,
  session_id TEXT, task_id TEXT, at INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS idx_texts_index ON texts(log_index);
CREATE TABLE IF NOT EXISTS progress (
  id INTEGER PRIMARY KEY CHECK (id = 0), rules INTEGER NOT NULL, size INTEGER NOT NULL,
  leaf BLOB NOT NULL) STRICT;
"""
_FIND: Final = """
SELECT t.log_index, t.field, bm25(words) FROM words JOIN texts AS t ON t.id = words.rowid
WHERE words MATCH :match AND (:kind IS NULL OR t.kind = :kind OR t.kind LIKE :kind || '.%')
  AND (:session_id IS NULL OR t.session_id = :session_id)
  AND (:task_id IS NULL OR t.task_id = :task_id)
  AND t.at >= :since AND t.at < :until
ORDER BY bm25(words), t.log_index DESC LIMIT :limit
"""


class SearchIndex:
    """The index of one ledger, opened when somebody searches."""

    def __init__(self, location: str) -> None:
        self.location = location if location == files.MEMORY else f"{location}.search"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def find(self, reader: SqliteReader, wanted: WordQuery) -> list[Hit]:
        """The texts that hold all the words, the best first."""
        with self._lock, self._told():
            connection = self._open()
            self._catch_up(connection, reader)
            match = " ".join(_quoted(token) for token in wanted.tokens)
            values = {**wanted._asdict(), "match": match, "tokens": None}
            del values["tokens"]
            return [Hit._make(row) for row in connection.execute(_FIND, values)]

    def forget(self, fields: Iterable[tuple[int, str]]) -> bool:
        """Take erased texts out, and every trace of them; whether nobody was in the way."""
        with self._lock, self._told():
            if self._connection is None and not os.path.exists(self.location):  # noqa: PTH110
                return True
            connection = self._open()
            gone = set(fields)
            with _transaction(connection):
                for index, name in gone:
                    sql = "SELECT id FROM texts WHERE log_index = ? AND field = ?"
                    for (row,) in connection.execute(sql, (index, name)).fetchall():
                        connection.execute("DELETE FROM words WHERE rowid = ?", (row,))
                        connection.execute("DELETE FROM texts WHERE id = ?", (row,))
                connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not busy

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except failures.RAISED as error:
            raise failures.translate(error, self.location) from None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._connect(self.location)
            except (OSError, sqlite3.OperationalError):
                # The folder cannot be written to: then the index lives as long as this process.
                self._connection = self._connect(files.MEMORY)
        return self._connection

    def _connect(self, location: str) -> sqlite3.Connection:
        if location != files.MEMORY:
            _make(location)
        connection = sqlite3.connect(
            location, isolation_level=None, check_same_thread=False, timeout=_WAIT_S
        )
        try:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _catch_up(self, connection: sqlite3.Connection, reader: SqliteReader) -> None:
        size = reader.size()
        start = self._done(connection, reader)
        if start == size:
            return
        with _transaction(connection):
            start = self._done(connection, reader)  # somebody may have been faster
            if start == 0:
                connection.execute("DELETE FROM words")
                connection.execute("DELETE FROM texts")
            for first in range(start, size, _PAGE):
                _add(connection, reader, first, min(first + _PAGE, size))
            done = (_RULES, size, reader.leaf(size - 1))
            connection.execute("INSERT OR REPLACE INTO progress VALUES (0, ?, ?, ?)", done)

    def _done(self, connection: sqlite3.Connection, reader: SqliteReader) -> int:
        """How much of this very log the index covers."""
        row = connection.execute("SELECT rules, size, leaf FROM progress").fetchone()
        if row is None or row[0] != _RULES or not 0 < row[1] <= reader.size():
            return 0
        return int(row[1]) if reader.leaf(row[1] - 1) == row[2] else 0


def _make(location: str) -> None:
    """See that there is a file that can be written; one that is there is not opened.

    Another connection of this process may hold locks on it, which closing it would drop.
    """
    try:
        os.close(os.open(location, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not os.access(location, os.W_OK):
            raise PermissionError(location) from None


def _add(connection: sqlite3.Connection, reader: SqliteReader, start: int, end: int) -> None:
    for index, fields in sorted(reader.payloads(start, end).items()):
        texts = {
            name: one.text
            for name, one in fields.items()
            if isinstance(one.text, str) and not name.endswith("_sha256")
        }
        if not texts:
            continue
        try:
            entry = reader.entry(index)
        except (InputError, IntegrityViolation):
            continue  # verification tells of it
        about = (entry.kind, entry.body.get("session_id"), entry.body.get("task_id"), entry.at)
        for name, text in texts.items():
            sql = "INSERT INTO texts VALUES (NULL, ?, ?, ?, ?, ?, ?)"
            row = connection.execute(sql, (index, name, *about)).lastrowid
            body = " ".join(index_tokens(text))
            connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (row, body))


def _quoted(token: str) -> str:
    return f'"{token[:-1]}"*' if token.endswith("*") else f'"{token}"'


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[Any]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
