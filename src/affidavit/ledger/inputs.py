"""What callers may say: one schema per input, the same for Python, command line and servers.

Types and enums are checked by the schema; sizes in bytes and forbidden characters by `core.names`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from affidavit.core.canonical import INTEGER_MAX, encode_utf8
from affidavit.core.checkpoint import UnverifiedCheckpoint, parse_checkpoint
from affidavit.core.names import (
    NAME_BYTES_MAX,
    NOTE_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    check_name,
    check_text,
    check_timestamp,
)
from affidavit.errors import InputError, invalid

# Stands for an argument the caller must give; a missing one is an InputError like any other.
REQUIRED: Any = UNSET

THOUGHTS_MAX: Final = 10_000
TASKS_DEFAULT: Final = 100
TASKS_MAX: Final = 500

# Sizes count bytes and are checked below; JSON Schema counts characters, so there it is a hint.
Name = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": NAME_BYTES_MAX})]
Text = Annotated[str, Meta(extra_json_schema={"minLength": 1})]
MaybeEmpty = Annotated[str, Meta(extra_json_schema={"minLength": 0})]
Note = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": NOTE_BYTES_MAX})]
Index = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
TextBytes = Annotated[int, Meta(ge=1, le=PAYLOAD_BYTES_MAX)]
Positive = Annotated[int, Meta(ge=1, le=INTEGER_MAX)]
ThoughtType = Literal["plan", "analysis", "decision", "reflection"]
TaskState = Literal["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED"]
EndReason = Literal["done", "lost", "failed"]
SessionState = Literal["open", "sealed", "ended"]
RecoverHow = Literal["adopt", "new-origin"]


class RecordThought(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A decision record to write."""

    type: ThoughtType
    task_id: Name
    agent_id: Name
    content: Text
    session_id: Name | None = None


class ListThoughts(Struct, frozen=True, forbid_unknown_fields=True):
    """Which decision records to list."""

    task_id: Name | None = None
    session_id: Name | None = None
    type: ThoughtType | None = None
    after: Name | None = None
    limit: Positive | None = None


class ListEntries(Struct, frozen=True, forbid_unknown_fields=True):
    """Which entries to list, and how much of each text."""

    session_id: Name | None = None
    task_id: Name | None = None
    after: Index | None = None
    limit: Positive | None = None
    text_bytes_max: TextBytes = PAYLOAD_BYTES_MAX


class TellStory(Struct, frozen=True, forbid_unknown_fields=True):
    """Which steps of a session to tell, and how much of each text."""

    session_id: Name
    after: Index | None = None
    limit: Positive | None = None
    text_bytes_max: TextBytes = PAYLOAD_BYTES_MAX


class FindTail(Struct, frozen=True, forbid_unknown_fields=True):
    """How many of the last entries of a session to leave."""

    session_id: Name
    count: Positive = 50


class TraceFile(Struct, frozen=True, forbid_unknown_fields=True):
    """Which edits of a file to find."""

    path: Note
    line: Text | None = None
    limit: Positive = TASKS_DEFAULT


class NewestThoughts(Struct, frozen=True, forbid_unknown_fields=True):
    """How many of the newest records to list, and how much of each text."""

    limit: Positive = 10
    text_bytes_max: TextBytes = PAYLOAD_BYTES_MAX


class StartSession(Struct, frozen=True, forbid_unknown_fields=True):
    """A session to start."""

    intent: Note
    caller: Name | None = None
    task_id: Name | None = None
    session_id: Name | None = None
    proof_grade: bool = False
    continues: Name | None = None
    project: Name | None = None
    model: Name | None = None


class ListSessions(Struct, frozen=True, forbid_unknown_fields=True):
    """Which sessions to list."""

    task_id: Name | None = None
    state: SessionState | None = None
    continues: Name | None = None
    after: Name | None = None
    limit: Positive | None = None


class EndSession(Struct, frozen=True, forbid_unknown_fields=True):
    """A session to end."""

    session_id: Name
    reason: EndReason = "done"


class NameSession(Struct, frozen=True, forbid_unknown_fields=True):
    """A session, by its id."""

    session_id: Name


class VerifyChain(Struct, frozen=True, forbid_unknown_fields=True):
    """Which chain to verify; neither means every chain."""

    task_id: Name | None = None
    session_id: Name | None = None
    all: bool = False


class CreateTask(Struct, frozen=True, forbid_unknown_fields=True):
    """A task to create."""

    title: Note
    status: TaskState = "INIT"
    project_id: Name | None = None
    description: Text | None = None
    priority: Name | None = None
    assignee: Name | None = None


class PatchTask(Struct, frozen=True, forbid_unknown_fields=True):
    """What to change of a task: null clears, omitted leaves."""

    title: Note | UnsetType = UNSET
    status: TaskState | UnsetType = UNSET
    project_id: Name | UnsetType | None = UNSET
    description: Text | UnsetType | None = UNSET
    priority: Name | UnsetType | None = UNSET
    assignee: Name | UnsetType | None = UNSET


class TransitionTask(Struct, frozen=True, forbid_unknown_fields=True):
    """A move of a task along its lifecycle."""

    id: Name
    to: TaskState
    reason: Note | None = None


class DeleteTask(Struct, frozen=True, forbid_unknown_fields=True):
    """A task to delete; it stays in the log."""

    id: Name
    reason: Note | None = None


class NameTask(Struct, frozen=True, forbid_unknown_fields=True):
    """A task, by its id."""

    id: Name


class ListTasks(Struct, frozen=True, forbid_unknown_fields=True):
    """Which tasks to list; a null project means "without a project", an omitted one means all."""

    status: TaskState | None = None
    project_id: Name | UnsetType | None = UNSET
    limit: Annotated[int, Meta(ge=1, le=TASKS_MAX)] = TASKS_DEFAULT
    offset: Annotated[int, Meta(ge=0, le=INTEGER_MAX)] = 0
    include_deleted: bool = False


class AddKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A key to add beside the present one."""

    by: Name | None = None
    reason: Note | None = None


class RetireKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A key that is to sign no more."""

    vkey: Name
    by: Name | None = None
    reason: Note | None = None


class Search(Struct, frozen=True, forbid_unknown_fields=True):
    """Which words to look for, and where."""

    query: Note
    kind: Name | None = None
    session_id: Name | None = None
    task_id: Name | None = None
    since_us: Index | None = None
    until_us: Index | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 20


class CompareSessions(Struct, frozen=True, forbid_unknown_fields=True):
    """Two sessions to compare."""

    session_id: Name
    other_id: Name


class Retain(Struct, frozen=True, forbid_unknown_fields=True):
    """How long texts of a kind are to be kept."""

    kind: Name
    days: Annotated[int, Meta(ge=0, le=36_500)]
    by: Name | None = None


class Erase(Struct, frozen=True, forbid_unknown_fields=True):
    """What to erase, and who wants it why."""

    by: Name | None = None
    session_id: Name | None = None
    record_id: Name | None = None
    turn_id: Name | None = None
    matching: Note | None = None
    reason: Note | None = None


class Recover(Struct, frozen=True, forbid_unknown_fields=True):
    """How signing goes on after it was refused."""

    how: RecoverHow
    reason: Note | None = None


class Export(Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the log an evidence file is to hold, and what of it to keep back."""

    session_id: Name | None = None
    task_id: Name | None = None
    record_id: Name | None = None
    range: Name | None = None
    withhold: tuple[Name, ...] = ()


class Verify(Struct, frozen=True, forbid_unknown_fields=True):
    """How a ledger is to be verified."""

    cores: Positive | None = None


class Publish(Struct, frozen=True, forbid_unknown_fields=True):
    """Where to publish."""

    place: Note


class ProveGrowth(Struct, frozen=True, forbid_unknown_fields=True):
    """Two sizes of the log."""

    old_size: Positive
    new_size: Positive | None = None


Schema = TypeVar("Schema", bound=Struct)

_TEXTS: Final = frozenset(("content", "description", "error_msg", "line"))
_NOTES: Final = frozenset(("intent", "matching", "path", "place", "query", "reason", "title"))
_ENUMS: Final = frozenset(("type", "status", "state", "to", "how"))
_PLAIN: Final = frozenset((str, int, bool, type(None)))
_PATH = re.compile(r"^(?P<message>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(\w+)`")
_UNKNOWN = re.compile(r"contains unknown field `(.+)`", re.DOTALL)


def read_input(schema: type[Schema], given: Mapping[str, Any]) -> Schema:
    """Check a call's arguments; the first that is wrong is named in an InputError."""
    return convert(schema, {name: item for name, item in given.items() if item is not UNSET})


def convert(schema: type[Schema], given: Any, place: str = "") -> Schema:
    """Check arguments that come as one dict; `place` says which, where there are several."""
    if isinstance(given, dict) and not _PLAIN.issuperset(map(type, given.values())):
        given = {name: plain_string(item) for name, item in given.items()}
    try:
        value = msgspec.convert(given, schema)
    except msgspec.ValidationError as error:
        raise _explain(schema, str(error), place) from None
    except UnicodeEncodeError as error:
        fields = [name for name, item in given.items() if item == error.object]
        field = _shown((fields or ["input"])[0])
        raise invalid(place + field, "has a lone surrogate") from None
    _check_strings(value, place)
    return value


def _check_strings(value: Struct, place: str) -> None:
    """Sizes in bytes and forbidden characters, which a schema cannot say."""
    names, texts = _strings(type(value))
    found = [text for name in names if (text := getattr(value, name)) is not None]
    # Nearly always true, and then every name is fine.
    plain = "".join(found) if all(found) else ""
    if not (plain.isascii() and plain.isprintable() and 0 < len(plain) <= NAME_BYTES_MAX):
        for name in names:
            if isinstance(text := getattr(value, name), str):
                check_name(text, place + name)
    for name, limit in texts:
        if isinstance(text := getattr(value, name), str):
            if not text and type(value).__annotations__[name] == "MaybeEmpty":
                continue
            if not text and name == "content":
                raise invalid(place + name, "thought content must be non-empty")
            check_text(text, place + name, limit)


def plain_string(item: Any) -> Any:
    """A string as a plain one: an enum's member, say, would print as something else."""
    return str.__str__(item) if isinstance(item, str) else item


@cache
def _strings(schema: type[Struct]) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """The fields of a schema that hold names, and those that hold texts, with their limits."""
    names, texts = [], []
    for field in msgspec.structs.fields(schema):
        if field.name in _TEXTS:
            texts.append((field.name, PAYLOAD_BYTES_MAX))
        elif field.name in _NOTES and field.type is not EndReason:
            texts.append((field.name, NOTE_BYTES_MAX))
        elif field.name not in _ENUMS and _holds_text(field.type):
            names.append(field.name)
    return tuple(names), tuple(texts)


def _holds_text(kind: Any) -> bool:
    """Whether a field of this type can hold a name."""
    return kind in (Name, Name | None, Name | None | UnsetType)


def _explain(schema: type[Struct], said: str, place: str) -> InputError:
    match = _PATH.match(said)
    message, path = (match["message"], match["path"] or "") if match else (said, "")
    field = path.lstrip(".")
    if missing := _MISSING.search(message):
        field, message = f"{field}.{missing[1]}".lstrip("."), "is missing"
    elif unknown := _UNKNOWN.search(message):
        field, message = f"{field}.{unknown[1]}".lstrip("."), "is not an argument of this call"
    return invalid(
        (place + _shown(field)).rstrip(".") or "input",
        message.replace("`", "")[:200],
        hint=_say_choices(schema, field),
    )


def _shown(field: str) -> str:
    """A field's name as a caller gave it, which may be anything, short and safe to print."""
    return field if len(field) <= 80 and field.isprintable() else ascii(field)[1:-1][:80]


def _say_choices(schema: type[Struct], field: str) -> str:
    """The words a field takes, or the fields there are; empty where any value of its type goes."""
    types = {one.name: one.type for one in msgspec.structs.fields(schema)}
    first, dot, inner = field.partition(".")
    if dot and isinstance(types.get(first), type) and issubclass(types[first], Struct):
        return _say_choices(types[first], inner)
    if field not in types:
        return f"It takes {', '.join(types)}."
    kinds = (types[field], *get_args(types[field]))
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    return f"One of {', '.join(words)}." if words else ""


def read_timestamp(value: object) -> str:
    """A time minted by the caller's `now_fn`."""
    if not isinstance(value, str):
        raise invalid("timestamp", f"now_fn gave {type(value).__name__}, not a string")
    text: str = plain_string(value)
    check_timestamp(text, "timestamp")
    return text


def read_id(value: object, field: str = "id") -> str:
    """An id minted by the caller's `id_fn`, or an idempotency key."""
    if value is UNSET:
        raise invalid(field, "is missing")
    if not isinstance(value, str):
        raise invalid(field, f"is {type(value).__name__}, not a string")
    name: str = plain_string(value)
    check_name(name, field)
    return name


def read_bool(value: object, field: str) -> bool:
    """A switch; anything else, however true, is a mistake."""
    if type(value) is not bool:
        raise invalid(field, f"is {type(value).__name__}, not True or False")
    return value


def read_notes(value: object) -> list[UnverifiedCheckpoint]:
    """Checkpoints that somebody kept, as signed notes."""
    notes = [value] if isinstance(value, str) else value
    if not isinstance(notes, Collection) or not all(isinstance(one, str) for one in notes):
        raise invalid("pinned", "is not a list of signed notes")
    try:
        return [parse_checkpoint(encode_utf8(one, "note")) for one in notes]
    except InputError as error:
        raise invalid(
            "pinned", error.message, hint="Give notes as `affidavit checkpoint` prints them."
        ) from None


def read_callable(value: Any, field: str) -> Any:
    """A function a caller injects, or None."""
    if value is not None and not callable(value):
        raise invalid(field, f"is {type(value).__name__}, not something to call")
    return value
