"""The tools about tasks."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from affidavit.apps.mcp.answers import Tasks
from affidavit.apps.mcp.past import (
    GetTask,
    TaskSeen,
    TasksSeen,
    TasksWanted,
    fields_of,
    look,
    seen,
)
from affidavit.apps.mcp.tools import Request, Tool, arguments, reading, writing
from affidavit.errors import InputError
from affidavit.ledger.inputs import (
    CreateTask,
    DeleteTask,
    Name,
    PatchTask,
    TransitionTask,
)
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Task


class UpdateTask(Struct, frozen=True, forbid_unknown_fields=True):
    """A task and what to change of it."""

    id: Name
    patch: PatchTask


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """A call without arguments."""


def _get(ledger: Ledger, given: GetTask, request: Request) -> TaskSeen:
    del request
    found, more = look(ledger, given, lambda at, when: at.get_task(given.id, **when))
    if found is None:
        raise InputError(
            f"Task not found: {given.id}",
            code="ERR_NOT_FOUND",
            hint="List the tasks to see their ids.",
            field="id",
            task_id=given.id,
        )
    seen_task: TaskSeen = seen(TaskSeen, found, more)
    return seen_task


def _list(ledger: Ledger, given: TasksWanted, request: Request) -> TasksSeen:
    del request
    wanted = fields_of(given)
    found, more = look(ledger, given, lambda at, when: at.list_tasks(**wanted, **when))
    return TasksSeen(list(found.tasks), found.total_count, **more)


def _update(ledger: Ledger, given: UpdateTask, request: Request) -> Task:
    key = request.idempotency_key
    return ledger.update_task(given.id, **arguments(given.patch), idempotency_key=key)


TASK_TOOLS: Final = (
    Tool(
        "task_create",
        "Create a task",
        "Call this when work begins that has a result of its own. Answers with the task and its "
        "id, which the other tools take as task_id.",
        CreateTask,
        Task,
        writing(Ledger.create_task),
        refuses_inside=True,
    ),
    Tool(
        "task_get",
        "Show a task",
        "Call this to see where one task stands, or stood as_of a time.",
        GetTask,
        TaskSeen,
        _get,
        reads=True,
        repeatable=True,
        refuses_inside=True,
    ),
    Tool(
        "task_update",
        "Change a task",
        "Call this when a task moves on or its description changes; null clears a field, an "
        "omitted one stays. DONE is refused until a thought_record of the task is written.",
        UpdateTask,
        Task,
        _update,
        repeatable=True,
        refuses_inside=True,
    ),
    Tool(
        "task_list",
        "List tasks",
        "Call this to find tasks by status or project, oldest first. project_id null: those "
        "without a project.",
        TasksWanted,
        TasksSeen,
        _list,
        reads=True,
        repeatable=True,
        refuses_inside=True,
    ),
    Tool(
        "task_next_actions",
        "What is left to do",
        "Call this when you look for what to do next: every task neither DONE nor CANCELLED.",
        Nothing,
        Tasks,
        reading(Ledger.next_actions),
        reads=True,
        repeatable=True,
        refuses_inside=True,
    ),
    Tool(
        "task_transition",
        "Move a task along",
        "Call this to take a task to its next state; only allowed moves are made. CANCELLED needs "
        "a reason.",
        TransitionTask,
        Task,
        writing(Ledger.transition_task),
        core=False,
    ),
    Tool(
        "task_delete",
        "Delete a task",
        "Call this when a task was made by mistake. It leaves the lists; its history stays.",
        DeleteTask,
        Task,
        writing(Ledger.delete_task),
        destructive=True,
        core=False,
    ),
)
