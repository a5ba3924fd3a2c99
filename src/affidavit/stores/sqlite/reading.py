"""Reading: one snapshot of the file, in the words of the use cases."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final

from affidavit.core.canonical import encode_string
from affidavit.core.entry import Entry, decode_entry, read_at
from affidavit.core.lifecycle import TERMINAL_STATES
from affidavit.core.merkle import Digest, Node, complete_levels
from affidavit.core.tile import TILE_HEIGHT
from affidavit.core.views import SESSION_VIEWS, TABLES, VIEW_OF_KIND, VIEWS, text_columns
from affidavit.core.views.captures import CaptureRow, DroppedRow, LinkRow
from affidavit.core.views.payload import Payload, payload_column, read_payload
from affidavit.core.views.sessions import SealRow, SessionRow
from affidavit.core.views.tasks import TaskRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.core.views.tool_calls import ApprovalRow
from affidavit.errors import InputError, IntegrityViolation
from affidavit.ledger.ports import KeyUse, SessionEntry, SessionHead, TaskFilter, TaskTip
from affidavit.stores.sqlite.failures import SAYS_MORE
from affidavit.stores.sqlite.observations import Observations
from affidavit.stores.sqlite.queries import load_queries

LOG_TREE: Final = 0

_PAGE = 512
# What a log that somebody emptied leaves behind.
_FILLED: Final = (*TABLES.values(), "merkle_nodes", "idempotency_keys")
_EVERYTHING: Final = 2**62
# Every entry that names a session, in log order: those with a row that does, and its end.
SESSION_ENTRIES: Final = " UNION ".join(
    f"SELECT log_index FROM {view.table} WHERE session_id = :session_id AND log_index < :end"
    for view in SESSION_VIEWS
) + (
    " UNION SELECT ended_index FROM sessions"
    " WHERE session_id = :session_id AND ended_index < :end ORDER BY 1"
)


class SqliteReader(Observations):
    """Answers from one transaction of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = load_queries()
        self._execute = connection.execute

    def _one(self, name: str, *values: Any) -> Any:
        return self._execute(self._sql[name], values).fetchone()

    def _all(self, name: str, *values: Any) -> list[Any]:
        found: list[Any] = self._execute(self._sql[name], values).fetchall()
        return found

    def head(self) -> tuple[int, int]:
        """The index and the time of the newest entry; (-1, 0) before there is one."""
        row = self._one("head")
        if row is None:
            return -1, 0
        try:
            return row[0], read_at(_bytes(row[1]))
        except InputError as error:
            raise _damaged(row[0], error) from None

    def size(self) -> int:
        """How many entries the log has."""
        row = self._one("head")
        return 0 if row is None else int(row[0]) + 1

    def has_views(self) -> bool:
        """Whether any view has a row: with an empty log, that is a log somebody emptied."""
        return any(self._execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in _FILLED)

    def last_at(self) -> int:
        """The time of the newest entry."""
        return self.head()[1]

    def entry(self, index: int) -> Entry:
        """One entry, by its index."""
        row = self._one("entry", index)
        if row is None:
            said = f"entry {index} is missing from the log"
            raise IntegrityViolation(said, hint=SAYS_MORE, index=index)
        return _read(row[0], index)

    def entries(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """A stretch of the log, read in pages so that no cursor stays open between them."""
        while start < end:
            rows = self._all("entries", start, min(start + _PAGE, end))
            if not rows:
                return
            yield from ((index, entry) for index, entry, _ in rows)
            start = rows[-1][0] + 1

    def entry_indices(self, *, session_id: str | None, task_id: str | None) -> list[int]:
        """Where the log names a session, or a task, in log order."""
        if session_id is not None:
            values = {"session_id": session_id, "end": _EVERYTHING}
            rows = self._execute(SESSION_ENTRIES, values)
        else:
            rows = self._execute(self._sql["task_entry_indices"], {"task_id": task_id})
        return [row[0] for row in rows]

    def newest_thoughts(self, limit: int) -> list[int]:
        """Where the newest records are, the newest first."""
        return [row[0] for row in self._all("newest_thoughts", limit)]

    def texts(self, index: int, kind: str, bytes_max: int) -> dict[str, bytes | None]:
        """What somebody wrote in an entry, as bytes: an edited row may hold anything."""
        names = text_columns(kind)
        if not names:
            return {}
        columns = ", ".join(f"substr(CAST({payload_column(name)} AS BLOB), 1, ?)" for name in names)
        sql = f"SELECT {columns} FROM {VIEW_OF_KIND[kind].table} WHERE log_index = ?"
        row = self._execute(sql, [*[bytes_max] * len(names), index]).fetchone()
        return dict(zip(names, row or [None] * len(names), strict=True))

    def text_sizes(self, index: int, kind: str) -> dict[str, int]:
        """How many bytes each text of an entry has; none where there is no text, or no longer."""
        names = text_columns(kind)
        if not names:
            return {}
        sized = [f"coalesce(length(CAST({payload_column(name)} AS BLOB)), 0)" for name in names]
        columns = ", ".join(sized)
        sql = f"SELECT {columns} FROM {VIEW_OF_KIND[kind].table} WHERE log_index = ?"
        row = self._execute(sql, [index]).fetchone()
        return dict(zip(names, row or [0] * len(names), strict=True))

    def texts_holding(self, text: str) -> dict[int, set[str]]:
        """Which texts hold these words: every text there is, is looked at."""
        found: dict[int, set[str]] = {}
        for view in VIEWS:
            for name in {name for kind in view.kinds for name in text_columns(kind)}:
                sql = (
                    f"SELECT log_index FROM {view.table} WHERE instr({payload_column(name)}, ?) > 0"
                )
                for (index,) in self._execute(sql, [text]):
                    found.setdefault(index, set()).add(name)
        return found

    def older_texts(self, tables: Sequence[str], before_us: int, limit: int) -> list[int]:
        """Entries recorded before a time that still have a text, the oldest first."""
        found: list[int] = []
        for view in VIEWS:
            if view.table in tables:
                names = {payload_column(one) for kind in view.kinds for one in text_columns(kind)}
                kept = " OR ".join(f"{name} IS NOT NULL" for name in sorted(names))
                sql = (
                    f"SELECT log_index FROM {view.table} WHERE at < ? AND ({kept}) "
                    "ORDER BY log_index LIMIT ?"
                )
                found += [index for (index,) in self._execute(sql, (before_us, limit))]
        return sorted(found)[:limit]

    def log_bytes(self) -> int:
        """How many bytes all entries have."""
        return int(self._one("log_bytes")[0])

    def view_bytes(self, table: str) -> tuple[int, int, int]:
        """How many entries have a row here, and the bytes of these entries and of their texts."""
        view = next(one for one in VIEWS if one.table == table)
        names = {payload_column(one) for kind in view.kinds for one in text_columns(kind)}
        texts = "".join(f" + coalesce(length(CAST(v.{name} AS BLOB)), 0)" for name in sorted(names))
        row = self._execute(
            f"SELECT count(*), coalesce(sum(length(log.entry)), 0), coalesce(sum(0{texts}), 0) "
            f"FROM {table} AS v JOIN log ON log.log_index = v.log_index"
        ).fetchone()
        return row[0], row[1], row[2]

    def turn_indices(self, turn_id: str) -> list[int]:
        """Every version of a turn."""
        return [index for (index,) in self._all("turn_indices", turn_id)]

    def call_ends(self, request_id: str, call_id: str) -> list[int]:
        """The entries that finished a tool call; a late result stands last."""
        return [index for (index,) in self._all("call_ends", request_id, call_id)]

    def call_requests(self, request_id: str, call_id: str) -> list[int]:
        """The entries that asked for a tool call, the oldest first: one for each who saw it."""
        return [index for (index,) in self._all("call_requests", request_id, call_id)]

    def calls_behind(self, indices: Sequence[int]) -> list[int]:
        """The calls of a server that wrote any of these entries."""
        wanted = sorted(indices)
        return [
            index
            for index, first, last in self._all("calls_that_wrote")
            if bisect_left(wanted, first) < bisect_right(wanted, last)
        ]

    def count_entries_holding(self, text: str) -> int:
        """How many entries hold these words themselves, in names."""
        quoted = encode_string(text)[1:-1].encode()
        return int(self._one("count_entries_holding", quoted)[0])

    def leaf(self, index: int) -> Digest:
        """The hash kept beside an entry."""
        rows = self._all("leaf_hashes", index, index + 1)
        return Digest(rows[0][0] if rows else b"")

    def payloads(self, start: int, end: int) -> dict[int, dict[str, Payload]]:
        """The payloads kept for a stretch of the log; what was erased or lost has no text."""
        found: dict[int, dict[str, Payload]] = {}
        for row_type, table in TABLES.items():
            sql = f"SELECT * FROM {table} WHERE log_index >= ? AND log_index < ?"
            for values in self._execute(sql, (start, end)):
                row = row_type._make(values)
                found[row.log_index] = _row_payloads(row)
        return found

    def read_log_nodes(self, nodes: Sequence[Node]) -> list[Digest]:
        """Hashes of the log's tree: kept ones as they are, others from the nearest kept level."""
        return [self._log_node(node) for node in nodes]

    def _log_node(self, node: Node) -> Digest:
        kept = node.level - node.level % TILE_HEIGHT
        width = 1 << (node.level - kept)
        first = node.position * width
        if kept == 0:
            rows = self._all("leaf_hashes", first, first + width)
        else:
            rows = self._all("nodes", LOG_TREE, kept, first, first + width)
        if len(rows) != width:
            raise IntegrityViolation(
                f"the log's tree lacks nodes below level {node.level}, position {node.position}",
                hint=SAYS_MORE,
            )
        row = [Digest(digest) for (digest,) in rows]
        return row[0] if width == 1 else complete_levels(row)[-1][0]

    def find_thought(self, record_id: str) -> ThoughtRow | None:
        """A record by its id."""
        row = self._one("thought_by_id", record_id)
        return row and ThoughtRow._make(row)

    def thoughts_between(self, first: int, last: int) -> list[ThoughtRow]:
        """Every entry of a stretch of the log, both ends included, as the record it is."""
        rows = [ThoughtRow._make(row) for row in self._all("thoughts_between", first, last)]
        if len(rows) != last - first + 1:
            raise IntegrityViolation(
                f"entries {first} to {last} are not all records, as they must be",
                hint="Keep the file as it is; `affidavit verify` says more.",
                index=first,
            )
        return rows

    def thoughts(
        self,
        *,
        task_id: str | None,
        session_id: str | None,
        type: str | None,
        after: int,
        end: int,
        limit: int | None,
    ) -> list[ThoughtRow]:
        """Records in log order."""
        name = "thoughts"
        if task_id is not None:
            name = "thoughts_of_task"
        elif session_id is not None:
            name = "thoughts_of_session"
        values = {
            "task_id": task_id,
            "session_id": session_id,
            "type": type,
            "after": after,
            "end": end,
            "limit": -1 if limit is None else limit,
        }
        rows = self._execute(self._sql[name], values)
        return [ThoughtRow._make(row) for row in rows]

    def find_session(self, session_id: str) -> SessionRow | None:
        """A session by its id."""
        row = self._one("session_by_id", session_id)
        return row and SessionRow._make(row)

    def session_at(self, index: int) -> SessionRow:
        """The session that started at an index."""
        return SessionRow._make(self._found("session_at", index, "session"))

    def sessions(
        self,
        *,
        task_id: str | None,
        state: str | None,
        continues: str | None,
        before: int,
        limit: int | None,
    ) -> list[SessionRow]:
        """Sessions, newest first."""
        values = {
            "task_id": task_id,
            "state": state,
            "continues": continues,
            "before": before,
            "limit": -1 if limit is None else limit,
        }
        return [SessionRow._make(row) for row in self._execute(self._sql["sessions"], values)]

    def idle_sessions(self, before_us: int) -> list[str]:
        """Sessions nobody ended, in which nothing happened since a time."""
        return [row[0] for row in self._all("idle_sessions", before_us)]

    def session_head(self, session_id: str) -> SessionHead | None:
        """Where a session's chain stands."""
        row = self._one("session_head", session_id)
        if row is None:
            return None
        genesis, ended, sealed = row
        chain_hash, seq = self._one("session_tip", session_id) or (genesis, -1)
        return SessionHead(ended, sealed, chain_hash, seq + 1)

    def session_entries(
        self, session_id: str, start: int, end: int = _EVERYTHING
    ) -> list[SessionEntry]:
        """Every entry that names a session, from the log itself, whatever the views say.

        Quotes inside a name are escaped, so only a key can match. A session that continues this
        one names it one level deeper, in its start.
        """
        values = {
            "start": start,
            "end": end,
            "name": f'"session_id":{encode_string(session_id)}'.encode(),
            "started": b'"kind":"session.started"',
            "thought": b'"kind":"thought.recorded"',
        }
        rows = self._execute(self._sql["session_entries"], values)
        return [SessionEntry(index, Digest(leaf), bool(own)) for index, leaf, own in rows]

    def record_count(self, session_id: str, end: int = _EVERYTHING) -> int:
        """How many records a session has below an index."""
        return int(self._one("record_count", session_id, end)[0])

    def find_seal(self, session_id: str) -> SealRow | None:
        """The seal of a session."""
        row = self._one("seal_of", session_id)
        return row and SealRow._make(row)

    def task_tip(self, task_id: str) -> TaskTip | None:
        """The newest record of a task."""
        row = self._one("task_tip", task_id)
        return row and TaskTip._make(row)

    def find_task(self, task_id: str) -> TaskRow | None:
        """The newest version of a task, deleted or not."""
        row = self._one("task_now", task_id)
        return row and TaskRow._make(row)

    def task_version(self, index: int) -> TaskRow:
        """The version of a task that an entry made."""
        return TaskRow._make(self._found("task_version", index, "version of a task"))

    def _found(self, name: str, index: int, what: str) -> Any:
        row = self._one(name, index)
        if row is None:
            raise IntegrityViolation(
                f"no {what} belongs to entry {index}, where one must be",
                hint="Keep the file as it is; `affidavit verify` says more.",
                index=index,
            )
        return row

    def with_texts(self, row: TaskRow) -> TaskRow:
        """A version with the texts that hold in it, wherever they were written."""
        title = self._text(row, row.title_index, row.title, "title")
        description = self._text(row, row.description_index, row.description, "description")
        return row._replace(title=title, description=description)

    def _text(self, row: TaskRow, index: int | None, own: str | None, column: str) -> str | None:
        if index is None or index == row.log_index:
            return own
        found = self._one("task_version", index)
        return None if found is None else getattr(TaskRow._make(found), column)

    def tasks(
        self, wanted: TaskFilter, limit: int | None, offset: int
    ) -> tuple[list[TaskRow], int]:
        """Tasks as they are now or were, oldest first, and how many there are before paging."""
        where: list[str] = ["superseded_by IS NULL"]
        values: list[Any] = []
        if wanted.end is not None:
            where = ["log_index < ?", "(superseded_by IS NULL OR superseded_by >= ?)"]
            values = [wanted.end, wanted.end]
        if not wanted.include_deleted:
            where.append("deleted_at IS NULL")
        if wanted.status is not None:
            where.append("status = ?")
            values.append(wanted.status)
        if wanted.by_project:
            where.append("project_id IS ?")
            values.append(wanted.project_id)
        if wanted.open_only:
            where.append(f"status NOT IN {TERMINAL_STATES}")
        scope = f"FROM task_versions WHERE {' AND '.join(where)}"
        total = self._execute(f"SELECT count(*) {scope}", values).fetchone()[0]
        rows = self._execute(
            f"SELECT * {scope} ORDER BY created_index LIMIT ? OFFSET ?",
            [*values, -1 if limit is None else limit, offset],
        ).fetchall()
        return [self.with_texts(TaskRow._make(row)) for row in rows], total

    def task_version_indices(self, task_id: str) -> list[int]:
        """Every entry of a task."""
        return [index for (index,) in self._all("task_version_indices", task_id)]

    def approvals(self, name: tuple[str, str]) -> list[ApprovalRow]:
        """Who decided about a tool call, oldest first."""
        return [ApprovalRow._make(row) for row in self._all("approvals", *name)]

    def find_linked(self, source: str, external_id: str) -> SessionRow | None:
        """The session that another program's id was linked with last."""
        row = self._one("linked_session", source, external_id)
        return row and SessionRow._make(row)

    def links(self, session_id: str) -> list[LinkRow]:
        """What other programs call a session."""
        return [LinkRow._make(row) for row in self._all("links", session_id)]

    def captures(self, session_id: str | None) -> list[CaptureRow]:
        """Which channels were switched on and off, of a session or for everything."""
        found = (
            self._all("captures_of_all")
            if session_id is None
            else self._all("captures", session_id)
        )
        return [CaptureRow._make(row) for row in found]

    def dropped(self) -> list[DroppedRow]:
        """What was lost."""
        return [DroppedRow._make(row) for row in self._all("dropped")]

    def erasures(self) -> list[tuple[int, Entry]]:
        """Every entry that erased payloads, oldest first."""
        found = ((index, _read(entry, index)) for index, entry, _, __ in self._all("erasures"))
        return [(index, entry) for index, entry in found if entry.kind == "payload.erased"]

    def setting_changes(self, end: int) -> list[Entry]:
        """Changes of settings below an index, oldest first: as the log has them, not the view."""
        found = (_read(entry, index) for index, entry in self._all("setting_changes", end))
        return [entry for entry in found if entry.kind == "setting.changed"]

    def identity_changes(self) -> list[tuple[int, Entry]]:
        """Changes of keys and origin, oldest first: as the log has them, not the view."""
        rows = self._all("identity_changes")
        return [(index, _read(entry, index)) for index, entry in rows]

    def find_key(self, key: str) -> KeyUse | None:
        """What an idempotency key stood for."""
        row = self._one("find_key", key)
        return row and KeyUse._make(row)


def _row_payloads(row: Any) -> dict[str, Payload]:
    if isinstance(row, ThoughtRow):
        # Nobody can record an empty content: where it is empty it was erased, or it is lost.
        return {"content": Payload(row.content or None, None)}
    names = [name for name in row._fields if f"{name}_salt" in row._fields]
    fields = [name.removesuffix("_json") for name in names]
    return {field: read_payload(row, field) for field in fields}


def _read(data: Any, index: int) -> Entry:
    try:
        return decode_entry(_bytes(data))
    except InputError as error:
        raise _damaged(index, error) from None


def _bytes(data: Any) -> bytes:
    """An entry's bytes; a missing or empty one reads as NULL, and damage may bring any type."""
    return data if isinstance(data, bytes) else b""


def _damaged(index: int, error: InputError) -> IntegrityViolation:
    """What cannot be read was damaged: it is no fault of whoever asks."""
    return IntegrityViolation(
        f"entry {index} of the log is damaged ({error.message})", hint=SAYS_MORE, index=index
    )
