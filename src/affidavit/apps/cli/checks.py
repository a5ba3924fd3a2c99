"""What `affidavit doctor` looks at: one small function a question, each with what to do about it.

The place is looked at with `stat` and `access` alone; the file's inside only through SQLite. Never
open the file any other way: closing it again would drop the locks SQLite holds in this process, and
with them other processes' writes. To add a check, write a function and put it into a stage.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from affidavit.apps import wiring
from affidavit.errors import AffidavitError, IntegrityViolation, StoreError

OK, WARN, FAIL = "ok", "warn", "fail"
CLOCK_AHEAD_MAX_US: Final = 60_000_000
_SPACE_MIN_BYTES: Final = 64 * 1024 * 1024
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Check(NamedTuple):
    """The answer to one question."""

    name: str
    status: str
    message: str
    hint: str = ""
    code: str = ""


class Subject(NamedTuple):
    """What is looked at, and with which senses."""

    path: str
    sqlite_version: tuple[int, ...] = sqlite3.sqlite_version_info
    mounts: str = "/proc/self/mounts"
    access: Callable[[str, int], bool] = os.access
    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs
    clock: Callable[[], int] = wiring.now_us


Question = Callable[[Subject], Check]


def check_sqlite(subject: Subject) -> Check:
    """Whether SQLite is new enough."""
    wiring.check_sqlite(subject.sqlite_version)
    return Check("sqlite", OK, f"SQLite {'.'.join(map(str, subject.sqlite_version))}")


def check_folder(subject: Subject) -> Check:
    """Whether files can be made beside the ledger, as SQLite must."""
    wanted, folder = _folders(subject)
    if not folder.is_dir():
        return Check("folder", FAIL, f"{folder} is not a folder", "Choose another path.")
    if not subject.access(str(folder), os.R_OK | os.W_OK | os.X_OK):
        return Check(
            "folder",
            FAIL,
            f"this user cannot write in {folder}",
            "Give this user the right to (chmod u+rwx, chown, a disk that is not mounted "
            "read-only), or move the ledger: SQLite keeps two files beside it.",
        )
    return Check("folder", OK, str(wanted) + (" can be made" if folder != wanted else ""))


def _folders(subject: Subject) -> tuple[Path, Path]:
    """The folder the ledger belongs in, and the nearest one above that is there."""
    wanted = Path(subject.path).absolute().parent
    return wanted, next(one for one in (wanted, *wanted.parents) if one.exists())


def check_filesystem(subject: Subject) -> Check:
    """Whether it is on a disk of this machine."""
    kind = wiring.find_network_filesystem(subject.path, subject.mounts)
    if kind is None:
        return Check("filesystem", OK, "local")
    return Check(
        "filesystem",
        WARN,
        f"{subject.path} is on a network filesystem ({kind}): its locks are not safe, and "
        "records may be lost",
        "Keep the ledger on a local disk.",
    )


def check_space(subject: Subject) -> Check:
    """Whether there is room to write."""
    space = subject.statvfs(_folders(subject)[1])
    free_bytes = space.f_bavail * space.f_frsize
    free = f"{free_bytes // 1_000_000:,} MB free"
    if free_bytes < _SPACE_MIN_BYTES:
        return Check("space", WARN, f"only {free}", "Free space before the disk is full.")
    return Check("space", OK, free)


def check_file(subject: Subject) -> Check:
    """Whether there is a file at all."""
    target = Path(subject.path)
    if not target.exists():
        return Check("file", FAIL, f"there is no ledger at {target}", "Make one: `affidavit init`.")
    if not target.is_file():
        return Check("file", FAIL, f"{target} is not a file", "Choose another path.")
    return Check("file", OK, f"{target}, {target.stat().st_size:,} bytes")


def check_rights(subject: Subject) -> Check:
    """Whether this user may read and write it."""
    for suffix in ("", "-wal", "-shm"):
        name = subject.path + suffix
        if not Path(name).exists():
            continue
        if not subject.access(name, os.R_OK):
            return Check(
                "rights",
                FAIL,
                f"this user cannot read {name}",
                "Run as its owner, or give this user the right (chmod u+rw, chown).",
            )
        if not subject.access(name, os.W_OK):
            return Check(
                "rights",
                FAIL,
                f"{name} is read-only for this user: it can be read, nothing can be recorded",
                "Give this user the right to write (chmod u+w, chown), or mount the disk writable.",
            )
    return Check("rights", OK, "can be read and written")


def check_mode(subject: Subject) -> Check:
    """Whether it is closed to other users."""
    mode = stat.S_IMODE(Path(subject.path).stat().st_mode)
    if mode & _OTHERS:
        return Check(
            "mode",
            WARN,
            f"other users of this machine have rights on {subject.path} (mode {mode:04o})",
            f"Close it: chmod 600 {subject.path}",
        )
    return Check("mode", OK, f"closed to other users ({mode:04o})")


def check_ledger(subject: Subject) -> Check:
    """Whether it is a ledger, of a version this program knows."""
    with wiring.open_ledger(subject.path, readonly=True, create=False) as ledger:
        version, size = ledger.describe()["schema_version"], len(ledger)
    return Check("ledger", OK, f"schema {version}, {size:,} entries")


def check_integrity(subject: Subject) -> Check:
    """Whether SQLite finds every page of the file in order."""
    uri = f"file:{quote(os.fsencode(Path(subject.path).absolute()))}?mode=ro"
    connection = None
    try:
        connection = sqlite3.connect(uri, uri=True)
        said = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        said = [str(error)]
    finally:
        if connection is not None:
            connection.close()
    if said == ["ok"]:
        return Check("integrity", OK, "SQLite finds the file in order")
    raise _damaged(subject.path, said[0].splitlines()[-1])


def _damaged(path: str, said: str) -> IntegrityViolation:
    return IntegrityViolation(
        f"{path} is damaged (SQLite: {said})",
        hint="Keep this file as it is, restore a backup, and compare; `affidavit verify` says "
        "which records hold.",
    )


def check_clock(subject: Subject) -> Check:
    """Whether this machine's clock stands behind what is recorded."""
    with wiring.open_ledger(
        subject.path, readonly=True, create=False, clock=subject.clock
    ) as ledger:
        ahead_us = ledger.describe()["clock_ahead_us"]
    if ahead_us > CLOCK_AHEAD_MAX_US:
        return Check(
            "clock",
            WARN,
            f"the newest entry is {_duration(ahead_us)} ahead of this machine's clock",
            "Set the clock right. Until it has caught up, entries keep the newest entry's time.",
        )
    return Check("clock", OK, "not behind the newest entry")


def check_hooks(subject: Subject) -> Check:
    """Whether what a connected client tells gets through: an event is sent the whole way."""
    from affidavit.apps.connecting.probing import probe  # noqa: PLC0415 - for doctor alone

    found = probe(subject.path)
    if found.trouble:
        return Check("hooks", FAIL if found.is_broken else WARN, found.trouble, found.hint)
    return Check("hooks", OK, found.said)


def _duration(us: int) -> str:
    minutes, seconds = divmod(us // 1_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def check_retention(subject: Subject) -> Check:
    """Whether texts are kept longer than they should be."""
    with wiring.open_ledger(subject.path, readonly=True, clock=subject.clock) as ledger:
        overdue = ledger.overdue()
    if not overdue:
        return Check("retention", OK, "nothing is kept longer than it should be")
    said = ", ".join(f"{one.kind}s by {one.overdue_us // 3_600_000_000:,} h" for one in overdue)
    return Check(
        "retention", WARN, f"overdue: {said}", "Run `affidavit retain`, or `affidavit serve`."
    )


def check_erasures(subject: Subject) -> Check:
    """Whether what was erased is out of the file."""
    with wiring.open_ledger(subject.path, readonly=True, clock=subject.clock) as ledger:
        is_unfinished = ledger.has_unfinished_erasures()
    if not is_unfinished:
        return Check("erasures", OK, "nothing that was erased is in the file")
    said = "erased texts are in this file, still or again: was a backup restored?"
    return Check("erasures", WARN, said, "Record something, or `affidavit retain`: then they go.")


STAGES: Final[tuple[tuple[Question, ...], ...]] = (
    (check_sqlite, check_folder, check_filesystem, check_space, check_file),
    (check_rights, check_mode),
    (check_ledger,),
    (check_integrity, check_clock, check_retention, check_erasures, check_hooks),
)


def examine(subject: Subject, stages: tuple[tuple[Question, ...], ...] = STAGES) -> list[Check]:
    """Ask every question, stage by stage; what fails in one leaves the next without a ground."""
    found: list[Check] = []
    for stage in stages:
        found += [_ask(question, subject) for question in stage]
        if any(check.status == FAIL for check in found):
            break
    return found


def _ask(question: Question, subject: Subject) -> Check:
    name = question.__name__.removeprefix("check_")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the answer tells of it in full
            return question(subject)
    except AffidavitError as error:
        return Check(name, FAIL, error.message, error.hint, error.code)
    except OSError as error:
        failure = StoreError(f"{subject.path} cannot be looked at ({error.strerror})")
        return Check(name, FAIL, failure.message, "Run as its owner.", failure.code)
