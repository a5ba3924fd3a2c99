"""The file as a verifier reads it: raw rows in log order, from one snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from affidavit.core.merkle import Digest
from affidavit.core.views import TABLES
from affidavit.stores.sqlite.queries import load_migrations, load_queries
from affidavit.verify.ports import RawRow
from affidavit.verify.sessions import SessionState

_TABLES: Final = frozenset(TABLES.values())


class SqliteAudit:
    """Answers a verifier from one transaction of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = load_queries()
        self._connection = connection

    def _rows(self, sql: str, *values: Any) -> Iterator[Any]:
        # Row by row: a payload may have 16 MiB, so nothing is fetched ahead.
        return iter(self._connection.execute(sql, values))

    def _one(self, name: str, *values: Any) -> Any:
        try:
            return self._connection.execute(self._sql[name], values).fetchone()
        except sqlite3.OperationalError as error:
            if not _is_no_text(error):
                raise
        with _any_text(self._connection):
            return self._connection.execute(self._sql[name], values).fetchone()

    def size(self) -> int:
        """How many entries the newest index promises."""
        row = self._one("head")
        return 0 if row is None else int(row[0]) + 1

    def log(self) -> Iterator[tuple[int, bytes, bytes]]:
        """The whole log, with the leaf hash kept beside each entry."""
        return self._rows("SELECT log_index, entry, leaf_hash FROM log ORDER BY log_index")

    def entry(self, index: int) -> bytes | None:
        """One entry."""
        row = self._one("entry", index)
        return None if row is None else row[0]

    def rows(self, table: str) -> Iterator[RawRow]:
        """A whole view, in log order; a row with bytes that are no text stops nothing."""
        sql = f"SELECT * FROM {known_table(table)} WHERE log_index > ? ORDER BY log_index"
        after = -(2**63)
        while True:
            try:
                for row in self._connection.execute(sql, (after,)):
                    after = row[0]
                    yield row
            except sqlite3.OperationalError as error:
                if not _is_no_text(error):
                    raise
            else:
                return
            with _any_text(self._connection):
                odd = self._connection.execute(f"{sql} LIMIT 1", (after,)).fetchone()
            after = odd[0]
            yield odd

    def chain(
        self, *, task_id: str | None, session_id: str | None
    ) -> Iterator[tuple[bytes | None, RawRow]]:
        """The records of one chain in log order, each with its entry."""
        if task_id is not None:
            return _split(self._rows(self._sql["chain_of_task"], task_id))
        return _split(self._rows(self._sql["chain_of_session"], session_id))

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
        closing_task = start[2] if start[10] else None
        last = self._one("session_last_before", session_id, index)
        if last is None:
            state = SessionState(start[7], 0, closing_task, whole=False)
        else:
            state = SessionState(last[0], last[1] + 1, closing_task, whole=False)
            state.last_index = last[4]
            state.reflects = state.is_closing(last[2], last[3])
            state.first_index = self._one("session_first", session_id)[0]
        ended, seal = start[14], self._one("seal_of", session_id)
        if seal is not None and seal[0] < index:
            state.close(seal[0], sealed=True)
        elif ended is not None and ended < index:
            state.close(ended, sealed=False)
        return state

    def session_leaves(self, session_id: str, end: int, *, thoughts: bool) -> list[Digest]:
        """The leaves of a session's records, or of every entry that names it, below an index."""
        values = {"session_id": session_id, "end": end}
        inner = self._sql["session_thought_indices" if thoughts else "session_entry_indices"]
        rows = self._connection.execute(
            f"SELECT leaf_hash FROM log WHERE log_index IN ({inner}) ORDER BY log_index", values
        )
        return [Digest(row[0]) for row in rows]

    def task_ids(self) -> list[str]:
        """Every task label that has records."""
        return [row[0] for row in self._rows(self._sql["task_ids_with_thoughts"])]

    def session_ids(self) -> list[str]:
        """Every session, oldest first."""
        return [row[0] for row in self._rows(self._sql["session_ids"])]

    def task_before(self, task_id: str, index: int) -> RawRow | None:
        """The version of a task before an index."""
        row: RawRow | None = self._one("task_before", task_id, index)
        return row

    def task_after(self, task_id: str, index: int) -> int | None:
        """The index of the next version of a task."""
        row = self._one("task_after", task_id, index)
        return None if row is None else row[0]

    def nodes(self, tree: int, level: int, start: int, end: int) -> list[bytes]:
        """Kept nodes of a tree, one level, in order."""
        sql = self._sql["nodes"]
        return [row[0] for row in self._connection.execute(sql, (tree, level, start, end))]

    def stray_nodes(self, size: int) -> list[tuple[int, int, int]]:
        """Nodes no tree has: above the log's size, at a level not kept, or of no seal."""
        return list(self._rows(self._sql["stray_nodes"], size))

    def schema_differences(self) -> list[str]:
        """How this file's schema differs from the one the migrations make."""
        must_be, is_now = expected_schema(), read_schema(self._connection)
        differences = [
            f"{kind} {name} is missing" for kind, name in must_be if (kind, name) not in is_now
        ]
        for (kind, name), sql in is_now.items():
            if (kind, name) not in must_be:
                differences.append(f"{kind} {name} does not belong here")
            elif must_be[kind, name] != sql:
                differences.append(f"{kind} {name} was altered")
        return differences


@contextmanager
def _any_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Take bytes that are no text for text with surrogates, which nothing recorded can hold."""
    before = connection.text_factory
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    try:
        yield
    finally:
        connection.text_factory = before


def _is_no_text(error: sqlite3.OperationalError) -> bool:
    return "decode to UTF-8" in str(error)


def _split(rows: Iterator[Any]) -> Iterator[tuple[bytes | None, RawRow]]:
    return ((row[-1], row[:-1]) for row in rows)


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


def expected_schema() -> dict[tuple[str, str], str | None]:
    """The schema that the migrations make."""
    connection = sqlite3.connect(":memory:")
    try:
        for script in load_migrations():
            connection.executescript(script)
        return read_schema(connection)
    finally:
        connection.close()
