"""The ledger as callers hold it: every use case under its public name.

Each method checks its input before the write lock, runs one unit under it, and returns once the
fact is durable. `idempotency_key` makes a retry safe: the same key with the same input gives the
first answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, TypeVar

from msgspec import UNSET, Struct

from affidavit.errors import InputError, invalid
from affidavit.ledger import chains, idempotency, rebuild, results, sessions, tasks, thoughts
from affidavit.ledger.context import Context
from affidavit.ledger.inputs import (
    REQUIRED,
    THOUGHTS_MAX,
    CreateTask,
    DeleteTask,
    EndSession,
    ListSessions,
    ListTasks,
    ListThoughts,
    NameSession,
    NameTask,
    PatchTask,
    RecordThought,
    StartSession,
    TransitionTask,
    VerifyChain,
    convert,
    read_id,
    read_input,
    read_timestamp,
)
from affidavit.ledger.ports import Reader, Writer
from affidavit.ledger.results import (
    Rebuild,
    Seal,
    Session,
    SessionEnd,
    Task,
    TaskList,
    ThoughtRecord,
)
from affidavit.ledger.settings import (
    SETTINGS,
    Value,
    change_settings,
    check_by,
    check_settings,
    read_settings,
)
from affidavit.verify.findings import ChainReport, Report
from affidavit.verify.ledger import Progress, verify_ledger

T = TypeVar("T")

_PAGE = 1_000


class Ledger:
    """A handle on one ledger; close it, or use it in a `with` block."""

    def __init__(self, context: Context, close: Callable[[], None]) -> None:
        self._context = context
        self._close = ExitStack()
        self._close.callback(close)
        self._now = thoughts.minted_time(context.clock)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self.location} {self.ledger_id}>"

    def close(self) -> None:
        """Close the handle; facts already acknowledged are on disk."""
        self._close.close()

    @property
    def ledger_id(self) -> str:
        """The id this ledger was created with."""
        return self._context.ledger_id

    @property
    def location(self) -> str:
        """Where the ledger is kept."""
        return self._context.store.location

    @property
    def readonly(self) -> bool:
        """Whether this handle can only read."""
        return self._context.store.readonly

    def __len__(self) -> int:
        """How many entries the log has."""
        return self._read(lambda reader: reader.size())

    def _read(self, ask: Callable[[Reader], T]) -> T:
        with self._context.store.read() as reader:
            return ask(reader)

    def _write(
        self,
        given: Struct,
        unit: Callable[[Writer], tuple[T, int, int]],
        replay: Callable[[Writer, int, int], T],
        key: str | None,
    ) -> T:
        """Run a unit that answers (result, first index, last index), once per idempotency key."""
        if key is not None:
            unit = idempotency.once(
                read_id(key, "idempotency_key"), given, self._context.new_salt(), unit, replay
            )
        result, _, _ = self._context.store.write(unit, self._context.clock)
        return result

    # Decisions

    def record_thought(
        self,
        *,
        type: str = REQUIRED,
        task_id: str = REQUIRED,
        agent_id: str = REQUIRED,
        content: str = REQUIRED,
        session_id: str | None = None,
        idempotency_key: str | None = None,
        id_fn: Callable[[], str] | None = None,
        now_fn: Callable[[], str] | None = None,
    ) -> ThoughtRecord:
        """Record one decision: a plan, an analysis, a decision or a reflection."""
        given = read_input(
            RecordThought,
            {
                "type": type,
                "task_id": task_id,
                "agent_id": agent_id,
                "content": content,
                "session_id": session_id,
            },
        )
        record_id = self._context.new_id() if id_fn is None else read_id(id_fn())
        timestamp = self._now() if now_fn is None else read_timestamp(now_fn())
        drafts = [thoughts.draft(given, record_id, timestamp)]
        src = self._context.src

        def unit(tx: Writer) -> tuple[ThoughtRecord, int, int]:
            [row] = thoughts.write_thoughts(tx, drafts, src)
            return results.thought_record(row), row.log_index, row.log_index

        return self._write(given, unit, _replay_thought, idempotency_key)

    def record_thoughts(
        self, records: Iterable[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> list[ThoughtRecord]:
        """Record several decisions as one unit, all or nothing, at most 10,000."""
        given = [
            convert(RecordThought, item, f"records[{place}].")
            for place, item in enumerate(_bounded(records))
        ]
        timestamp, new_id = self._now(), self._context.new_id
        drafts = [thoughts.draft(one, new_id(), timestamp) for one in given]
        src = self._context.src

        def unit(tx: Writer) -> tuple[list[ThoughtRecord], int, int]:
            rows = thoughts.write_thoughts(tx, drafts, src)
            found = [results.thought_record(row) for row in rows]
            return found, rows[0].log_index, rows[-1].log_index

        if not drafts:
            return []
        return self._write(_Batch(given), unit, _replay_thoughts, idempotency_key)

    def get_thought(self, id: str) -> ThoughtRecord | None:
        """A record by its id, or None."""
        record_id = read_id(id)
        row = self._read(lambda reader: reader.find_thought(record_id))
        return None if row is None else results.thought_record(row)

    def list_thoughts(
        self,
        *,
        task_id: str | None = None,
        session_id: str | None = None,
        type: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[ThoughtRecord]:
        """Records in the order they were written; `after` is the id of the last one seen."""
        wanted = read_input(
            ListThoughts,
            {
                "task_id": task_id,
                "session_id": session_id,
                "type": type,
                "after": after,
                "limit": limit,
            },
        )
        return self._read(
            lambda reader: thoughts.list_thoughts(
                reader, wanted, after=thoughts.find_place(reader, wanted.after), limit=wanted.limit
            )
        )

    def iter_thoughts(
        self,
        *,
        task_id: str | None = None,
        session_id: str | None = None,
        type: str | None = None,
        after: str | None = None,
    ) -> Iterator[ThoughtRecord]:
        """Stream records in the order they were written, up to the newest at the first step."""
        wanted = read_input(
            ListThoughts,
            {"task_id": task_id, "session_id": session_id, "type": type, "after": after},
        )
        return self._stream(wanted)

    def _stream(self, wanted: ListThoughts) -> Iterator[ThoughtRecord]:
        place, end = self._read(
            lambda reader: (thoughts.find_place(reader, wanted.after), reader.size())
        )
        while True:
            with self._context.store.read() as reader:
                page = thoughts.list_thoughts(reader, wanted, after=place, end=end, limit=_PAGE)
            yield from page
            if len(page) < _PAGE:
                return
            place = page[-1].index

    # Sessions

    def start_session(
        self,
        *,
        intent: str = REQUIRED,
        caller: str | None = None,
        task_id: str | None = None,
        session_id: str | None = None,
        proof_grade: bool = False,
        continues: str | None = None,
        project: str | None = None,
        model: str | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Start a session; `continues` is the id of a sealed or ended one it goes on from."""
        given = read_input(
            StartSession,
            {
                "intent": intent,
                "caller": caller,
                "task_id": task_id,
                "session_id": session_id,
                "proof_grade": proof_grade,
                "continues": continues,
                "project": project,
                "model": model,
            },
        )
        context = self._context
        fresh = given.session_id or context.new_id()
        salt = context.new_salt()

        def unit(tx: Writer) -> tuple[Session, int, int]:
            row = sessions.start_session(tx, given, fresh, context.ledger_id, salt, context.src)
            return results.session(row, None, 0), row.log_index, row.log_index

        return self._write(given, unit, _replay_start, idempotency_key)

    def get_session(self, session_id: str) -> Session | None:
        """A session by its id, or None."""
        name = read_id(session_id, "session_id")

        def ask(reader: Reader) -> Session | None:
            row = reader.find_session(name)
            return None if row is None else sessions.describe(reader, row)

        return self._read(ask)

    def list_sessions(
        self,
        *,
        task_id: str | None = None,
        state: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Session]:
        """Sessions, newest first; `after` is the id of the last one already seen."""
        wanted = read_input(
            ListSessions, {"task_id": task_id, "state": state, "after": after, "limit": limit}
        )
        return self._read(lambda reader: sessions.list_sessions(reader, wanted))

    def seal_session(
        self, session_id: str = REQUIRED, *, idempotency_key: str | None = None
    ) -> Seal:
        """Seal a session over its records and entries; the second call gives the same answer."""
        given = read_input(NameSession, {"session_id": session_id})
        src = self._context.src

        def unit(tx: Writer) -> tuple[Seal, int, int]:
            row, already = sessions.seal_session(tx, given.session_id, src)
            last = row.log_index - 1 if already else row.log_index
            return sessions.describe_seal(row, already=already), row.log_index, last

        def replay(tx: Writer, first: int, last: int) -> Seal:
            row = tx.find_seal(given.session_id)
            if row is None:
                raise thoughts.session_not_found(given.session_id)
            return sessions.describe_seal(row, already=last < first)

        return self._write(given, unit, replay, idempotency_key)

    def merkle_root(self, session_id: str = REQUIRED) -> Seal:
        """The root of a sealed session."""
        given = read_input(NameSession, {"session_id": session_id})
        return self._read(lambda reader: sessions.get_root(reader, given.session_id))

    def end_session(
        self,
        session_id: str = REQUIRED,
        *,
        reason: str = "done",
        idempotency_key: str | None = None,
    ) -> SessionEnd:
        """End a session; ending it again repeats the first answer."""
        given = read_input(EndSession, {"session_id": session_id, "reason": reason})
        src = self._context.src

        def unit(tx: Writer) -> tuple[SessionEnd, int, int]:
            row = sessions.end_session(tx, given.session_id, given.reason, src)
            end = sessions.describe_end(tx, row)
            return end, end.index, end.index

        def replay(tx: Writer, first: int, last: int) -> SessionEnd:
            del first, last
            return unit(tx)[0]

        return self._write(given, unit, replay, idempotency_key)

    # Tasks

    def create_task(
        self,
        *,
        title: str = REQUIRED,
        status: str = "INIT",
        project_id: str | None = None,
        description: str | None = None,
        priority: str | None = None,
        assignee: str | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Create a task."""
        given = read_input(
            CreateTask,
            {
                "title": title,
                "status": status,
                "project_id": project_id,
                "description": description,
                "priority": priority,
                "assignee": assignee,
            },
        )
        context = self._context
        task_id, salts = context.new_id(), self._salts()

        def unit(tx: Writer) -> tuple[Task, int, int]:
            return _task_answer(tasks.create_task(tx, given, task_id, salts, context.src))

        return self._write(given, unit, _replay_task, idempotency_key)

    def _salts(self) -> tuple[bytes, bytes]:
        return self._context.new_salt(), self._context.new_salt()

    def get_task(self, id: str) -> Task | None:
        """A task by its id; None where there is none or it is deleted."""
        task_id = read_id(id)

        def ask(reader: Reader) -> Task | None:
            row = reader.find_task(task_id)
            if row is None or row.deleted_at is not None:
                return None
            return results.task(reader.with_texts(row))

        return self._read(ask)

    def update_task(
        self,
        id: str = REQUIRED,
        *,
        title: Any = UNSET,
        status: Any = UNSET,
        project_id: Any = UNSET,
        description: Any = UNSET,
        priority: Any = UNSET,
        assignee: Any = UNSET,
        idempotency_key: str | None = None,
    ) -> Task:
        """Change a task: None clears, an omitted argument leaves; DONE needs a written reason."""
        named = read_input(NameTask, {"id": id})
        patch = read_input(
            PatchTask,
            {
                "title": title,
                "status": status,
                "project_id": project_id,
                "description": description,
                "priority": priority,
                "assignee": assignee,
            },
        )
        src, salts = self._context.src, self._salts()

        def unit(tx: Writer) -> tuple[Task, int, int]:
            return _task_answer(tasks.update_task(tx, named.id, patch, salts, src))

        return self._write(_Update(named.id, patch), unit, _replay_task, idempotency_key)

    def transition_task(
        self,
        id: str = REQUIRED,
        *,
        to: str = REQUIRED,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Move a task along its lifecycle; every other move is refused."""
        given = read_input(TransitionTask, {"id": id, "to": to, "reason": reason})
        src, salt = self._context.src, self._context.new_salt()

        def unit(tx: Writer) -> tuple[Task, int, int]:
            return _task_answer(tasks.transition_task(tx, given, salt, src))

        return self._write(given, unit, _replay_task, idempotency_key)

    def delete_task(
        self,
        id: str = REQUIRED,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Delete a task; its history stays in the log."""
        given = read_input(DeleteTask, {"id": id, "reason": reason})
        src, salt = self._context.src, self._context.new_salt()

        def unit(tx: Writer) -> tuple[Task, int, int]:
            return _task_answer(tasks.delete_task(tx, given.id, given.reason, salt, src))

        return self._write(given, unit, _replay_task, idempotency_key)

    def list_tasks(
        self,
        *,
        status: str | None = None,
        project_id: Any = UNSET,
        limit: int = 100,
        offset: int = 0,
        include_deleted: bool = False,
    ) -> TaskList:
        """A page of tasks, oldest first; project_id=None means without a project."""
        wanted = read_input(
            ListTasks,
            {
                "status": status,
                "project_id": project_id,
                "limit": limit,
                "offset": offset,
                "include_deleted": include_deleted,
            },
        )
        return self._read(lambda reader: tasks.list_tasks(reader, wanted))

    def next_actions(self) -> TaskList:
        """Every task that is neither done nor cancelled, oldest first."""
        return self._read(tasks.next_actions)

    # Proof

    def verify_chain(
        self, *, task_id: str | None = None, session_id: str | None = None, all: bool = False
    ) -> ChainReport:
        """Verify one task's or one session's chain, or every one; stops at the first break."""
        wanted = read_input(VerifyChain, {"task_id": task_id, "session_id": session_id, "all": all})
        if wanted.task_id is not None and wanted.session_id is not None:
            raise invalid("session_id", "give task_id or session_id, not both")
        with self._context.store.audit() as source:
            return chains.verify_chain(source, wanted)

    def verify(self, *, progress: Progress | None = None) -> Report:
        """Verify everything: log, tree, chains, seals, views, payloads and schema."""
        with self._context.store.audit() as source:
            return verify_ledger(source, progress)

    def rebuild(self, *, check: bool = False) -> Rebuild:
        """Derive every view again from the log; `check` only reports what differs."""
        return rebuild.rebuild(self._context.store, check=check)

    # Settings

    @property
    def settings(self) -> dict[str, Value]:
        """The settings in force."""
        return self._read(read_settings)

    def set(
        self, *, by: str | None = None, idempotency_key: str | None = None, **changes: Value
    ) -> dict[str, Value]:
        """Change settings; every change is an entry. Answers with the settings then in force."""
        wanted = check_settings(changes)
        check_by(by)
        if not wanted:
            raise InputError(f"settings: name one of {', '.join(SETTINGS)}", field="settings")
        src = self._context.src

        def unit(tx: Writer) -> tuple[dict[str, Value], int, int]:
            first, last = change_settings(tx, wanted, by, src)
            return read_settings(tx), first, last

        def replay(tx: Writer, first: int, last: int) -> dict[str, Value]:
            del first
            return read_settings(tx, last + 1)

        return self._write(_Change(wanted, by), unit, replay, idempotency_key)

    def describe(self) -> dict[str, Any]:
        """Facts about this ledger for a person: where it is, how large, what clock it runs on."""
        size, last_at = self._read(lambda reader: (reader.size(), reader.last_at()))
        return {
            "ledger_id": self.ledger_id,
            "entries": size,
            "readonly": self.readonly,
            "clock_ahead_us": max(0, last_at - self._context.clock()),
            **self._context.store.describe(),
        }


class _Batch(Struct):
    records: list[RecordThought]


class _Update(Struct):
    id: str
    patch: PatchTask


class _Change(Struct):
    changes: dict[str, Value]
    by: str | None


def _bounded(records: Any) -> list[Any]:
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise invalid("records", "is not a list of dicts")
    found: list[Any] = []
    for item in records:
        found.append(item)
        if len(found) > THOUGHTS_MAX:
            raise invalid(
                "records", f"more than {THOUGHTS_MAX:,} in one call", code="ERR_TOO_LARGE"
            )
    return found


def _task_answer(row: Any) -> tuple[Task, int, int]:
    return results.task(row), row.log_index, row.log_index


def _replay_thought(tx: Writer, first: int, last: int) -> ThoughtRecord:
    return results.thought_record(tx.thoughts_between(first, last)[0])


def _replay_thoughts(tx: Writer, first: int, last: int) -> list[ThoughtRecord]:
    return [results.thought_record(row) for row in tx.thoughts_between(first, last)]


def _replay_start(tx: Writer, first: int, last: int) -> Session:
    del last
    row = tx.session_at(first)._replace(ended_index=None, ended_at=None, end_reason=None)
    return results.session(row, None, 0)


def _replay_task(tx: Writer, first: int, last: int) -> Task:
    del last
    return results.task(tx.with_texts(tx.task_version(first)))
