"""The commands about tasks: create, get, list, update, transition, next, delete."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from affidavit.apps.cli.opening import (
    as_of,
    asks_of_the_past,
    open_for_reading,
    open_for_writing,
    write_or_create,
)
from affidavit.apps.cli.render import Answer, block, count, fields, table
from affidavit.apps.plain import one_line
from affidavit.errors import InputError
from affidavit.ledger.results import Task, TaskList

_FIELDS = ("title", "status", "description", "priority", "assignee")


def create(args: argparse.Namespace) -> Answer:
    """Create a task."""
    made = write_or_create(
        args,
        lambda ledger: ledger.create_task(
            title=args.title,
            status=args.status,
            project_id=args.project,
            description=args.description,
            priority=args.priority,
            assignee=args.assignee,
            idempotency_key=args.idempotency_key,
        ),
    )
    return _answer("Created task", made)


def get(args: argparse.Namespace) -> Answer:
    """One task."""
    found, moment = as_of(args, lambda ledger, when: ledger.get_task(args.task, **when))
    if found is None:
        raise InputError(
            f"Task not found: {args.task}"[:700],
            code="ERR_NOT_FOUND",
            hint="`affidavit task list` shows the tasks.",
            field="id",
        )
    answer = _answer("Task", found)
    return answer._replace(data={**answer.data, **moment}) if asks_of_the_past(args) else answer


def list_(args: argparse.Namespace) -> Answer:
    """Tasks, oldest first."""
    chosen: dict[str, Any] = {}
    if args.no_project:
        chosen["project_id"] = None
    elif args.project is not None:
        chosen["project_id"] = args.project
    found, moment = as_of(
        args,
        lambda ledger, when: ledger.list_tasks(
            status=args.status,
            limit=args.limit,
            offset=args.offset,
            include_deleted=args.include_deleted,
            **chosen,
            **when,
        ),
    )
    answer = _answer_list(found, args.offset)
    return answer._replace(data={**answer.data, **moment}) if asks_of_the_past(args) else answer


def next_(args: argparse.Namespace) -> Answer:
    """Tasks that are not finished."""
    with open_for_reading(args) as ledger:
        return _answer_list(ledger.next_actions(), 0)


def update(args: argparse.Namespace) -> Answer:
    """Change fields of a task."""
    changes = {name: value for name in _FIELDS if (value := getattr(args, name)) is not None}
    if args.project is not None:
        changes["project_id"] = args.project
    if both := sorted(changes.keys() & set(args.clear)):
        said = f"{both[0]}: is both set and cleared"
        raise InputError(said, hint="Leave one of the two out.", field=both[0])
    changes.update(dict.fromkeys(args.clear))
    if not changes:
        raise InputError(
            "there is nothing to change", hint="Name a field, for example --status PLAN."
        )
    with open_for_writing(args) as ledger:
        changed = ledger.update_task(args.task, idempotency_key=args.idempotency_key, **changes)
    return _answer("Updated task", changed)


def transition(args: argparse.Namespace) -> Answer:
    """Move a task along its lifecycle."""
    with open_for_writing(args) as ledger:
        moved = ledger.transition_task(
            args.task, to=args.to, reason=args.reason, idempotency_key=args.idempotency_key
        )
    return _answer("Moved task", moved)


def delete(args: argparse.Namespace) -> Answer:
    """Delete a task."""
    with open_for_writing(args) as ledger:
        gone = ledger.delete_task(
            args.task, reason=args.reason, idempotency_key=args.idempotency_key
        )
    return _answer("Deleted task", gone)


def _answer(said: str, one: Task) -> Answer:
    return Answer(one.to_dict(), [f"{said} {one_line(one.id)}", *_describe(one)])


def _describe(one: Task) -> Iterator[str]:
    yield from fields(
        [
            ("title", one.title),
            ("status", one.status),
            ("project", one.project_id),
            ("priority", one.priority),
            ("assignee", one.assignee),
            ("attempt", one.attempt if one.attempt > 1 else None),
            ("created", one.created_at),
            ("updated", one.updated_at),
            ("deleted", one.deleted_at),
        ]
    )
    if one.description is not None:
        yield from block(one.description)


def _answer_list(found: TaskList, offset: int) -> Answer:
    shown = found.tasks
    rows = [(one.id, one.status, one.project_id, one.assignee, one.title) for one in shown]
    lines = list(table(("task", "status", "project", "assignee", "title"), rows))
    if offset + len(shown) < found.total_count:
        lines.append(
            f"{len(shown):,} of {count(found.total_count, 'task')}; "
            f"the next: --offset {offset + len(shown)}"
        )
    if not shown:
        lines = [
            f"No tasks here, of {count(found.total_count, 'task')}." if offset else "No tasks."
        ]
    return Answer(found.to_dict(), lines)
