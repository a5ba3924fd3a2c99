"""Files that survive a power cut: written whole, put in place by rename; and locks between users.

Every refusal of the operating system leaves here as an error of this package.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from affidavit.errors import AffidavitError, StoreError

OWNER_ONLY: Final = 0o600


@contextmanager
def hold_lock(path: Path, wait_s: float, doing: str) -> Iterator[None]:
    """A file that only one process holds at a time; what it does is said to those who wait."""
    with told(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
    try:
        _lock(descriptor, path, wait_s, doing)
        yield
    finally:
        # Said aloud: a child forked meanwhile may hold a copy of the descriptor.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _lock(descriptor: int, path: Path, wait_s: float, doing: str) -> None:
    """Take the lock, waiting with jitter; one who was stopped while holding it is waited for."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreError(
                    f"another process has been {doing} for {wait_s:.0f} s ({path})",
                    code="ERR_STORE_LOCKED",
                    hint="Look for a process that was stopped; try again.",
                ) from None
        except OSError as error:
            raise refused(path, error) from None
        else:
            return
        time.sleep(random.uniform(0.0005, 0.005))  # noqa: S311 - jitter, not a secret


def put_in_place(path: Path, fresh: Path, data: bytes, mode: int = OWNER_ONLY) -> None:
    """Have a file hold these bytes: a power cut leaves the ones before, or these.

    `fresh` is where they are written first, on the same disk. The folder is the caller's to sync.
    """
    with told(path):
        write_whole(fresh, data, os.O_TRUNC, mode)
        os.replace(fresh, path)  # noqa: PTH105 - beside the other system calls, in one manner


def write_whole(path: Path, data: bytes, how: int, mode: int = OWNER_ONLY) -> None:
    """Write a file to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, mode)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What the operating system refuses, as an error of ours."""
    try:
        yield
    except OSError as error:
        raise refused(path, error) from None


def refused(path: Path, error: OSError) -> AffidavitError:
    """The error for one refusal."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"the disk with {path} is full", code="ERR_STORE_FULL", hint="Free space, try again."
        )
    return StoreError(
        f"{path} cannot be used ({error.strerror or error})",
        hint="Check this user's rights there, or choose another place.",
    )
