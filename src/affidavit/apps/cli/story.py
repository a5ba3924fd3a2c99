"""`affidavit show`: the story of a session, step by step as it is read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from affidavit.apps.cards import card_of
from affidavit.apps.cli.opening import open_for_reading
from affidavit.apps.cli.render import Answer, block, count
from affidavit.apps.cli.session import describe_session
from affidavit.apps.plain import one_line
from affidavit.core.changes import Change, find_changes
from affidavit.core.moment import render_time
from affidavit.core.names import PAYLOAD_BYTES_MAX, is_digest
from affidavit.errors import InputError
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import LogEntry, Session
from affidavit.ledger.stories import Step, ToldCall

# How many steps are held at once: fewer where each may be as long as a text may be.
_PAGE: Final = 500
_PAGE_FULL: Final = 10
_TEXT_BYTES: Final = 4_000
_EXCERPT: Final = 100
_DIFF_LINES: Final = 12
# What tools were asked and answered is folded; what people and agents said is not.
_FOLDED: Final = frozenset(("arguments", "outcome", "attributes"))
_MS_PER_S: Final = 1_000


def show(args: argparse.Namespace) -> Answer:
    """The story, printed as it is read, so that a long one keeps nobody waiting."""
    text_bytes = PAYLOAD_BYTES_MAX if args.full else _TEXT_BYTES
    with open_for_reading(args) as ledger:
        session = _find(ledger, args.session)
        steps = _steps(ledger, args.session, args.after, text_bytes)
        if getattr(args, "json", False):
            _print_json(session, steps)
        else:
            _print_plain(session, steps, full=args.full)
    return Answer({}, [], is_shown=True)


def _find(ledger: Ledger, session_id: str) -> Session:
    found = ledger.get_session(session_id)
    if found is None:
        raise InputError(
            f"session_id: there is no session {session_id!r:.100}",
            code="ERR_SESSION_NOT_FOUND",
            hint="`affidavit session list` shows the sessions.",
            field="session_id",
        )
    return found


def _steps(ledger: Ledger, session_id: str, after: int | None, text_bytes: int) -> Iterator[Step]:
    limit = _PAGE if text_bytes == _TEXT_BYTES else _PAGE_FULL
    while True:
        page = ledger.tell_story(session_id, after=after, limit=limit, text_bytes_max=text_bytes)
        yield from page
        if len(page) < limit:
            return
        after = page[-1].entry.index


def _print_json(session: Session, steps: Iterator[Step]) -> None:
    """One document, written in pieces."""
    print(f'{{"ok": true, "data": {{"session": {json.dumps(session.to_dict())}, "steps": [', end="")
    for place, step in enumerate(steps):
        print(", " if place else "", json.dumps(step.to_dict()), sep="", end="")
    print("]}}", flush=True)


def _print_plain(session: Session, steps: Iterator[Step], *, full: bool) -> None:
    print(f"Session {one_line(session.session_id)} is {session.state}")
    for line in describe_session(session):
        print(line)
    marks = told = 0
    for step in steps:
        marks += len(step.marks)
        if step.told_at is None:
            told += 1
            print()
            for line in _tell(step, full=full):
                print(line)
    print()
    print(f"{count(told, 'step')}, {count(marks, 'mark')}.", flush=True)


def _tell(step: Step, *, full: bool) -> Iterator[str]:
    card = card_of(step.entry, {}, step)
    what = _call_title(step.call) if step.call else card.title
    who = f"  {one_line(card.who)}" if card.who else ""
    via = f" ({one_line(card.via)})" if card.via else ""
    when = "(no time)" if step.when_us is None else render_time(step.when_us)
    known = step.basis or "-"
    yield f"{when}  {known:<4}  {one_line(what)}{who}  #{step.entry.index}{via}"
    for mark in step.marks:
        about = "" if mark.about is None else f" (entry {mark.about})"
        yield f"  !! {mark.code}: {one_line(mark.said)}{about}"
    if card.damage:
        yield f"  !! damaged: {one_line(card.damage)}"
    yield from _tell_texts(step.entry, full=full)
    if step.call is not None and step.call.end is not None:
        yield from _tell_texts(step.call.end, full=full)


def _call_title(call: ToldCall) -> str:
    took = "" if call.latency_ms is None else f", {call.latency_ms / _MS_PER_S:,.1f} s"
    kind = f" ({call.error_kind})" if call.error_kind else ""
    return f"{call.tool_name}: {call.state}{kind}{took}"


def _tell_texts(entry: LogEntry, *, full: bool) -> Iterator[str]:
    for name, text in entry.texts.items():
        if text is None:
            if name == "content" or entry.body.get(name) is not None:
                yield f"    ({name} was erased, or it is lost)"
        elif is_digest(text):
            continue
        elif name in _FOLDED or name == "diffs":
            yield from _fold(entry, name, text, full=full)
        else:
            yield from block(text)
            if name in entry.cut:
                yield f"    ... {_size(entry, name, text)} in all (--full shows it)"


def _fold(entry: LogEntry, name: str, text: str, *, full: bool) -> Iterator[str]:
    """A payload on a line with its size; an edit as its diff."""
    changes = find_changes(_read_json(text)) if name in ("arguments", "diffs") else []
    if changes:
        for change in changes:
            yield from tell_change(change, None if full else _DIFF_LINES)
        return
    if full:
        yield f"    {name}, {_size(entry, name, text)}:"
        yield from block(text, "      ")
        return
    shown = one_line(text)
    more = "..." if name in entry.cut or len(shown) > _EXCERPT else ""
    yield f"    {name}, {_size(entry, name, text)}: {shown[:_EXCERPT]}{more}"


def tell_change(change: Change, lines_max: int | None) -> Iterator[str]:
    """A change of a file as a diff; what was only unchanged around it is left out."""
    yield f"    {one_line(change.path or '(a file)')}"
    lines = change.lines if lines_max is None else _without_same(change.lines)
    for sign, line in lines[:lines_max]:
        yield f"      {'' if sign == '@' else sign}{one_line(line)}".rstrip()
    if lines_max is not None and len(lines) > lines_max:
        yield f"      ... {count(len(lines) - lines_max, 'line')} more"


def _without_same(lines: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    return [line for line in lines if line[0] in "+-"] or lines


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _size(entry: LogEntry, name: str, text: str) -> str:
    committed = entry.body.get(name)
    if isinstance(committed, Mapping) and isinstance(committed.get("bytes"), int):
        return f"{committed['bytes']:,} bytes"
    return f"{len(text.encode('utf-8', 'replace')):,} bytes"
