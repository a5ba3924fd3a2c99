"""The views: what every ordinary table must hold, derived from the log and the payloads alone.

A row is a pure function of its entry, the payloads beside it and, for tasks, the version before it.
Recording writes exactly these rows, verification compares against them, rebuilding restores them:
one derivation for all three. The field names are the column names of every store.

Two kinds of columns are not functions of the row's own entry: payload columns (erasable, never
invented) and links set by a later entry (`superseded_by`, and how a session ended).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from affidavit.core.entry import PAYLOAD_FIELDS, Entry
from affidavit.core.lifecycle import next_attempt
from affidavit.core.moment import render_time


class Payload(NamedTuple):
    """A text that somebody wrote, and the salt of the commitment to it."""

    text: str | None
    salt: bytes | None


NO_PAYLOAD: Final = Payload(None, None)


class ThoughtRow(NamedTuple):
    """A row of `thought_records`; the session columns are null for a record bound to no session."""

    log_index: int
    id: str
    type: str
    task_id: str
    agent_id: str
    content: str
    timestamp: str
    prev_hash: str
    hash: str
    created_at: str
    session_id: str | None
    session_seq: int | None
    content_hash: str | None
    chain_hash: str | None
    parent_chain_hash: str | None
    at: int
    erased_at: str | None = None


class SessionRow(NamedTuple):
    """A row of `sessions`: how it started, and the three links set when it ended."""

    log_index: int
    session_id: str
    task_id: str | None
    caller: str | None
    intent: str | None
    intent_salt: bytes | None
    started_at: str
    genesis: str
    continues_session_id: str | None
    continues_chain_hash: str | None
    proof_grade: int
    project: str | None
    model: str | None
    at: int
    ended_index: int | None = None
    ended_at: str | None = None
    end_reason: str | None = None


class SealRow(NamedTuple):
    """A row of `seals`."""

    log_index: int
    session_id: str
    root: str
    record_count: int
    chain_hash: str
    closing_reflection: int
    entries_root: str
    entry_count: int
    finalized_at: str
    first_index: int
    last_index: int
    at: int


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


class SettingRow(NamedTuple):
    """A row of `setting_changes`; values as JSON text."""

    log_index: int
    name: str
    old: str | None
    new: str
    changed_by: str | None
    at: int


class KeyRow(NamedTuple):
    """A row of `key_changes`: a key began or ceased to sign for the log."""

    log_index: int
    state: str
    vkey: str
    changed_by: str | None
    reason: str | None
    reason_salt: bytes | None
    at: int


class OriginRow(NamedTuple):
    """A row of `origin_changes`: the log goes on under a name, from what was last signed."""

    log_index: int
    old_origin: str
    old_size: int
    old_root: str
    origin: str
    reason: str | None
    reason_salt: bytes | None
    at: int


Row = ThoughtRow | SessionRow | SealRow | TaskRow | SettingRow | KeyRow | OriginRow

TABLES: Final[dict[type[Any], str]] = {
    ThoughtRow: "thought_records",
    SessionRow: "sessions",
    SealRow: "seals",
    TaskRow: "task_versions",
    SettingRow: "setting_changes",
    KeyRow: "key_changes",
    OriginRow: "origin_changes",
}
# The table an entry of a kind has its row in; `session.ended` only sets links.
ROW_OF_KIND: Final[dict[str, type[Any]]] = {
    "thought.recorded": ThoughtRow,
    "session.started": SessionRow,
    "session.sealed": SealRow,
    "task.created": TaskRow,
    "task.updated": TaskRow,
    "task.deleted": TaskRow,
    "setting.changed": SettingRow,
    "key.added": KeyRow,
    "key.retired": KeyRow,
    "origin.changed": OriginRow,
}
# Columns a later entry sets.
LINKS: Final[dict[str, tuple[str, ...]]] = {
    "sessions": ("ended_index", "ended_at", "end_reason"),
    "task_versions": ("superseded_by",),
}


def find_differing(actual: Row, expected: Row) -> Iterator[str]:
    """The columns in which two rows differ, in value or in type: 1.0 is not what was written."""
    for name, is_value, must_be in zip(actual._fields, actual, expected, strict=True):
        if is_value != must_be or type(is_value) is not type(must_be):
            yield name


def payload_columns(kind: str) -> tuple[str, ...]:
    """The columns of a kind's row that hold payloads, each with a `_salt` column beside it."""
    return PAYLOAD_FIELDS.get(kind, ())


def text_columns(kind: str) -> tuple[str, ...]:
    """The columns of a kind's row that hold what somebody wrote freely."""
    return ("content",) if kind == "thought.recorded" else payload_columns(kind)


def thought_row(index: int, entry: Entry, content: str) -> ThoughtRow:
    """The row of `thought.recorded`."""
    body = entry.body
    return ThoughtRow(
        log_index=index,
        content=content,
        created_at=body["timestamp"],
        at=entry.at,
        **{key: body[key] for key in _THOUGHT_KEYS},
    )


_THOUGHT_KEYS = [
    "id",
    "type",
    "task_id",
    "agent_id",
    "timestamp",
    "prev_hash",
    "hash",
    "session_id",
    "session_seq",
    "content_hash",
    "chain_hash",
    "parent_chain_hash",
]


def session_row(index: int, entry: Entry, intent: Payload) -> SessionRow:
    """The row of `session.started`, before anything ended it."""
    body = entry.body
    continues = body["continues"] or {"session_id": None, "chain_hash": None}
    return SessionRow(
        log_index=index,
        session_id=body["session_id"],
        task_id=body["task_id"],
        caller=body["caller"],
        intent=intent.text,
        intent_salt=intent.salt,
        started_at=body["started_at"],
        genesis=body["genesis"],
        continues_session_id=continues["session_id"],
        continues_chain_hash=continues["chain_hash"],
        proof_grade=int(body["proof_grade"]),
        project=body["project"],
        model=body["model"],
        at=entry.at,
    )


def seal_row(index: int, entry: Entry) -> SealRow:
    """The row of `session.sealed`."""
    claims = {key: entry.body[key] for key in SealRow._fields[1:-1]}
    claims["closing_reflection"] = int(claims["closing_reflection"])
    return SealRow(log_index=index, at=entry.at, **claims)


def setting_row(index: int, entry: Entry) -> SettingRow:
    """The row of `setting.changed`."""
    body = entry.body
    old = None if body["old"] is None else setting_json(body["old"])
    return SettingRow(index, body["name"], old, setting_json(body["new"]), body["by"], entry.at)


def setting_json(value: str | int | bool) -> str:
    """A setting's value as the view stores it."""
    return json.dumps(value, ensure_ascii=False)


def key_row(index: int, entry: Entry, reason: Payload) -> KeyRow:
    """The row of `key.added` and `key.retired`."""
    body, state = entry.body, entry.kind.removeprefix("key.")
    return KeyRow(index, state, body["vkey"], body["by"], reason.text, reason.salt, entry.at)


def origin_row(index: int, entry: Entry, reason: Payload) -> OriginRow:
    """The row of `origin.changed`."""
    body = entry.body
    return OriginRow(
        log_index=index,
        old_origin=body["old_origin"],
        old_size=body["old_size"],
        old_root=body["old_root"],
        origin=body["origin"],
        reason=reason.text,
        reason_salt=reason.salt,
        at=entry.at,
    )


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
