"""Tasks: what is to be done, where it stands, and the gate before DONE."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from affidavit.core.entry import Entry, Source, commitment, encode_entry
from affidavit.core.lifecycle import find_allowed
from affidavit.core.views.payload import Payload
from affidavit.core.views.tasks import TaskRow, attempt_after, task_row
from affidavit.errors import ConflictError, InputError, invalid
from affidavit.ledger import results
from affidavit.ledger.inputs import CreateTask, ListTasks, PatchTask, TransitionTask
from affidavit.ledger.ports import Reader, TaskFilter, Writer
from affidavit.ledger.redaction import noted
from affidavit.ledger.results import TaskList
from affidavit.ledger.settings import setting

_STATE = ("project_id", "priority", "assignee")


def create_task(
    tx: Writer,
    given: CreateTask,
    task_id: str,
    salts: tuple[bytes, bytes],
    src: Source,
    removed: int = 0,
) -> TaskRow:
    """Record a new task."""
    if tx.find_task(task_id) is not None:
        raise ConflictError(
            f"there is a task {task_id!r:.100} already",
            code="ERR_DUPLICATE_RECORD",
            hint="Give each task an id of its own; nothing was written.",
        )
    if setting(tx, "transitions") == "strict" and given.status != "INIT":
        raise _invalid_transition(task_id, "nothing", given.status, ("INIT",))
    if given.status == "DONE":
        _check_writeback(tx, task_id)
    payloads = {"title": Payload(given.title, salts[0])}
    if given.description is not None:
        payloads["description"] = Payload(given.description, salts[1])
    body = {
        "task_id": task_id,
        "title": _commit(payloads, "title"),
        "description": _commit(payloads, "description"),
        "status": given.status,
        "project_id": given.project_id,
        "priority": given.priority,
        "assignee": given.assignee,
        **noted(removed),
    }
    return _append(tx, "task.created", body, payloads, None, src)


def update_task(
    tx: Writer,
    task_id: str,
    patch: PatchTask,
    salts: tuple[bytes, bytes],
    src: Source,
    removed: int = 0,
) -> TaskRow:
    """Record what changes of a task; null clears, omitted leaves."""
    before = _existing(tx, task_id, "update")
    if patch == PatchTask():
        return tx.with_texts(before)
    to = None if patch.status is UNSET or patch.status == before.status else patch.status
    if to is not None and setting(tx, "transitions") == "strict":
        _check_transition(before, to)
        if to == "CANCELLED":
            raise _invalid_transition(
                task_id, before.status, to, find_allowed(before.status),
                hint="Use task_transition, which takes the reason a cancellation needs.",
            )  # fmt: skip
    if to == "DONE":
        _check_writeback(tx, task_id)
    changed: dict[str, Any] = {
        name: getattr(patch, name)
        for name in ("status", *_STATE)
        if getattr(patch, name) is not UNSET
    }
    payloads = {}
    if patch.title is not UNSET:
        payloads["title"] = Payload(patch.title, salts[0])
    if patch.description is None:
        changed["description"] = None
    elif patch.description is not UNSET:
        payloads["description"] = Payload(patch.description, salts[1])
    return _append_update(tx, before, changed, payloads, to, src, removed)


def transition_task(
    tx: Writer, given: TransitionTask, salt: bytes, src: Source, removed: int = 0
) -> TaskRow:
    """Move a task along its lifecycle; every other move is refused."""
    before = _existing(tx, given.id, "transition")
    _check_transition(before, given.to)
    if given.to == "CANCELLED" and given.reason is None:
        raise invalid("reason", "is needed to cancel a task")
    if given.to == "DONE":
        _check_writeback(tx, given.id)
    payloads = {} if given.reason is None else {"reason": Payload(given.reason, salt)}
    changed = {"status": given.to}
    return _append_update(tx, before, changed, payloads, given.to, src, removed)


def delete_task(
    tx: Writer, task_id: str, reason: str | None, salt: bytes, src: Source, removed: int = 0
) -> TaskRow:
    """Record that a task is deleted; its history stays."""
    before = _existing(tx, task_id, "delete")
    payloads = {} if reason is None else {"reason": Payload(reason, salt)}
    body = {"task_id": task_id, "reason": _commit(payloads, "reason"), **noted(removed)}
    return _append(tx, "task.deleted", body, payloads, before, src)


def _append_update(
    tx: Writer,
    before: TaskRow,
    changed: dict[str, Any],
    payloads: dict[str, Payload],
    to: str | None,
    src: Source,
    removed: int,
) -> TaskRow:
    body = {
        "task_id": before.id,
        "changed": changed,
        "title": _commit(payloads, "title"),
        "description": _commit(payloads, "description"),
        "reason": _commit(payloads, "reason"),
        "attempt": attempt_after(before, to),
        **noted(removed),
    }
    return _append(tx, "task.updated", body, payloads, before, src)


def _append(
    tx: Writer,
    kind: str,
    body: dict[str, Any],
    payloads: dict[str, Payload],
    before: TaskRow | None,
    src: Source,
) -> TaskRow:
    entry = Entry(tx.at, kind, body, src)
    row = task_row(tx.size(), entry, payloads, before)
    index = tx.append(encode_entry(*entry), row)
    if before is not None:
        tx.supersede(before, index)
    return tx.with_texts(row)


def _commit(payloads: dict[str, Payload], name: str) -> dict[str, Any] | None:
    payload = payloads.get(name)
    if payload is None or payload.text is None or payload.salt is None:
        return None
    return commitment(payload.salt, payload.text)


def _existing(tx: Writer, task_id: str, operation: str) -> TaskRow:
    row = tx.find_task(task_id)
    if row is None or row.deleted_at is not None:
        raise InputError(
            f"Task not found: {task_id} (operation: {operation})"[:700],
            code="ERR_NOT_FOUND",
            hint="List the tasks to see their ids.",
            field="id",
            task_id=task_id,
        )
    return row


def _check_writeback(tx: Writer, task_id: str) -> None:
    """No task is DONE without its written reason."""
    tip = tx.task_tip(task_id)
    if tip is not None and (setting(tx, "writeback") == "any" or tip.type == "reflection"):
        return
    needed = "thought_record" if tip is None else "reflection"
    raise ConflictError(
        f"Writeback required for task {task_id}: missing {needed}"[:700],
        code="ERR_WRITEBACK_REQUIRED",
        hint=f"Record a thought with task_id={task_id!r:.100}"
        + (" and type=reflection" if needed == "reflection" else "")
        + ", then set the status again.",
        missing_fields=[needed],
        task_id=task_id,
    )


def _check_transition(before: TaskRow, to: str) -> None:
    allowed = find_allowed(before.status)
    if to not in allowed:
        raise _invalid_transition(before.id, before.status, to, allowed)


def _invalid_transition(
    task_id: str, status: str, to: str, allowed: tuple[str, ...], hint: str = ""
) -> ConflictError:
    ways = ", ".join(allowed) or "nowhere: it is finished"
    return ConflictError(
        f"task {task_id!r:.100} cannot go from {status} to {to}",
        code="ERR_INVALID_TRANSITION",
        hint=hint or f"From {status} it can go to: {ways}.",
        allowed=list(allowed),
        task_id=task_id,
    )


def list_tasks(reader: Reader, wanted: ListTasks, moment: int | None = None) -> TaskList:
    """A page of tasks as they are, or were at a moment, oldest first."""
    by_project = wanted.project_id is not UNSET
    chosen = TaskFilter(
        status=wanted.status,
        project_id=wanted.project_id if by_project else None,  # type: ignore[arg-type]
        by_project=by_project,
        include_deleted=wanted.include_deleted,
        end=None if moment is None else reader.end_of(moment),
    )
    return _page(reader, chosen, wanted.limit, wanted.offset)


def next_actions(reader: Reader) -> TaskList:
    """Every task that is not finished, oldest first."""
    chosen = TaskFilter(None, None, by_project=False, include_deleted=False, open_only=True)
    return _page(reader, chosen, None, 0)


def _page(reader: Reader, chosen: TaskFilter, limit: int | None, offset: int) -> TaskList:
    rows, total = reader.tasks(chosen, limit, offset)
    return TaskList(tuple(results.task(row) for row in rows), total)
