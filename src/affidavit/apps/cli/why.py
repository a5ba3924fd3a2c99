"""`affidavit why`: the edits that made a file, the decision before each, and how to prove them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from affidavit.apps.cli.opening import open_for_reading
from affidavit.apps.cli.render import Answer, block, fields
from affidavit.apps.cli.story import tell_change
from affidavit.apps.plain import one_line
from affidavit.core.changes import Change
from affidavit.core.moment import render_time
from affidavit.errors import InputError, invalid
from affidavit.ledger.provenance import Trace

_DIFF_LINES: Final = 12


def why(args: argparse.Namespace) -> Answer:
    """The recorded edits of a file, or of a line of it."""
    path, number = _read_place(args.place)
    line = None if number is None else _read_line(path, number)
    with open_for_reading(args) as ledger:
        found = ledger.trace_file(path, line=line, limit=args.limit)
        signed = ledger.last_checkpoint()
    data: dict[str, Any] = {
        "path": path,
        "line": None if number is None else {"number": number, "text": line},
        "signed": signed,
        "edits": [one.to_dict() for one in found],
    }
    lines = [line for one in found for line in _tell(one, signed)]
    return Answer(data, lines or [f"No recorded edit wrote {one_line(args.place)}."])


def _read_place(place: str) -> tuple[str, int | None]:
    """A file, and a line where the last part is a number and no file is called so."""
    path, colon, number = place.rpartition(":")
    is_number = number.isascii() and number.isdecimal() and len(number) < len("1000000000")
    if not (colon and path and is_number) or Path(place).exists():
        return place, None
    return path, int(number)


def _read_line(path: str, number: int) -> str:
    """The line as it is now: edits are asked for its text, numbers move with every edit."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            found = next((text for place, text in enumerate(file, 1) if place == number), None)
    except OSError as error:
        raise InputError(
            f"line {number} of {path!r:.200} cannot be read ({error.strerror})",
            hint="Leave :LINE out to see the edits of the whole file.",
        ) from None
    if found is None:
        raise invalid("line", f"{path!r:.200} has no line {number}")
    if not found.strip():
        raise invalid("line", f"line {number} is empty", hint="Ask for a line beside it.")
    return found.rstrip("\r\n")


def _tell(one: Trace, signed: int | None) -> Iterator[str]:
    how = one.tool_name or "proposal"
    yield f"{render_time(one.at)}  {one.basis or '-'}  {one_line(how)}: {one.status}  #{one.index}"
    yield from tell_change(Change(one.path, one.lines), _DIFF_LINES)
    yield from _tell_decision(one)
    session = None if one.session_id is None else f"{one.session_id}: {one.intent or '(erased)'}"
    sealed = None if one.seal_index is None else f"entry {one.seal_index}, root {one.root}"
    yield from fields(
        [
            ("session", session or "none"),
            ("sealed", sealed or "no"),
            ("signed", _describe_signed(one.index, signed)),
        ]
    )


def _tell_decision(one: Trace) -> Iterator[str]:
    if one.decision is None:
        yield "  before it no decision is recorded in its session"
        return
    body = one.decision.body
    who = one_line(body.get("agent_id"))
    yield f"  after the {body.get('type')} of {who}, #{one.decision.index}"
    yield from block(one.decision.texts.get("content") or "(erased, or lost)", "      ")


def _describe_signed(index: int, signed: int | None) -> str:
    if signed is None:
        return "not by this machine; `affidavit checkpoint` signs"
    return f"in the checkpoint of {signed:,} entries" if index < signed else "not yet"
