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
from affidavit.verify.evidence import EvidenceReport, verify_evidence
from affidavit.verify.misbehaviour import verify_misbehaviour
from affidavit.verify.trust import Trust

_STDIN: Final = "-"


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


def read_checkpoint(path: str) -> UnverifiedCheckpoint:
    """A checkpoint: the note itself, or the one that an evidence file ends at."""
    data = read_file(path, ARCHIVE_BYTES_MAX)
    if is_archive(data):
        data = decode_archive(data).get(CHECKPOINT, b"")
    try:
        return parse_checkpoint(data)
    except InputError as error:
        raise InputError(
            f"{path} is not a checkpoint ({error.message})",
            hint="Give the note that `affidavit checkpoint` prints.",
            field="checkpoint",
        ) from None


def verify_file(path: str, trust: Trust) -> EvidenceReport:
    """The verdict over an evidence file, or over a proof that a log forked."""
    data = read_file(path, ARCHIVE_BYTES_MAX)
    if is_archive(data):
        return verify_evidence(data, trust)
    if data.startswith(b"{"):
        return verify_misbehaviour(data, trust)
    raise InputError(
        f"{path} is neither an evidence file nor a proof of misbehaviour",
        hint="Evidence files are made by `affidavit export`.",
        field="subject",
    )
