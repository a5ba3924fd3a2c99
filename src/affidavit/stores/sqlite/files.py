"""The ledger's file: making it, where it lies, and who in this process has it open.

POSIX drops all of a process's locks on a file when any descriptor of it is closed. So while a
ledger is open, nothing in this process may open the database, its -wal or its -shm except SQLite
itself. This module never opens an existing file: it looks with `stat` and creates with O_EXCL.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from affidavit.errors import ConflictError, StoreError

MEMORY = ":memory:"

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"}


def create(path: str) -> None:
    """Make an empty file only its owner can read, and its folder; leave an existing one."""
    target = Path(path)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        if not target.parent.is_dir():
            raise StoreError(
                f"{target.parent} is not a folder", hint="Choose another path."
            ) from None
        return
    except OSError as error:
        raise unavailable(path, error) from None
    os.close(descriptor)
    sync_folder(target.parent)


def remove_if_empty(path: str) -> None:
    """Take back a file that `create` made and nothing was written to."""
    with contextlib.suppress(OSError):
        if Path(path).stat().st_size == 0:
            Path(path).unlink()


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exists(path: str) -> bool:
    """Whether there is anything at this path; a folder is refused."""
    try:
        if Path(path).is_dir():
            raise StoreError(f"{path} is a folder, not a ledger", hint="Name a file.")
        return Path(path).exists()
    except OSError as error:
        raise unavailable(path, error) from None


def unavailable(path: str, error: OSError) -> StoreError | ConflictError:
    """The operating system refused."""
    if error.errno == errno.EROFS:
        return ConflictError(f"{path} is on a read-only disk", code="ERR_READONLY")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"the disk with {path} is full", code="ERR_STORE_FULL")
    reason = os.strerror(error.errno) if error.errno else str(error)
    return StoreError(
        f"{path} cannot be opened ({reason})",
        hint="Check the path and this user's rights, or name another with --ledger.",
    )


def find_network_filesystem(path: str, mounts: str = "/proc/self/mounts") -> str | None:
    """The type of the network filesystem a path is on; None where it is local or cannot be told."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="replace").splitlines()
        target = Path(path).resolve()
    except OSError:
        return None
    best, kind = -1, ""
    for fields in (line.split() for line in lines):
        if len(fields) < 3:
            continue
        mount = Path(fields[1].replace("\\040", " "))
        if target.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), fields[2]
    return kind if kind in _NETWORK else None
