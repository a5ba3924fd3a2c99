"""SQLite's and the system's errors in this package's words: nothing foreign leaves the store."""

from __future__ import annotations

import errno
import os
import sqlite3
from typing import Final, get_args

from affidavit.errors import AffidavitError, ConflictError, IntegrityViolation, StoreError

# What the module raises when SQLite fails. The second: its message quotes bytes that are no text.
# The third: a forged index leaves no room for the next one.
Raised = sqlite3.Error | UnicodeDecodeError | OverflowError
RAISED: Final = get_args(Raised)
SAYS_MORE: Final = "Keep the file as it is; `affidavit verify` says more."
_NO_PLACE: Final = (sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_READONLY_CANTINIT)
_OF_THE_STORE: Final = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_NOMEM,
)


def primary_code(error: Raised) -> int:
    """The primary result code: the extended ones keep it in their low byte."""
    return _extended_code(error) & 0xFF


def _extended_code(error: Raised) -> int:
    return int(getattr(error, "sqlite_errorcode", 0))


def is_of_the_store(error: Raised) -> bool:
    """Whether this concerns the disk or the file, not one caller's unit."""
    return primary_code(error) in _OF_THE_STORE


def without_payload(said: str) -> str:
    """SQLite quotes a text it cannot decode; a message must not."""
    return said.partition(" with text ")[0]


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds the lock, or was faster to it again and again (PROTOCOL)."""
    busy = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
    return primary_code(error) in busy


def translate(error: Raised, path: str) -> AffidavitError:
    """The error a caller gets for what SQLite said."""
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "SQLite: what is said of it is no text")
    if isinstance(error, OverflowError):
        return damaged(path, "its newest index is the largest there can be")
    if isinstance(error, sqlite3.IntegrityError):
        return translate_constraint(error)
    code = primary_code(error)
    said = f"SQLite: {without_payload(str(error))}"
    if code == sqlite3.SQLITE_FULL:
        return _full(path)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            f"{path} was locked by another process for too long",
            code="ERR_STORE_LOCKED",
            hint=f"Nothing was recorded. Find who holds it (`lsof {path}`), then call again.",
        )
    if _extended_code(error) in _NO_PLACE:
        return StoreError(
            f"{path} cannot be used: its folder cannot be written",
            hint="SQLite keeps two files beside a ledger, also to read it. Give this user the "
            "right to write in the folder, or copy the ledger to another.",
        )
    if code == sqlite3.SQLITE_READONLY:
        return ConflictError(
            f"{path} cannot be written",
            code="ERR_READONLY",
            hint="Open it for reading only, or give this user the right to write it.",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return not_a_ledger(path, "it is not an SQLite database")
    if code == sqlite3.SQLITE_CORRUPT or "decode to UTF-8" in str(error):
        return damaged(path, said)
    return StoreError(f"{path} cannot be used ({said})", hint="Run `affidavit doctor`.")


def unavailable(path: str, error: OSError) -> StoreError | ConflictError:
    """The error a caller gets for what the operating system said."""
    if error.errno == errno.EROFS:
        return ConflictError(
            f"{path} is on a read-only disk",
            code="ERR_READONLY",
            hint="Choose another path, or mount the disk writable.",
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(path)
    reason = os.strerror(error.errno) if error.errno else str(error)
    return StoreError(
        f"{path} cannot be opened ({reason})",
        hint="Check the path and this user's rights, or name another with --ledger.",
    )


def _full(path: str) -> StoreError:
    return StoreError(
        f"the disk with {path} is full",
        code="ERR_STORE_FULL",
        hint="Nothing was recorded. Free space and call again.",
    )


def damaged(path: str, why: str) -> IntegrityViolation:
    """The file was a ledger once."""
    return IntegrityViolation(
        f"{path} is damaged ({why})",
        hint="Keep the file as it is and restore a backup; `affidavit verify` says more.",
    )


def not_a_ledger(path: str, why: str) -> StoreError:
    """The file is something else."""
    return StoreError(
        f"{path} is not a ledger: {why}",
        code="ERR_NOT_A_LEDGER",
        hint="Choose another path; nothing was changed in this file.",
    )


def translate_constraint(error: sqlite3.IntegrityError) -> AffidavitError:
    """What the schema refuses: the same record a second time, or what no call would write."""
    said = str(error)
    if said.endswith(("thought_records.id", "thought_records.hash")):
        what = said.rpartition(".")[2]
        return ConflictError(
            f"thought_record: duplicate {what}",
            code="ERR_DUPLICATE_RECORD",
            hint="The same record was written before; nothing was written now.",
        )
    return IntegrityViolation(f"the views contradict the log (SQLite: {said})", hint=SAYS_MORE)
