"""Reading what an auditor was given: evidence files, notes, policies, told by their bytes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from affidavit.core.archive import ARCHIVE_BYTES_MAX, decode_archive, is_archive
from affidavit.core.bundle import CHECKPOINT
from affidavit.core.checkpoint import UnverifiedCheckpoint, parse_checkpoint
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
        raise StoreError(
            f"{path} cannot be read ({error.strerror or error})", hint="Check the path."
        ) from None
    if len(data) > bytes_max:
        raise InputError(
            f"{path} has more than {bytes_max:,} bytes", code="ERR_TOO_LARGE", field="file"
        )
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


def read_evidence(path: str) -> bytes:
    """A file to be verified, or one that holds a checkpoint."""
    return read_file(path, ARCHIVE_BYTES_MAX)


def checkpoint_in(data: bytes, path: str) -> UnverifiedCheckpoint:
    """A checkpoint: the note itself, or the one that an evidence file ends at."""
    try:
        return parse_checkpoint(decode_archive(data)[CHECKPOINT] if is_archive(data) else data)
    except (InputError, KeyError) as error:
        raise InputError(
            f"{path} is not a checkpoint ({error})",
            hint="Give the note that `affidavit checkpoint` prints.",
            field="checkpoint",
        ) from None


def verify_data(
    data: bytes, path: str, trust: Trust, progress: Progress | None = None
) -> EvidenceReport:
    """The verdict over an evidence file, or over a proof that a log forked."""
    if is_archive(data):
        return verify_evidence(data, trust, progress)
    said = ""
    if data.startswith(b"{"):
        try:
            return verify_misbehaviour(data, trust)
        except InputError as error:
            said = f" ({error.message})"
    raise InputError(
        f"{path} is neither an evidence file nor a proof of misbehaviour{said}",
        hint="Evidence files are made by `affidavit export`; lines of --jsonl carry no proof.",
        field="subject",
    )
