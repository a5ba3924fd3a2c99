"""Tasks and sessions as they were: what such tools take more, and what their answers say more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from affidavit.ledger.inputs import Index, ListSessions, ListTasks, NameSession, NameTask
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Session, Task


class GetTask(NameTask, frozen=True, forbid_unknown_fields=True):
    """A task, by its id, as of when."""

    as_of: int | str | None = None
    as_of_index: Index | None = None


class TasksWanted(ListTasks, frozen=True, forbid_unknown_fields=True):
    """Which tasks to list, as of when."""

    as_of: int | str | None = None
    as_of_index: Index | None = None


class GetSession(NameSession, frozen=True, forbid_unknown_fields=True):
    """A session, by its id, as of when."""

    as_of: int | str | None = None
    as_of_index: Index | None = None


class SessionsWanted(ListSessions, frozen=True, forbid_unknown_fields=True):
    """Which sessions to list, as of when."""

    as_of: int | str | None = None
    as_of_index: Index | None = None


class TaskSeen(Task, frozen=True):
    """A task; asked for as of a moment, with what tells whether the answer can change."""

    log_size: int | UnsetType = UNSET
    settled: bool | UnsetType = UNSET


class SessionSeen(Session, frozen=True):
    """A session; asked for as of a moment, with what tells whether the answer can change."""

    log_size: int | UnsetType = UNSET
    settled: bool | UnsetType = UNSET


class TasksSeen(Struct, frozen=True):
    """Tasks, oldest first, and how many there are in all."""

    tasks: list[Task]
    total_count: int
    log_size: int | UnsetType = UNSET
    settled: bool | UnsetType = UNSET


class SessionsSeen(Struct, frozen=True):
    """Sessions, newest first."""

    sessions: list[Session]
    log_size: int | UnsetType = UNSET
    settled: bool | UnsetType = UNSET


def look(
    ledger: Ledger, given: Any, ask: Callable[[Ledger, dict[str, Any]], Any]
) -> tuple[Any, dict[str, Any]]:
    """What held at the moment asked for, and, where one was, what more the answer says."""
    moment = {"as_of": given.as_of, "as_of_index": given.as_of_index}
    if given.as_of is None and given.as_of_index is None:
        return ask(ledger, {}), {}
    with ledger.transaction(write=False) as snapshot:
        found = ask(snapshot, moment)
        return found, {"log_size": len(snapshot), "settled": snapshot.settled(**moment)}


def seen(kind: type[Any], found: Struct, more: dict[str, Any]) -> Any:
    """An answer with what it says more."""
    return kind(**{name: getattr(found, name) for name in found.__struct_fields__}, **more)


def fields_of(given: Struct) -> dict[str, Any]:
    """What is asked for, but for the moment."""
    return {
        name: value
        for name, value in structs.asdict(given).items()
        if name not in ("as_of", "as_of_index")
    }
