"""Paths in callers' JSON, made relative to a project's root, `/`-separated.

    relate_paths({"path": "/p/src/a.py"}, "/p")    -> ({"path": "src/a.py"}, 0)
    relate_paths({"cwd": "/elsewhere"}, "/p")      -> ({"cwd": "/elsewhere"}, 1)

A path outside of the root stays as it was given and is counted: a fact is never refused for a path.
Nothing here looks at a disk.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Final
from urllib.parse import unquote, urlsplit

PATH_KEYS: Final = frozenset(("path", "file_path", "cwd", "root", "uri"))

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
# The lines of a unified diff that name a file, up to its name.
_DIFF_LINE = re.compile(
    r"^((?:---|\+\+\+) (?:[ab](?=/))?)(/[^\t\r\n]+|[A-Za-z]:[\\/][^\t\r\n]+)", re.MULTILINE
)
_NOWHERE = "/dev/null"


def relate_path(path: str, root: str) -> tuple[str, bool]:
    """A path as it is stored, and whether it lies outside of the root."""
    if path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    elif _SCHEME.match(path) and not _DRIVE.match(path):
        return path, False
    plain, top = _slashed(path), _slashed(root).rstrip("/")
    if not _is_absolute(plain):
        is_outside = posixpath.normpath(plain).split("/", 1)[0] == ".."
        return (path if is_outside else plain), is_outside
    plain = posixpath.normpath(plain)
    if plain == top:
        return ".", False
    if plain.startswith(f"{top}/"):
        return plain[len(top) + 1 :], False
    return path, True


def _slashed(path: str) -> str:
    """A Windows path with `/`, its drive in lower case; any other as it is."""
    if not _DRIVE.match(path):
        return path
    return path[0].lower() + path[1:].replace("\\", "/")


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None


def relate_paths(value: Any, root: str) -> tuple[Any, int]:
    """A JSON value with the paths behind known keys made relative; how many lie outside."""
    if isinstance(value, dict):
        found, outside = {}, 0
        for key, item in value.items():
            if key in PATH_KEYS and isinstance(item, str):
                found[key], is_outside = relate_path(item, root)
                outside += is_outside
            else:
                found[key], more = relate_paths(item, root)
                outside += more
        return found, outside
    if isinstance(value, list | tuple):
        items = [relate_paths(item, root) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    return value, 0


def relate_diffs(value: Any, root: str) -> tuple[Any, int]:
    """The same for diffs, whose texts name files too, and whose keys may be files."""
    value, outside = relate_paths(value, root)
    if isinstance(value, dict):
        keys = {key: relate_path(key, root) if _is_absolute(key) else (key, False) for key in value}
        outside += sum(is_outside for _, is_outside in keys.values())
        value = {keys[key][0]: item for key, item in value.items()}
    texts, more = _relate_texts(value, root)
    return texts, outside + more


def _relate_texts(value: Any, root: str) -> tuple[Any, int]:
    if isinstance(value, str):
        return _relate_headers(value, root)
    if isinstance(value, dict):
        pairs = {key: _relate_texts(item, root) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, sum(n for _, n in pairs.values())
    if isinstance(value, list):
        items = [_relate_texts(item, root) for item in value]
        return [item for item, _ in items], sum(n for _, n in items)
    return value, 0


def _relate_headers(text: str, root: str) -> tuple[str, int]:
    outside = 0

    def relate(found: re.Match[str]) -> str:
        nonlocal outside
        lead, path = found.groups()
        if path == _NOWHERE:
            return found[0]
        plain, is_outside = relate_path(path, root)
        if is_outside and lead.endswith(("a", "b")):
            return found[0]  # a/src/x.py: relative already
        outside += is_outside
        return lead + ("/" if lead.endswith(("a", "b")) else "") + plain

    return _DIFF_LINE.sub(relate, text), outside
