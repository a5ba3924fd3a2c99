"""How answers look: one JSON document for programs, plain text for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from affidavit.apps.plain import one_line, plain
from affidavit.errors import AffidavitError


class Answer(NamedTuple):
    """What a command has to say: `data` for programs, `lines` for people; or it is said already."""

    data: Mapping[str, Any]
    lines: Iterable[str]
    exit_code: int = 0
    is_shown: bool = False


def show(answer: Answer, *, as_json: bool) -> None:
    """Print an answer."""
    if answer.is_shown:
        return
    if as_json:
        _print_json({"ok": True, "data": answer.data})
        return
    for line in answer.lines:
        print(line)
    print(end="", flush=True)


def show_error(error: AffidavitError, *, as_json: bool) -> None:
    """Say what went wrong: to programs where they look for the answer, to people on stderr."""
    if as_json:
        _print_json({"ok": False, "error": error.to_dict()})
        return
    print(f"affidavit: {one_line(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {one_line(error.hint)}", file=sys.stderr)


def show_note(message: str) -> None:
    """Say something on stderr that a person should know."""
    print(f"affidavit: {one_line(message)}", file=sys.stderr)


def _print_json(document: Mapping[str, Any]) -> None:
    print(json.dumps(document, default=str), flush=True)


def block(text: str, margin: str = "    ") -> Iterator[str]:
    """Text of several lines, set apart by a margin so that none can pass for ours."""
    return ((margin + line).rstrip() for line in plain(text).split("\n"))


def fields(pairs: Iterable[tuple[str, object]], margin: str = "  ") -> Iterator[str]:
    """Names and values below each other; what has no value is left out."""
    known = [(name, one_line(value)) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in known), default=0)
    return (f"{margin}{name:<{width}}  {value}" for name, value in known)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Columns as wide as they need to be; an absent value is a dash."""
    cells = [["-" if cell is None else one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in ([name.upper() for name in head], *cells):
        padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 record, 1,200 records."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
