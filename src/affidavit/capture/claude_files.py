"""Claude Code's folder of transcripts: its files, their lines, and how far reading them came.

Only regular files are opened, none behind a linked folder, and never the ledger itself: closing
its file would drop the locks of this process.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from affidavit.capture.claude_import import Import
from affidavit.capture.claude_transcripts import Broken, Other, Told, read_line
from affidavit.errors import StoreError

_LINE_BYTES_MAX: Final = 64 * 1024 * 1024
_BATCH_FACTS: Final = 200
_BATCH_BYTES: Final = 4_000_000
_NO_TIME: Final = 2**62
_FIRST_LINES: Final = 20


class Transcript(NamedTuple):
    """One file: the session it is of by its name, and when it begins."""

    path: Path
    session: str
    first_ms: int
    bytes: int


@dataclass
class Reading:
    """How far reading came, and what was in the lines besides facts."""

    bytes_total: int
    bytes_done: int = 0
    files: int = 0
    lines: int = 0
    broken: list[str] = field(default_factory=list)
    broken_count: int = 0
    other: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)


def default_folder() -> Path:
    """Where Claude Code keeps the transcripts of this user."""
    configured = os.environ.get("CLAUDE_CONFIG_DIR")
    top = Path(configured).expanduser() if configured else Path.home() / ".claude"
    return top / "projects"


def find_transcripts(place: Path, ledger: str) -> list[Transcript]:
    """A file, or every transcript below a folder, in the order in which they begin."""
    if not place.exists():
        raise StoreError(
            f"there is no {str(place)!r:.300}",
            hint="Name the folder of the transcripts, such as ~/.claude/projects.",
        )
    named = [place] if place.is_file() else list(_walk(place))
    own = Path(ledger)
    found = [
        _describe(path)
        for path in named
        if path.is_file() and not (own.exists() and path.samefile(own))
    ]
    # A subagent's file stands behind the session it worked for.
    return sorted(found, key=lambda one: (one.first_ms, len(one.path.parts), str(one.path)))


def _walk(folder: Path) -> Iterator[Path]:
    for top, folders, files in os.walk(folder):
        folders.sort()
        yield from (Path(top) / name for name in sorted(files) if name.endswith(".jsonl"))


def _describe(path: Path) -> Transcript:
    session = path.parent.parent.name if path.parent.name == "subagents" else path.stem
    first = _NO_TIME
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            for _ in range(_FIRST_LINES):
                for one in read_line(file.readline(_LINE_BYTES_MAX)):
                    if isinstance(one, Told) and one.origin.at_ms is not None:
                        first = min(first, one.origin.at_ms)
    except OSError:
        size = 0
    return Transcript(path, session, first, size)


def import_transcripts(
    importing: Import,
    transcripts: list[Transcript],
    progress: Callable[[Reading], None] = lambda _: None,
) -> Reading:
    """Read every line of every file, and record what is new."""
    reading = Reading(sum(one.bytes for one in transcripts))
    for one in transcripts:
        batch = _Batch(importing, one, reading, progress)
        try:
            with one.path.open("rb") as file:
                batch.read(file)
        except OSError as error:
            reading.unreadable.append(f"{one.path}: {error.strerror}")
        batch.flush()
        reading.files += 1
    return reading


class _Batch:
    """Facts of one file until there are enough of them for a transaction."""

    def __init__(
        self,
        importing: Import,
        transcript: Transcript,
        reading: Reading,
        progress: Callable[[Reading], None],
    ) -> None:
        self._importing = importing
        self._of = transcript
        self._reading = reading
        self._progress = progress
        self._facts: list[Told] = []
        self._bytes = 0
        self._root: str | None = None
        self._last_ms: int | None = None

    def read(self, file: BinaryIO) -> None:
        """Every line; one that is still being written has no end and is left for the next time."""
        number = 0
        while line := file.readline(_LINE_BYTES_MAX):
            number += 1
            self._reading.bytes_done += len(line)
            if line.isspace():
                continue
            self._reading.lines += 1
            is_whole = line.endswith(b"\n")
            for one in read_line(line):
                self._take(one, number, is_whole=is_whole)
            self._bytes += len(line)
            if len(self._facts) >= _BATCH_FACTS or self._bytes >= _BATCH_BYTES:
                self.flush()

    def _take(self, one: Told | Broken | Other, number: int, *, is_whole: bool) -> None:
        if isinstance(one, Broken):
            if is_whole:
                self._reading.broken_count += 1
                if len(self._reading.broken) < _FIRST_LINES:
                    self._reading.broken.append(f"{self._of.path}:{number}")
        elif isinstance(one, Other):
            self._reading.other[one.type] += 1
        else:
            self._add(one)

    def _add(self, told: Told) -> None:
        """A fact with what its line leaves out: its session, and a time near it."""
        origin = told.origin
        if origin.at_ms is None:
            origin = origin._replace(at_ms=self._last_ms)
        self._last_ms = origin.at_ms
        if origin.session is None:
            origin = origin._replace(session=self._of.session)
        if origin.cwd is not None and origin.cwd != self._root:
            self.flush()
            self._root = origin.cwd
        self._facts.append(Told(origin, told.fact))

    def flush(self) -> None:
        """Record what was gathered."""
        facts, self._facts, self._bytes = self._facts, [], 0
        if facts:
            self._importing.record(facts, self._root)
        self._progress(self._reading)
