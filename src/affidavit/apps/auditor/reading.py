"""Reading what an auditor was given: evidence files, notes, policies, told by their bytes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from affidavit.core.archive import (
    ARCHIVE_BYTES_MAX,
    PIECE_BYTES,
    Source,
    is_archive,
    iter_members,
)
from affidavit.core.bundle import CHECKPOINT
from affidavit.core.checkpoint import UnverifiedCheckpoint, parse_checkpoint
from affidavit.core.misbehaviour import MISBEHAVIOUR_BYTES_MAX
from affidavit.core.note import NOTE_BYTES_MAX
from affidavit.errors import InputError, StoreError
from affidavit.verify.evidence import EvidenceReport, Progress, verify_evidence
from affidavit.verify.misbehaviour import verify_misbehaviour
from affidavit.verify.trust import Trust

_STDIN: Final = "-"
_ZIP: Final = b"PK\x03\x04"


def read_file(path: str, bytes_max: int = NOTE_BYTES_MAX) -> bytes:
    """The bytes of a file that is not too large; `-` is standard input."""
    try:
        if path == _STDIN:
            data = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(bytes_max + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(data) > bytes_max:
        raise _too_large(path, bytes_max)
    return data


def is_evidence(path: str) -> bool:
    """Whether a file begins as evidence does; what is not there or not a file does not.

    Not to be asked of a ledger that this process has open: to close its file again would drop the
    locks that SQLite holds on it.
    """
    try:
        if path != _STDIN and not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            head = file.read(len(_ZIP))
    except OSError:
        return path == _STDIN
    return is_archive(head) or head.startswith(b"{")


class FileBytes:
    """A file that may be larger than memory: only what is asked for is read."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, stretch: slice) -> bytes:
        start, end, _ = stretch.indices(self._size)
        self._file.seek(start)
        data = self._file.read(max(0, end - start))
        if len(data) < end - start:
            raise StoreError(f"{self._path} became shorter while it was read", hint="Try again.")
        return data


@contextmanager
def open_evidence(path: str) -> Iterator[FileBytes]:
    """A file to be verified, or one that holds a checkpoint; what is no file is copied into one."""
    with ExitStack() as closing:
        try:
            source: IO[bytes] = sys.stdin.buffer
            if path != _STDIN:
                source = closing.enter_context(Path(path).open("rb"))
            if path == _STDIN or not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                copy = closing.enter_context(TemporaryFile())
                _copy(source, copy, path)
                source = copy
        except OSError as error:
            raise _unreadable(path, error) from None
        yield FileBytes(path, source)


def _copy(source: IO[bytes], target: IO[bytes], path: str) -> None:
    left = ARCHIVE_BYTES_MAX
    while piece := source.read(PIECE_BYTES):
        left -= len(piece)
        if left < 0:
            raise _too_large(path, ARCHIVE_BYTES_MAX)
        target.write(piece)
    target.flush()
    target.seek(0)


def _unreadable(path: str, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be read ({error.strerror or error})", hint="Check the path.")


def _too_large(path: str, bytes_max: int) -> InputError:
    said = f"{path} has more than {bytes_max:,} bytes"
    return InputError(said, code="ERR_TOO_LARGE", field="file")


def read_checkpoint(path: str) -> UnverifiedCheckpoint:
    """The checkpoint that a file holds."""
    with open_evidence(path) as source:
        return checkpoint_in(source, path)


def checkpoint_in(source: Source, path: str) -> UnverifiedCheckpoint:
    """A checkpoint: the note itself, or the one that an evidence file ends at."""
    try:
        return parse_checkpoint(_note_in(source))
    except (InputError, KeyError) as error:
        raise InputError(
            f"{path} is not a checkpoint ({error})",
            hint="Give the note that `affidavit checkpoint` prints.",
            field="checkpoint",
        ) from None


def _note_in(source: Source) -> bytes:
    if not is_archive(source[: len(_ZIP)]):
        return source[: NOTE_BYTES_MAX + 1]
    member = {one.name: one for one in iter_members(source) if one.name == CHECKPOINT}[CHECKPOINT]
    return source[member.start : member.start + min(member.size, NOTE_BYTES_MAX + 1)]


def verify_source(
    source: Source, path: str, trust: Trust, progress: Progress | None = None
) -> EvidenceReport:
    """The verdict over an evidence file, or over a proof that a log forked."""
    head = source[: len(_ZIP)]
    if is_archive(head):
        return verify_evidence(source, trust, progress)
    said = ""
    if head.startswith(b"{"):
        try:
            return verify_misbehaviour(source[: MISBEHAVIOUR_BYTES_MAX + 1], trust)
        except InputError as error:
            said = f" ({error.message})"
    raise InputError(
        f"{path} is neither an evidence file nor a proof of misbehaviour{said}",
        hint="Evidence files are made by `affidavit export`; lines of --jsonl carry no proof.",
        field="subject",
    )
