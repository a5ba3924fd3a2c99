"""`affidavit size`, `tail` and `diff`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Final

from affidavit.apps.cli.opening import open_for_reading
from affidavit.apps.cli.render import Answer, count, table
from affidavit.apps.plain import one_line
from affidavit.core.moment import render_time
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import LogEntry, Step

_LOOK_S: Final = 0.2
_TEXT_BYTES: Final = 2_000
_SHOWN: Final = 100


def size(args: argparse.Namespace) -> Answer:
    """What takes the space."""
    with open_for_reading(args) as ledger:
        found = ledger.size()
    rows = [
        (one.noun, f"{one.entries:,}", f"{one.log_bytes:,}", f"{one.text_bytes:,}")
        for one in found.nouns
    ]
    lines = list(table(("what", "entries", "bytes of log", "bytes of text"), rows))
    lines.append(f"{count(found.entries, 'entry', 'entries')}, {found.log_bytes:,} bytes of log")
    lines.append(
        f"file {found.file_bytes:,}, write-ahead log {found.wal_bytes:,}, "
        f"search index {found.search_bytes:,} bytes"
    )
    if found.year_bytes is None:
        lines.append("It is too young to say what a year will take.")
    else:
        days = found.span_us / 86_400_000_000
        lines.append(
            f"A year like the last {days:,.1f} days takes {found.year_bytes / 1_000_000:,.1f} MB."
        )
    return Answer(found.to_dict(), lines)


def tail(args: argparse.Namespace) -> Answer:
    """Facts as they come; with --follow it ends when it is interrupted."""
    is_document = getattr(args, "json", False) and not args.jsonl
    show = _as_json if args.jsonl or is_document else _as_line
    with open_for_reading(args) as ledger:
        last = max(-1, len(ledger) - 1 - args.lines)
        if is_document and not args.follow:  # what goes on has no end: a line an entry
            return Answer({"entries": [entry.to_dict() for entry in _new(ledger, last)]}, ())
        for entry in _new(ledger, last):
            print(show(entry))
            last = entry.index
        sys.stdout.flush()
        while args.follow:
            time.sleep(_LOOK_S)
            for entry in _new(ledger, last):
                print(show(entry), flush=True)
                last = entry.index
    return Answer({}, (), is_shown=True)


def _new(ledger: Ledger, last: int) -> Iterator[LogEntry]:
    """Entries behind an index, a page at a time."""
    while page := ledger.list_entries(
        after=last if last >= 0 else None, limit=_SHOWN, text_bytes_max=_TEXT_BYTES
    ):
        yield from page
        last = page[-1].index


def _as_json(entry: LogEntry) -> str:
    return json.dumps(entry.to_dict(), ensure_ascii=False)


def _as_line(entry: LogEntry) -> str:
    if entry.damage is not None or entry.at is None:
        return f"entry {entry.index}  DAMAGED: {one_line(entry.damage)}"
    texts = " | ".join(
        one_line(text)[:_SHOWN]
        for name, text in entry.texts.items()
        if text and not name.endswith("_sha256")
    )
    body = entry.body
    about = body.get("session_id") or body.get("task_id") or body.get("request_id") or ""
    return (
        f"{render_time(entry.at)}  {entry.index}  {entry.kind}  {one_line(about)}  {texts}".rstrip()
    )


def diff(args: argparse.Namespace) -> Answer:
    """Two sessions step by step."""
    with open_for_reading(args) as ledger:
        steps = ledger.compare_sessions(args.first, args.second)
    lines = [line for step in steps for line in _describe(step)]
    numbers = {how: sum(step.how == how for step in steps) for how in "=~-+"}
    lines.append(
        f"{numbers['=']} alike, {numbers['~']} with other texts, {numbers['-']} only in the "
        f"first, {numbers['+']} only in the second"
    )
    return Answer({"steps": [step.to_dict() for step in steps], "counts": numbers}, lines)


def _describe(step: Step) -> Iterator[str]:
    place = " ".join(str(index) for index in (step.index, step.other_index) if index is not None)
    yield f"{step.how} {step.kind} {one_line(step.what)}  (entry {place})".replace("  (", " (")
    for mark, texts in (("-", step.texts), ("+", step.other_texts)):
        if step.how != "=":
            yield from (f"    {mark} {one_line(text)[:_SHOWN]}" for text in texts.values() if text)
