"""Rows of `task_versions`: every state a task was ever in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.lifecycle import next_attempt
from affidavit.core.moment import render_time
from affidavit.core.views.payload import NO_PAYLOAD, Payload


class TaskRow(NamedTuple):
    """A row of `task_versions`: the whole state after one entry.

    A text stands only in the version that brought it; `title_index` and `description_index` say
    where.
    """

    log_index: int
    id: str
    title: str | None
    title_salt: bytes | None
    description: str | None
    description_salt: bytes | None
    reason: str | None
    reason_salt: bytes | None
    title_index: int
    description_index: int | None
    project_id: str | None
    status: str
    priority: str | None
    assignee: str | None
    attempt: int
    created_at: str
    updated_at: str
    deleted_at: str | None
    created_index: int
    at: int
    superseded_by: int | None = None


def task_row(
    index: int, entry: Entry, payloads: Mapping[str, Payload], before: TaskRow | None
) -> TaskRow:
    """The row of a `task.*` entry, given the version before it."""
    if before is None:
        return _created_task(index, entry, payloads)
    if entry.kind == "task.deleted":
        return _next_task(index, entry, payloads, before, {"deleted_at": render_time(entry.at)})
    body = entry.body
    changes: dict[str, Any] = {
        key: value for key, value in body["changed"].items() if key in _TASK_STATE
    }
    if body["title"] is not None:
        changes["title_index"] = index
    if body["description"] is not None:
        changes["description_index"] = index
    elif "description" in body["changed"]:
        changes["description_index"] = None
    changes["attempt"] = body["attempt"]
    return _next_task(index, entry, payloads, before, changes)


_TASK_STATE: Final = ("status", "project_id", "priority", "assignee")


def _created_task(index: int, entry: Entry, payloads: Mapping[str, Payload]) -> TaskRow:
    body, time = entry.body, render_time(entry.at)
    return TaskRow(
        log_index=index,
        id=body["task_id"],
        **_texts(payloads),
        title_index=index,
        description_index=None if body.get("description") is None else index,
        project_id=body.get("project_id"),
        status=body.get("status", "INIT"),
        priority=body.get("priority"),
        assignee=body.get("assignee"),
        attempt=1,
        created_at=time,
        updated_at=time,
        deleted_at=None,
        created_index=index,
        at=entry.at,
    )


def _next_task(
    index: int,
    entry: Entry,
    payloads: Mapping[str, Payload],
    before: TaskRow,
    changes: dict[str, Any],
) -> TaskRow:
    state = {
        "log_index": index,
        "updated_at": render_time(entry.at),
        "at": entry.at,
        "superseded_by": None,
    }
    return before._replace(**{**state, **_texts(payloads), **changes})


def _texts(payloads: Mapping[str, Payload]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in ("title", "description", "reason"):
        payload = payloads.get(name, NO_PAYLOAD)
        columns[name], columns[f"{name}_salt"] = payload
    return columns


def attempt_after(before: TaskRow, to: str | None) -> int:
    """The attempt a task is in after an update that may move it."""
    return before.attempt if to is None else next_attempt(before.attempt, before.status, to)


def find_task_misfit(entry: Entry, before: TaskRow | None) -> str | None:
    """Why an entry cannot follow this version of its task."""
    if (before is None) == (entry.kind == "task.created"):
        return None
    return "a task was created twice" if before else "the task was never created"
