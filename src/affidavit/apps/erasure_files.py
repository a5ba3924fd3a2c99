"""What this machine remembers of erasures, beside the guards.

<state>/<hex H(ledger id)>/erased   a line of JSON an erasure: fields, with their entries' hashes
<state>/<hex H(ledger id)>/scrub    there while a file is still to be cleaned
<state>/<hex H(ledger id)>/lock     held by who erases: what he says here is of him alone
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from affidavit.apps.durable_files import hold_lock, told, write_whole
from affidavit.errors import StoreError
from affidavit.ledger.ports import Remembered
from affidavit.stores.sqlite.files import make_folder, sync_folder

# An erasure names at most 500 fields, each in far fewer bytes than this allows.
_LINE_BYTES_MAX: Final = 1_000_000
LOCK_WAIT_S: Final = 60.0


class ErasureFolder:
    """The memory of erasures of this user."""

    def __init__(self, find_folder: Callable[[], Path]) -> None:
        self._find_folder = find_folder

    def _folder(self, ledger_id: str) -> Path:
        return self._find_folder() / sha256(ledger_id.encode()).hexdigest()

    @contextmanager
    def hold(self, ledger_id: str, *, patient: bool = True) -> Iterator[None]:
        """For one who erases at a time; the impatient is refused when somebody does already."""
        folder = self._folder(ledger_id)
        with told(folder):
            make_folder(folder)
        with hold_lock(folder / "lock", LOCK_WAIT_S if patient else 0, "erasing"):
            yield

    def mark(self, ledger_id: str) -> None:
        """Something is about to be erased; the mark is on disk when this returns."""
        folder = self._folder(ledger_id)
        with told(folder):
            make_folder(folder)
            write_whole(folder / "scrub", b"", os.O_TRUNC)
            sync_folder(folder)

    def unmark(self, ledger_id: str) -> None:
        """The file is clean."""
        with told(self._folder(ledger_id)):
            (self._folder(ledger_id) / "scrub").unlink(missing_ok=True)

    def is_marked(self, ledger_id: str) -> bool:
        """Whether somebody was stopped before the file was clean."""
        try:
            return (self._folder(ledger_id) / "scrub").exists()
        except PermissionError:  # another user's folder
            return False

    def remember(self, ledger_id: str, notes: Sequence[Remembered]) -> None:
        """Keep what was erased; it is on disk when this returns."""
        if not notes:
            return
        folder = self._folder(ledger_id)
        lines = "".join(json.dumps(note._asdict()) + "\n" for note in notes)
        with told(folder):
            make_folder(folder)
            _drop_unfinished(folder / "erased")
            write_whole(folder / "erased", lines.encode(), os.O_APPEND)
            sync_folder(folder)

    def newest(self, ledger_id: str) -> Remembered | None:
        """The erasure remembered last."""
        lines = self._lines(ledger_id, last_bytes=_LINE_BYTES_MAX)
        return self._parse(ledger_id, lines[-1]) if lines else None

    def recall(self, ledger_id: str) -> list[Remembered]:
        """Every erasure remembered, oldest first."""
        return [self._parse(ledger_id, line) for line in self._lines(ledger_id)]

    def _lines(self, ledger_id: str, last_bytes: int | None = None) -> list[str]:
        """The lines of the file, or those at its end: every opener looks at the newest."""
        path = self._folder(ledger_id) / "erased"
        with told(path):
            try:
                with path.open("rb") as file:
                    if last_bytes is not None:
                        size = file.seek(0, os.SEEK_END)
                        file.seek(max(0, size - last_bytes))
                    text = file.read().decode(errors="replace")
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                return []  # what another user remembers is not known here
        # A line that a power cut left unfinished is of an erasure whose mark is still there.
        return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def _parse(self, ledger_id: str, line: str) -> Remembered:
        try:
            found = json.loads(line)
            fields = tuple((index, name, leaf) for index, name, leaf in found["fields"])
            return Remembered(found["log_index"], found["leaf"], found["erased_by"], fields)
        except (KeyError, TypeError, ValueError):
            raise StoreError(
                f"{self._folder(ledger_id) / 'erased'} is damaged",
                hint="Put it back from a copy, or take it away: then a backup restored later "
                "brings erased texts back.",
            ) from None


def _drop_unfinished(path: Path) -> None:
    """Take back a line that a power cut or a full disk cut off, before another follows it."""
    with suppress(FileNotFoundError), path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - _LINE_BYTES_MAX)
        file.seek(start)
        end = start + file.read().rfind(b"\n") + 1
        if end < size:
            file.truncate(end)
