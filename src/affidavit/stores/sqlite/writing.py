"""Writing: one transaction under the write lock, holding one or many callers' units."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from affidavit.core.merkle import Digest, complete_levels, leaf_hash
from affidavit.core.moment import AT_US_MAX
from affidavit.core.tile import TILE_HEIGHT, TILE_WIDTH
from affidavit.core.views import TABLES, VIEWS, Row
from affidavit.core.views.payload import payload_column
from affidavit.core.views.sessions import SealRow, SessionRow
from affidavit.core.views.settings import SettingRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.errors import StoreError
from affidavit.ledger.chains import verify_session_chain
from affidavit.ledger.ports import KeyUse, SessionHead, TaskTip
from affidavit.stores.sqlite.audit import SqliteAudit
from affidavit.stores.sqlite.reading import LOG_TREE, SqliteReader
from affidavit.verify.findings import ChainReport

_INSERT: Final = {
    kind: f"INSERT INTO {table} VALUES ({', '.join('?' * len(kind._fields))})"
    for kind, table in TABLES.items()
}
_SUPERSEDE: Final = {
    view.row: f"UPDATE {view.table} SET superseded_by = ? WHERE log_index = ?"
    for view in VIEWS
    if view.key
}
_TIPS_MAX = 10_000


class Tips:
    """What this process's last commit left behind; valid only while the head is its own."""

    __slots__ = ("head", "sessions", "tasks", "values")

    def __init__(self) -> None:
        self.head = (-2, 0)
        self.tasks: dict[str, TaskTip | None] = {}
        self.sessions: dict[str, SessionHead | None] = {}
        self.values: dict[str, Any] = {}

    def clear(self) -> None:
        """Forget everything: somebody else wrote, or a transaction was rolled back."""
        self.head = (-2, 0)
        self.tasks.clear()
        self.sessions.clear()
        self.values.clear()


class SqliteWriter(SqliteReader):
    """The writer's transaction, after BEGIN IMMEDIATE."""

    def __init__(self, connection: sqlite3.Connection, tips: Tips) -> None:
        super().__init__(connection)
        self._connection = connection
        self._append_sql = self._sql["append"]
        self._records: list[tuple[bytes, ThoughtRow]] = []
        head = self.head()
        self._execute = self._execute_behind_records
        if head != tips.head or max(len(tips.tasks), len(tips.sessions)) > _TIPS_MAX:
            tips.clear()
        self._tips = tips
        self._next, self._last_at = head[0] + 1, head[1]
        self.first = self._next
        self.first_entry: bytes | None = None
        self.at = 0
        self.writes = 0
        self.committing = False

    def _execute_behind_records(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        """Any other statement comes after the records kept back, in the order they were given."""
        if self._records:
            self.flush()
        return self._connection.execute(sql, values)

    def start_unit(self, clock: Callable[[], int]) -> None:
        """Give the next unit its time: the clock's, and later than every unit before."""
        self.at = max(clock(), self._last_at + 1)
        if self.at > AT_US_MAX:
            raise StoreError(
                f"the ledger's time has reached its end ({self._last_at})",
                hint="A clock was far ahead once. Start a new ledger.",
            )

    def mark(self) -> tuple[int, int, int]:
        """Where this transaction stands: what `go_back` returns to."""
        return self._next, self._last_at, self.writes

    def go_back(self, mark: tuple[int, int, int]) -> None:
        """A unit was undone: so is what it left in memory."""
        self._next, self._last_at, self.writes = mark
        self._records.clear()
        self._tips.clear()
        if self._next == self.first:
            self.first_entry = None

    def leave_tips(self) -> None:
        """After the commit: what is cached holds for this head."""
        self._tips.head = (self._next - 1, self._last_at)

    def size(self) -> int:
        """How many entries the log has, this transaction's included."""
        return self._next

    def append(self, entry: bytes, row: Row | None) -> int:
        """Write an entry and its view row."""
        index = self._next
        self.writes += 1
        if self.first_entry is None:
            self.first_entry = entry
        self._execute(self._append_sql, (index, entry, leaf_hash(entry)))
        if row is not None:
            self._execute(_INSERT[type(row)], row)
            self._note(row)
        self._next = index + 1
        self._last_at = self.at
        if self._next % TILE_WIDTH == 0:
            self._complete_tiles(self._next)
        return index

    def append_thoughts(
        self,
        linked: Sequence[tuple[bytes, ThoughtRow]],
        tips: Mapping[str, TaskTip],
        heads: Mapping[str, SessionHead],
    ) -> None:
        """Add records with their rows, and remember where they leave the chains."""
        self.writes += 1
        if self.first_entry is None:
            self.first_entry = linked[0][0]
        self._records.extend(linked)
        self._tips.tasks.update(tips)
        self._tips.sessions.update(heads)
        self._next += len(linked)
        self._last_at = self.at

    def flush(self) -> None:
        """Write the records kept back: those of many units are two statements together."""
        records, self._records = self._records, []
        if not records:
            return
        first = records[0][1].log_index
        log = [(at, entry, leaf_hash(entry)) for at, (entry, _) in enumerate(records, first)]
        self._connection.executemany(self._append_sql, log)
        # Plain tuples: SQLite's module takes the values of a named one out one by one, measurably.
        self._connection.executemany(_INSERT[ThoughtRow], [tuple(row) for _, row in records])
        end = first + len(records)
        for size in range(first - first % TILE_WIDTH + TILE_WIDTH, end + 1, TILE_WIDTH):
            self._complete_tiles(size)

    def _note(self, row: Row) -> None:
        if isinstance(row, SessionRow | SealRow):
            self._tips.sessions.pop(row.session_id, None)
        elif isinstance(row, SettingRow):
            self._tips.values.clear()

    def _complete_tiles(self, size: int) -> None:
        """Keep the log's nodes of every eighth level whose subtree is complete at this size."""
        level = 0
        while size % TILE_WIDTH == 0:
            size //= TILE_WIDTH
            first = (size - 1) * TILE_WIDTH
            if level == 0:
                rows = self._all("leaf_hashes", first, first + TILE_WIDTH)
            else:
                rows = self._all("nodes", LOG_TREE, level, first, first + TILE_WIDTH)
            level += TILE_HEIGHT
            top = complete_levels([Digest(digest) for (digest,) in rows])[-1][0]
            self._add_nodes(LOG_TREE, level, size - 1, [top])

    def end_session(self, row: SessionRow) -> None:
        """Set the links of a session that ends."""
        self.writes += 1
        values = (row.ended_index, row.ended_at, row.end_reason, row.session_id)
        self._execute(self._sql["end_session"], values)
        self._tips.sessions.pop(row.session_id, None)

    def supersede(self, row: Any, by: int) -> None:
        """Link a version to the next one."""
        self.writes += 1
        self._execute(_SUPERSEDE[type(row)], (by, row.log_index))

    def add_levels(self, tree: int, levels: Sequence[Sequence[Digest]]) -> None:
        """Keep the inner nodes of a sealed session's tree, level 1 first."""
        for level, digests in enumerate(levels, start=1):
            self._add_nodes(tree, level, 0, digests)

    def _add_nodes(self, tree: int, level: int, first: int, digests: Sequence[Digest]) -> None:
        self.writes += 1
        rows = [(tree, level, first + offset, digest) for offset, digest in enumerate(digests)]
        self._connection.executemany(self._sql["add_node"], rows)

    def erase(self, table: str, index: int, name: str, erased_at: str) -> None:
        """Take a text and its salt away; the guards let go what the newest erasure names."""
        self.writes += 1
        if table == TABLES[ThoughtRow]:
            self._execute(self._sql["erase_content"], (erased_at, index))
        else:
            column = payload_column(name)
            sql = f"UPDATE {table} SET {column} = NULL, {column}_salt = NULL WHERE log_index = ?"
            self._execute(sql, (index,))

    def forget_inputs(self, indices: Sequence[int]) -> None:
        """Forget what the calls were given that wrote these entries: a retry is then refused."""
        self.writes += 1
        self._execute(self._sql["forget_inputs"], (json.dumps(indices),))

    def add_key(self, key: str, use: KeyUse) -> None:
        """Remember what an idempotency key stood for."""
        self.writes += 1
        self._execute(self._sql["add_key"], (key, *use))

    def task_tip(self, task_id: str) -> TaskTip | None:
        """The newest record of a task, from the last commit where that is still valid."""
        tips = self._tips.tasks
        if task_id not in tips:
            tips[task_id] = super().task_tip(task_id)
        return tips[task_id]

    def session_head(self, session_id: str) -> SessionHead | None:
        """Where a session's chain stands, from the last commit where that is still valid."""
        heads = self._tips.sessions
        if session_id not in heads:
            heads[session_id] = super().session_head(session_id)
        return heads[session_id]

    def check_session(self, session_id: str) -> ChainReport:
        """Verify a session's chain inside this transaction."""
        self.flush()
        audit = SqliteAudit(self._connection)
        try:
            return verify_session_chain(audit, session_id)
        finally:
            audit.close()

    def cached(self, name: str, load: Callable[[], Any]) -> Any:
        """A value derived from settings, loaded once while nobody else writes."""
        values = self._tips.values
        if name not in values:
            values[name] = load()
        return values[name]
