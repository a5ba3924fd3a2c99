"""Changes of files, found in what a tool was asked or a proposal says, as lines added and removed.

    find_changes({"file_path": "a.py", "old_string": "x", "new_string": "y"})
    -> [Change("a.py", (("-", "x"), ("+", "y")))]

Clients name these things differently; what is recognised are the names below. A line's sign is `+`,
`-`, a space for what stayed, and `@` for what a diff says of itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

_BEFORE: Final = ("old_string", "old_text", "old_str", "old", "before", "original")
_AFTER: Final = ("new_string", "new_text", "new_str", "new", "after", "modified")
_WHOLE: Final = ("content", "file_text", "new_source", "contents")
_UNIFIED: Final = ("diff", "patch", "unified", "unified_diff")
_PATHS: Final = ("path", "file_path", "notebook_path", "file", "filename", "uri", "new_path")
_DEPTH_MAX: Final = 4
# Comparing costs up to their product; beyond it, all of one stands before all of the other.
_PAIRS_MAX: Final = 1_000_000

_HEAD = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", re.ASCII)
_IS_UNIFIED = re.compile(r"^@@ -\d", re.MULTILINE | re.ASCII)
_NEW_FILE = re.compile(r"^\+\+\+ (?:b/)?([^\t\r\n]+)", re.MULTILINE)

Line = tuple[str, str]


class Change(NamedTuple):
    """What becomes of one file."""

    path: str | None
    lines: tuple[Line, ...]


def find_changes(value: Any, depth: int = 0) -> list[Change]:
    """Every change in a JSON value; empty where there is none."""
    if depth > _DEPTH_MAX:
        return []
    if isinstance(value, str):
        return [_unified(None, value)] if _IS_UNIFIED.search(value) else []
    if isinstance(value, Sequence):
        return [change for item in value for change in find_changes(item, depth + 1)]
    return _find_in_object(value, depth) if isinstance(value, Mapping) else []


def _find_in_object(value: Mapping[str, Any], depth: int) -> list[Change]:
    path = _first_text(value, _PATHS)
    unified = _first_text(value, _UNIFIED)
    if unified is not None:
        return [_unified(path, unified)]
    before, after = _first_text(value, _BEFORE), _first_text(value, _AFTER)
    if before is not None and after is not None:
        return [Change(path, tuple(diff_lines(before, after)))]
    whole = _first_text(value, _WHOLE)
    if path is not None and whole is not None:
        return [Change(path, tuple(("+", line) for line in _lines(whole)))]
    found = []
    for name, item in value.items():
        if isinstance(item, Mapping | list):
            found += find_changes(item, depth + 1)
        elif isinstance(item, str) and _IS_UNIFIED.search(item):
            found.append(_unified(path or name, item))
    return [change._replace(path=change.path or path) for change in found]


def _first_text(value: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((value[name] for name in names if isinstance(value.get(name), str)), None)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _unified(path: str | None, text: str) -> Change:
    named = _NEW_FILE.search(text) if path is None else None
    return Change(named[1] if named else path, tuple(_read_unified(_lines(text))))


def _read_unified(lines: Sequence[str]) -> Iterator[Line]:
    """Inside a hunk every line is content, whatever it looks like; the hunk's head counts them."""
    before = after = 0
    for line in lines:
        if (before > 0 or after > 0) and not line.startswith("\\"):
            sign = line[0] if line[:1] in ("+", "-") else " "
            before -= sign != "+"
            after -= sign != "-"
            yield sign, line[1:]
            continue
        head = _HEAD.match(line)
        if head:
            before, after = int((head[1] or "1")[:9]), int((head[2] or "1")[:9])
        yield "@", line


def diff_lines(before: str, after: str) -> Iterator[Line]:
    """What one text has and the other has not, line by line."""
    old, new = _lines(before) if before else [], _lines(after) if after else []
    if len(old) * len(new) > _PAIRS_MAX:
        yield from (("-", line) for line in old)
        yield from (("+", line) for line in new)
        return
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from ((" ", line) for line in old[a:b])
            continue
        yield from (("-", line) for line in old[a:b])
        yield from (("+", line) for line in new[c:d])
