"""The envelope of every answer: {ok, data} or {ok, error}, as structure and as text.

An answer stops at a number of characters that a model's context can bear, and says how to go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from affidavit.apps.mcp.next_calls import say_refusal
from affidavit.errors import AffidavitError

RESULT_CHARACTERS_MAX: Final = 60_000
# A content longer than this is named by its size in the text, which repeats the structure.
TEXT_CONTENT_MAX: Final = 500
# Finds every such content, and a few that are shorter without their escapes.
_LONG_CONTENT: Final = re.compile(rf'"content":"(?:[^"\\]|\\.){{{TEXT_CONTENT_MAX + 1}}}')
# What truncation itself needs to say.
_ROOM: Final = 600
_BY_ID: Final = ("records", "tasks", "sessions")
# Lists that go on behind an index of the log.
_BY_INDEX: Final = ("turns", "tool_calls", "versions", "proposals")
# Lists in an order of their own, of which no rest can be asked for.
_RANKED: Final = ("hits",)
_LISTS: Final = (*_BY_ID, *_BY_INDEX, *_RANKED)
# A string longer than this may be cut where an answer is too long.
_CUT_FROM: Final = 1_000
_TEXTS: Final = ("content", "description", "title", "intent")
_TASK_ID: Final = ("ERR_NOT_FOUND", "ERR_WRITEBACK_REQUIRED", "ERR_INVALID_TRANSITION")


class Answer(NamedTuple):
    """One tool's answer: the structure, the texts beside it, and whether it is a failure."""

    structure: dict[str, Any]
    texts: list[str]
    is_error: bool = False


def success(tool: str, result: Any, shape: type[msgspec.Struct]) -> Answer:
    """What a call that was carried out answers."""
    data = shorten(tool, _shaped(result, shape))
    structure = {"ok": True, "data": data}
    text = _compact(structure)
    return Answer(structure, [_compact(_shown(structure)) if _LONG_CONTENT.search(text) else text])


def refusal(tool: str, given: dict[str, Any], error: AffidavitError, *, inside: bool) -> Answer:
    """What a refused call answers: first in plain words, with the exact next call."""
    plain = say_refusal(tool, given, error)
    if inside and error.code in _TASK_ID:
        structure: dict[str, Any] = {"ok": True, "data": {"ok": False, "error": _task_error(error)}}
    else:
        structure = {"ok": False, "error": _error(error)}
    return Answer(structure, [plain, _compact(structure)], is_error=not structure["ok"])


def bug(tool: str) -> Answer:
    """What a fault of the server's own answers; where it happened is for the log alone."""
    error = AffidavitError(
        f"{tool} failed inside the server",
        hint="Try once more; if it fails again, run `affidavit doctor` and report it.",
    )
    return refusal(tool, {}, error, inside=False)


def _shaped(result: Any, shape: type[msgspec.Struct]) -> dict[str, Any]:
    """The result as plain values, only the fields this tool promises."""
    data: dict[str, Any] = msgspec.to_builtins(result)
    if isinstance(result, shape):
        return data
    return {name: data[name] for name in shape.__struct_fields__}


def _error(error: AffidavitError) -> dict[str, Any]:
    if error.code == "INVALID_PARAMS":
        issue = {"path": error.details.get("field"), "message": error.message, "hint": error.hint}
        return {"code": error.code, "message": error.message, "details": {"issues": [issue]}}
    return json.loads(json.dumps(error.to_dict(), default=str))  # type: ignore[no-any-return]


def _task_error(error: AffidavitError) -> dict[str, Any]:
    told = {"code": error.code, "message": error.message}
    if (task_id := error.details.get("task_id")) is not None:
        told["taskId"] = task_id
    if (missing := error.details.get("missing_fields")) is not None:
        told["missing_fields"] = missing
    return told


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _shown(value: Any) -> Any:
    """The structure as the text repeats it."""
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"({len(item):,} characters)"
        if key == "content" and isinstance(item, str) and len(item) > TEXT_CONTENT_MAX
        else _shown(item)
        for key, item in value.items()
    }


def shorten(tool: str, data: dict[str, Any]) -> dict[str, Any]:
    """The data as far as an answer may go; what is left out is said."""
    if len(_compact(data)) <= RESULT_CHARACTERS_MAX:
        return data
    for name in _LISTS:
        if name in data:
            return _cut_list(tool, data, name)
    if "by_task" in data:
        return _cut_counts(data)
    return _cut_texts(data)


def _cut_list(tool: str, data: dict[str, Any], name: str) -> dict[str, Any]:
    items = data[name]
    kept = _fitting(items, lambda item: len(_compact(item)) + 1)
    if not kept:  # the first alone is too long
        kept = [_cut_texts(items[0]) if name in _BY_ID else _cut_strings(items[0])]
        for mark in ("truncated", "next_after", "hint"):
            kept[0].pop(mark, None)
    last = _place(name, kept[-1])
    how = _how_to_go_on(tool, name, len(kept), last)
    return {**data, name: kept, "truncated": True, "next_after": last, "hint": how}


def _how_to_go_on(tool: str, name: str, count: int, last: Any) -> str:
    if tool == "task_next_actions":
        return "Call task_list with a status, such as INIT or APPLY, and an offset for the others."
    if name == "tasks":
        return f"Call task_list again with offset {count} more than before."
    if name in _RANKED:
        return f"Call {tool} again with more words, or with a task_id, session_id, kind or time."
    return f"Call {tool} again with after={last!r}; a smaller limit makes shorter answers."


def _place(name: str, item: dict[str, Any]) -> Any:
    """What `after` takes to go on behind an item."""
    if name in _RANKED:
        return None
    if name in _BY_INDEX:
        return item["request"]["index"] if name == "tool_calls" else item["index"]
    return item.get("id") or item.get("session_id")


def _cut_counts(data: dict[str, Any]) -> dict[str, Any]:
    """Of many chains, those that are broken come first."""
    cut = dict(data)
    for name in ("by_task", "by_session"):
        pairs = sorted(data[name].items(), key=lambda pair: bool(pair[1]["valid"]))
        kept = _fitting(pairs, lambda pair: len(_compact(pair)) + 4, share=2)
        cut[name] = dict(kept)
    how = "The verdict is over every chain; ask about one with task_id or session_id."
    return {**cut, "truncated": True, "next_after": None, "hint": how}


def _fitting(items: list[Any], size: Callable[[Any], int], share: int = 1) -> list[Any]:
    left, kept = (RESULT_CHARACTERS_MAX - _ROOM) // share, []
    for item in items:
        left -= size(item)
        if left < 0:
            break
        kept.append(item)
    return kept


def _cut_texts(data: dict[str, Any]) -> dict[str, Any]:
    """One thing whose texts are long: each gets its part, the whole stays in the ledger."""
    cut, long = dict(data), [name for name in _TEXTS if isinstance(data.get(name), str)]
    if not long or "log_size" in data:
        how = "Long strings are cut; the whole is in the ledger (`affidavit log --json`)."
        return {**_cut_strings(data), "truncated": True, "next_after": None, "hint": how}
    rest = len(_compact({name: item for name, item in data.items() if name not in long}))
    room = RESULT_CHARACTERS_MAX - _ROOM - rest
    for name in sorted(long, key=lambda name: len(_compact(data[name]))):
        share = room // max(1, len(long))
        cut[name] = _cut_text(data[name], share)
        room -= len(_compact(cut[name]))
        long = [other for other in long if other != name]
    sizes = ", ".join(
        f"{name} has {len(data[name]):,} characters" for name in cut if cut[name] != data[name]
    )
    how = f"{sizes}; the rest is in the ledger (`affidavit thoughts`, `affidavit task show`)."
    return {**cut, "truncated": True, "next_after": None, "hint": how}


def _cut_strings(value: Any) -> Any:
    """A value whose long strings, wherever they stand, share the room there is."""
    long = _long_strings(value)
    rest = len(_compact(value)) - sum(len(_compact(text)) for text in long)
    room = RESULT_CHARACTERS_MAX - _ROOM - rest
    return _with_cut_strings(value, max(_CUT_FROM // 2, room // max(1, len(long))))


def _long_strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if len(value) > _CUT_FROM else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _long_strings(item)]


def _with_cut_strings(value: Any, share: int) -> Any:
    if isinstance(value, str):
        return _cut_text(value, share) if len(value) > _CUT_FROM else value
    if isinstance(value, dict):
        return {key: _with_cut_strings(item, share) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_cut_strings(item, share) for item in value]
    return value


def _cut_text(text: str, room: int) -> str:
    """As much of a text as its JSON has room for."""
    while len(_compact(text)) > room:
        over = len(_compact(text)) - room
        text = text[: len(text) - max(1, over // 6)]
    return text
