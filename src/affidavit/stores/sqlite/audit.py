"""The file as a verifier reads it: raw rows in log order, from one snapshot."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from affidavit.core.merkle import Digest
from affidavit.core.views import TABLES, View
from affidavit.core.views.sessions import SessionRow
from affidavit.errors import IntegrityViolation
from affidavit.stores.sqlite.failures import SAYS_MORE
from affidavit.stores.sqlite.observations import version_before_sql
from affidavit.stores.sqlite.queries import load_migrations, load_queries
from affidavit.stores.sqlite.reading import SESSION_ENTRIES, SqliteReader
from affidavit.verify.ports import WHOLE, RawRow, Stretch
from affidavit.verify.session_state import SessionState

_TABLES: Final = frozenset(TABLES.values())
_OTHER_TABLES: Final = {
    "log": ("log_index", "entry", "leaf_hash"),
    "merkle_nodes": ("tree", "level", "position", "hash"),
}
_INTEGER_MAX: Final = 2**63 - 1
_INDEX_NAMED: Final = re.compile(r" INDEXED BY \w+")


class SqliteAudit:
    """Answers a verifier from one transaction of one connection.

    Bytes that are no text stop nothing: from the first ones met, text is read with surrogates in
    their place, which nothing recorded can hold.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = load_queries()
        self._connection = connection
        self._is_lenient = False

    def close(self) -> None:
        """Leave the connection as it was."""
        self._connection.text_factory = str

    def _rows(self, sql: str, *values: Any) -> Iterator[Any]:
        """Row by row: a payload may have 16 MiB, so nothing is fetched ahead."""
        seen = 0
        while True:
            try:
                for row in islice(self._connection.execute(sql, values), seen, None):
                    seen += 1
                    yield row
            except sqlite3.OperationalError as error:
                self._read_leniently(error)
            else:
                return

    def _one(self, name: str, *values: Any) -> Any:
        return self._fetch(self._sql[name], *values)

    def _fetch(self, sql: str, *values: Any) -> Any:
        keys = [as_stored(value) for value in values]
        try:
            return self._connection.execute(sql, keys).fetchone()
        except sqlite3.OperationalError as error:
            self._read_leniently(error)
        return self._connection.execute(sql, keys).fetchone()

    def _read_leniently(self, error: sqlite3.OperationalError) -> None:
        if self._is_lenient or "decode to UTF-8" not in str(error):
            raise error
        self._is_lenient = True
        self._connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")

    def size(self) -> int:
        """How many entries the newest index promises."""
        row = self._one("head")
        return 0 if row is None else int(row[0]) + 1

    def log(self, stretch: Stretch = WHOLE) -> Iterator[tuple[int, bytes, bytes]]:
        """A stretch of the log, with the leaf hash kept beside each entry."""
        return self._rows(
            "SELECT log_index, entry, leaf_hash FROM log WHERE log_index >= ? AND log_index <= ? "
            "ORDER BY log_index",
            *_bounds(stretch),
        )

    def entry(self, index: int) -> bytes | None:
        """One entry."""
        row = self._one("entry", index)
        return None if row is None else _entry_bytes(row[0])

    def rows(self, table: str, stretch: Stretch = WHOLE) -> Iterator[RawRow]:
        """A stretch of a view, in log order."""
        return self._rows(
            f"SELECT * FROM {known_table(table)} WHERE log_index >= ? AND log_index <= ? "
            "ORDER BY log_index",
            *_bounds(stretch),
        )

    def chain(
        self, *, task_id: str | None, session_id: str | None
    ) -> Iterator[tuple[bytes | None, RawRow]]:
        """The records of one chain in log order, each with its entry."""
        name, key = ("chain_of_session", session_id or "")
        if task_id is not None:
            name, key = "chain_of_task", task_id
        return _split(self._rows(self._sql[name], as_stored(key)))

    def task_hash_before(self, task_id: str, index: int) -> str | None:
        """The hash of the newest record of a task before an index."""
        row = self._one("task_hash_before", task_id, index)
        return None if row is None else row[0]

    def seal_of(self, session_id: str) -> RawRow | None:
        """The seal of a session."""
        row: RawRow | None = self._one("seal_of", session_id)
        return row

    def session_start(self, session_id: str) -> RawRow | None:
        """The row of a session."""
        row: RawRow | None = self._one("session_by_id", session_id)
        return row

    def session_before(self, session_id: str, index: int) -> SessionState | None:
        """Where a session stood before an index, from rows below it."""
        start = self.session_start(session_id)
        if start is None or start[0] >= index:
            return None
        row = SessionRow._make(start)
        closing_task = row.task_id if row.proof_grade else None
        state = SessionState(row.log_index, row.genesis, 0, closing_task, whole=False)
        state.link = row.ended_index
        if (last := self._one("session_last_before", session_id, index)) is not None:
            chain_hash, seq, type_, task_id, last_index = last
            state.next_seq = seq
            state.add_thought(Digest(b""), type_, task_id, chain_hash, last_index)
            state.first_index = self._one("session_first", session_id)[0]
        seal = self._one("seal_of", session_id)
        if seal is not None and seal[0] < index:
            state.sealed_at = seal[0]
        if row.ended_index is not None and row.ended_index < index:
            state.ended_at = row.ended_index
        return state

    def session_leaves(
        self, session_id: str, end: int, *, thoughts: bool, scan: bool
    ) -> list[Digest]:
        """The leaves of a session's records, or of every entry that names it, below an index.

        By the views, or by reading the log itself where it has kinds that no view has.
        """
        if scan:
            start = self.session_start(session_id)
            found = SqliteReader(self._connection).session_entries(
                session_id, 0 if start is None else start[0], end
            )
            return [one.leaf for one in found if one.is_thought >= thoughts]
        values = {"session_id": session_id, "end": end}
        inner = self._sql["session_thought_indices"] if thoughts else SESSION_ENTRIES
        rows = self._connection.execute(
            f"SELECT leaf_hash FROM log WHERE log_index IN ({inner}) ORDER BY log_index", values
        )
        return [Digest(row[0]) for row in rows]

    def task_ids(self) -> list[str]:
        """Every task label that has records."""
        return _names(self._rows(self._sql["task_ids_with_thoughts"]), "task_id")

    def session_ids(self) -> list[str]:
        """Every session, oldest first."""
        return _names(self._rows(self._sql["session_ids"]), "session_id")

    def version_before(self, view: View, name: tuple[str, ...], index: int) -> RawRow | None:
        """The version of a thing that was in force before an index."""
        row: RawRow | None = self._fetch(version_before_sql(view), *name, index)
        return row

    def nodes(self, tree: int, level: int, start: int, end: int) -> list[bytes]:
        """Kept nodes of a tree, one level, in order."""
        sql = self._sql["nodes"]
        return [row[0] for row in self._connection.execute(sql, (tree, level, start, end))]

    def tree_nodes(self, tree: int) -> Iterator[tuple[int, int, bytes]]:
        """Every kept node of a tree: level, position, hash."""
        return self._rows(self._sql["tree_nodes"], tree)

    def stray_nodes(self, size: int) -> Iterator[tuple[int, int, int]]:
        """Nodes no tree has: above the log's size, at a level not kept, or of no seal."""
        return self._rows(self._sql["stray_nodes"], min(size, _INTEGER_MAX))

    def erasures(self, *, scan: bool) -> Iterator[tuple[int, bytes, Any, Any]]:
        """Entries that say what was erased, oldest first: where the view has them, or all.

        With what the view says they name, and when that was.
        """
        rows = self._rows(self._sql["erasures" if scan else "erasures_viewed"])
        return ((index, _entry_bytes(entry), fields, at) for index, entry, fields, at in rows)

    def newest_remembered(self) -> int:
        """The newest entry that an idempotency key stands for; -1 where none does."""
        if not self._columns("idempotency_keys"):
            return -1  # a table that is gone is told of as a change of the schema
        newest = self._one("newest_remembered")[0]
        return newest if type(newest) is int else -1

    def schema_differences(self) -> list[str]:
        """How this file's schema differs from the one that migrations make, up to its version."""
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        must_be, is_now = expected_schema(version), read_schema(self._connection)
        differences = [
            f"{kind} {name} is missing" for kind, name in must_be if (kind, name) not in is_now
        ]
        if differences:
            # An index may be gone; without it the same rows are found, only slower.
            self._sql = {name: _INDEX_NAMED.sub("", sql) for name, sql in self._sql.items()}
        for (kind, name), sql in is_now.items():
            if (kind, name) not in must_be:
                differences.append(f"{kind} {name} does not belong here")
            elif must_be[kind, name] != sql:
                differences.append(f"{kind} {name} was altered")
        return differences

    def unreadable_tables(self) -> list[str]:
        """Tables that are missing, or have not exactly the columns they must have."""
        must_be = {table: kind._fields for kind, table in TABLES.items()} | _OTHER_TABLES
        return [table for table, columns in must_be.items() if self._columns(table) != columns]

    def _columns(self, table: str) -> tuple[str, ...]:
        found = self._rows("SELECT name FROM pragma_table_info(?)", table)
        return tuple(name for (name,) in found)


def _bounds(stretch: Stretch) -> tuple[int, int]:
    """The first stretch and the last one hold also what lies outside of any log."""
    start = stretch.start or -_INTEGER_MAX - 1
    return start, _INTEGER_MAX if stretch.end is None else stretch.end - 1


def _split(rows: Iterator[Any]) -> Iterator[tuple[bytes | None, RawRow]]:
    return ((None if row[-1] is None else _entry_bytes(row[-1]), row[:-1]) for row in rows)


def _entry_bytes(data: Any) -> bytes:
    """An entry as it can be judged; damage may bring any type."""
    return data if isinstance(data, bytes) else b""


def is_no_text(item: Any) -> bool:
    """Whether this stands for bytes that are no text."""
    if isinstance(item, str):
        try:
            item.encode()
        except UnicodeEncodeError:
            return True
    return False


def as_stored(item: Any) -> Any:
    """What SQLite takes: bytes that are no text as the bytes they were."""
    return item.encode(errors="surrogateescape") if is_no_text(item) else item


def _names(rows: Iterator[Any], column: str) -> list[str]:
    found = [row[0] for row in rows]
    if any(not isinstance(name, str) for name in found):
        raise IntegrityViolation(f"a {column} is no text", hint=SAYS_MORE)
    return found


def known_table(table: str) -> str:
    """The name of a view table; anything else never reaches SQL."""
    if table not in _TABLES:
        raise ValueError(table)
    return table


def read_schema(connection: sqlite3.Connection) -> dict[tuple[str, str], str | None]:
    """Everything the file defines; what SQLite makes by itself is left out."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    found = {}
    for kind, name, sql in rows:
        if not name.startswith(("sqlite_autoindex_", "sqlite_stat")):
            found[kind, name] = sql
    return found


def expected_schema(version: int) -> dict[tuple[str, str], str | None]:
    """The schema that the migrations make, up to a version."""
    connection = sqlite3.connect(":memory:")
    try:
        for script in load_migrations()[: max(version, 1)]:
            connection.executescript(script)
        return read_schema(connection)
    finally:
        connection.close()
