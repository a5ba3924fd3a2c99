"""`affidavit import`: what a client wrote down before anybody listened."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from affidavit import __version__
from affidavit.apps.cli.opening import create, is_new, ledger_path, open_for_writing
from affidavit.apps.cli.render import Answer, count, fields, show_note
from affidavit.apps.plain import one_line
from affidavit.apps.wiring import now_us
from affidavit.capture.claude_files import (
    Reading,
    default_folder,
    find_transcripts,
    import_transcripts,
)
from affidavit.capture.claude_import import Import
from affidavit.ledger.ledger import Ledger

_WIDTH: Final = 30
_BETWEEN_S: Final = 0.1
_US_PER_MS: Final = 1_000


def import_(args: argparse.Namespace) -> Answer:
    """Record what transcripts tell; a second time records nothing."""
    place = default_folder() if args.folder is None else Path(args.folder).expanduser()
    transcripts = find_transcripts(place, ledger_path(args))
    began = time.monotonic()
    with _open(args) as ledger:
        importing = Import(ledger, f"affidavit-import/{__version__}")
        reading = import_transcripts(importing, transcripts, _progress())
        importing.finish(now_us() // _US_PER_MS)
    data = _describe(importing, reading, time.monotonic() - began)
    return Answer(data, _tell(data, str(place)))


def _open(args: argparse.Namespace) -> Ledger:
    path = ledger_path(args)
    if not is_new(path):
        return open_for_writing(args)
    show_note(f"made a new ledger, {path}")
    return create(args, {"payloads": "keep"})


def _progress() -> Callable[[Reading], None]:
    """A bar on a terminal; nothing where nobody looks."""
    if not sys.stderr.isatty():
        return lambda _: None
    shown_at = 0.0

    def show(reading: Reading) -> None:
        nonlocal shown_at
        is_done = reading.bytes_done >= reading.bytes_total
        if not is_done and time.monotonic() - shown_at < _BETWEEN_S:
            return
        shown_at = time.monotonic()
        share = min(1.0, reading.bytes_done / max(1, reading.bytes_total))
        bar = "#" * round(share * _WIDTH)
        end = "\n" if is_done else ""
        told = f"\r[{bar:<{_WIDTH}}] {share:4.0%}  {reading.lines:,} lines"
        print(told, end=end, file=sys.stderr, flush=True)

    return show


def _describe(importing: Import, reading: Reading, took_s: float) -> dict[str, Any]:
    counts = importing.counts
    return {
        "files": reading.files,
        "lines": reading.lines,
        "bytes": reading.bytes_done,
        "sessions": importing.sessions,
        "facts": counts.facts,
        "recorded": {"turns": counts.turns, "calls": counts.calls, "results": counts.results},
        "known": counts.known,
        "seen_live": counts.seen_live,
        "unmatched": counts.unmatched,
        "refused": dict(counts.reasons),
        "broken": {"count": reading.broken_count, "first": reading.broken},
        "other": dict(sorted(reading.other.items())),
        "unreadable": reading.unreadable,
        "took_ms": round(took_s * 1_000),
        "facts_per_s": round(counts.facts / max(took_s, 0.001)),
    }


def _tell(data: dict[str, Any], place: str) -> Iterator[str]:
    new = data["recorded"]
    yield f"Imported {one_line(place)}: {count(data['files'], 'file')}, {data['lines']:,} lines"
    told = f"{new['turns']:,} turns, {new['calls']:,} tool calls, {new['results']:,} results"
    yield from fields(
        [
            ("sessions", f"{data['sessions']:,}"),
            ("recorded", told),
            ("known before", f"{data['known']:,}"),
            ("seen live by hooks", f"{data['seen_live']:,}" if data["seen_live"] else None),
            ("without their call", f"{data['unmatched']:,}" if data["unmatched"] else None),
            ("left out", ", ".join(f"{n:,} {name}" for name, n in data["other"].items()) or None),
            ("speed", f"{data['facts_per_s']:,} facts a second"),
        ]
    )
    for code, number in data["refused"].items():
        yield f"  refused: {number:,} ({code})"
    if data["broken"]["count"]:
        first = one_line(data["broken"]["first"][0])
        yield f"  broken: {count(data['broken']['count'], 'line')}, the first is {first}"
    yield from (f"  unreadable: {one_line(said)}" for said in data["unreadable"])
