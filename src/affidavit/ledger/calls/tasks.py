"""Creating, moving and listing tasks."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct

from affidavit.core.views.tasks import TaskRow
from affidavit.ledger import redaction, results, tasks
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import (
    REQUIRED,
    CreateTask,
    DeleteTask,
    ListTasks,
    NameTask,
    PatchTask,
    TransitionTask,
    read_id,
    read_input,
)
from affidavit.ledger.ports import Reader, Writer
from affidavit.ledger.results import Task, TaskList
from affidavit.ledger.versions import TASKS


class Tasks(Handle):
    """Calls about tasks."""

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
        task_id, salts, cleaned = context.new_id(), self._salts(), redaction.clean(given)

        def unit(tx: Writer) -> tuple[Task, int, int]:
            kept, removed = redaction.choose(tx, given, cleaned)
            return _task_answer(tasks.create_task(tx, kept, task_id, salts, context.src, removed))

        return self._write(given, unit, _replay_task, idempotency_key)

    def _salts(self) -> tuple[bytes, bytes]:
        return self._context.new_salt(), self._context.new_salt()

    def get_task(
        self, id: str = REQUIRED, *, as_of: Any = None, as_of_index: int | None = None
    ) -> Task | None:
        """A task by its id, as it is or was; None where there is none or it is deleted."""
        task_id = read_id(id)

        def ask(reader: Reader, moment: int | None) -> Task | None:
            row: TaskRow | None = reader.find_version(TASKS, (task_id,), moment)
            if row is None or row.deleted_at is not None:
                return None
            return results.task(reader.with_texts(row))

        return self._read_at(as_of, as_of_index, ask)

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
        src, salts, cleaned = self._context.src, self._salts(), redaction.clean(patch)

        def unit(tx: Writer) -> tuple[Task, int, int]:
            kept, removed = redaction.choose(tx, patch, cleaned)
            return _task_answer(tasks.update_task(tx, named.id, kept, salts, src, removed))

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
        src, salt, cleaned = self._context.src, self._context.new_salt(), redaction.clean(given)

        def unit(tx: Writer) -> tuple[Task, int, int]:
            kept, removed = redaction.choose(tx, given, cleaned)
            return _task_answer(tasks.transition_task(tx, kept, salt, src, removed))

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
        src, salt, cleaned = self._context.src, self._context.new_salt(), redaction.clean(given)

        def unit(tx: Writer) -> tuple[Task, int, int]:
            kept, removed = redaction.choose(tx, given, cleaned)
            return _task_answer(tasks.delete_task(tx, given.id, kept.reason, salt, src, removed))

        return self._write(given, unit, _replay_task, idempotency_key)

    def list_tasks(
        self,
        *,
        status: str | None = None,
        project_id: Any = UNSET,
        limit: int = 100,
        offset: int = 0,
        include_deleted: bool = False,
        as_of: Any = None,
        as_of_index: int | None = None,
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
        return self._read_at(
            as_of, as_of_index, lambda reader, moment: tasks.list_tasks(reader, wanted, moment)
        )

    def next_actions(self) -> TaskList:
        """Every task that is neither done nor cancelled, oldest first."""
        return self._read(tasks.next_actions)


class _Update(Struct):
    id: str
    patch: PatchTask


def _task_answer(row: TaskRow) -> tuple[Task, int, int]:
    return results.task(row), row.log_index, row.log_index


def _replay_task(tx: Writer, first: int, last: int) -> Task:
    del last
    return results.task(tx.with_texts(tx.task_version(first)))
