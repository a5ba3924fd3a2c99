"""Which parts of a tool call's arguments and outcome are stored.

    arguments.command outcome.files.*.name     kept, where otherwise only digests are
    -arguments.content -outcome.stdout         dropped, where otherwise everything is kept

A path leads through the keys of objects; `*` stands for every key, or every item of an array. The
digest of a value is taken before anything of it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

FIELDS: Final = ("arguments", "outcome")
_PATH: Final = re.compile(r"-?(?:arguments|outcome)(?:\.[^\s.]{1,100}){1,20}\Z")
_PATHS_MAX: Final = 100
Path = tuple[str, ...]


class PathList:
    """What the setting may be: a list of such paths, parted by spaces; empty for none."""

    def __contains__(self, value: object) -> bool:
        words = value.split(" ") if isinstance(value, str) else [""]
        return value == "" or (
            len(words) <= _PATHS_MAX and all(_PATH.match(word) for word in words)
        )

    def __iter__(self) -> Iterator[str]:
        yield from ("", "paths such as 'arguments.command' or '-outcome.stdout'")


def find_paths(text: str, field: str, *, dropped: bool) -> list[Path]:
    """The paths of a list that are about a field: those to keep, or those to drop."""
    head = f"-{field}." if dropped else f"{field}."
    words = [word for word in text.split(" ") if word.startswith(head)]
    return [tuple(word[len(head) :].split(".")) for word in words]


def drop(value: Any, paths: list[Path]) -> Any:
    """A value without what stands at these paths."""
    if isinstance(value, list):
        inner = [path[1:] for path in paths if path[0] == "*"]
        return [] if () in inner else [drop(item, inner) for item in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        further = [path[1:] for path in paths if path[0] in (key, "*")]
        if () not in further:
            found[key] = drop(item, further) if further else item
    return found


def keep(value: Any, paths: list[Path]) -> Any:
    """Only what stands at these paths; None where nothing does."""
    if isinstance(value, list):
        inner = [path[1:] for path in paths if path[0] == "*"]
        return value if () in inner else [keep(item, inner) for item in value] if inner else None
    if not isinstance(value, dict):
        return None
    found = {}
    for key, item in value.items():
        further = [path[1:] for path in paths if path[0] in (key, "*")]
        if () in further:
            found[key] = item
        elif further and (part := keep(item, further)) is not None:
            found[key] = part
    return found or None
