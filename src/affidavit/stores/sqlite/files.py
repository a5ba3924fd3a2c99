"""The ledger's file: making it, where it lies, and who in this process has it open.

POSIX drops all of a process's locks on a file when any descriptor of it is closed. So while a
ledger is open, nothing in this process may open the database, its -wal or its -shm except SQLite
itself. This module never opens an existing file: it looks with `stat` and creates with O_EXCL.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from affidavit.errors import StoreError
from affidavit.stores.sqlite.failures import not_a_ledger, unavailable

MEMORY = ":memory:"

_BESIDE = ("-wal", "-shm", "-journal")
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"}


def create(path: str) -> None:
    """Make an empty file only its owner can read, and its folder; leave an existing one."""
    target = Path(path)
    try:
        make_folder(target.parent)
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        sync_folder(target.parent)
    except FileExistsError:
        if not target.parent.is_dir():
            raise StoreError(
                f"{target.parent} is not a folder", hint="Choose another path."
            ) from None
        return
    except OSError as error:
        raise unavailable(path, error) from None


def keep_to_owner(path: str, status: os.stat_result) -> None:
    """An empty file becomes a ledger: nobody else reads it, as if it had been made here."""
    if status.st_size == 0:
        with contextlib.suppress(OSError):
            Path(path).chmod(0o600)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and have the disk remember each name."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def remove_if_empty(path: str) -> None:
    """Take back a file that `create` made and nothing was written to."""
    with contextlib.suppress(OSError):
        if Path(path).stat().st_size == 0:
            Path(path).unlink()


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power cut."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # a folder that may be written but not read cannot be synced by name
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_name(path: str) -> None:
    """Refuse a file that belongs to another database.

    To open and close the -shm of an open ledger would drop SQLite's locks on it.
    """
    if path.endswith(_BESIDE):
        raise StoreError(
            f"{path} is not a ledger: it has the name of a file that SQLite keeps beside one",
            code="ERR_NOT_A_LEDGER",
            hint="Name the ledger itself, or choose a name that does not end like this.",
        )


def check_only_name(path: str, status: os.stat_result) -> None:
    """Refuse to write a file that has another name too.

    SQLite names the -wal after the path: who comes by the other name looks for the newest facts
    in another place, and writes over them.
    """
    if status.st_nlink > 1:
        raise StoreError(
            f"{path} is one of {status.st_nlink} names (hard links) of one file",
            hint="Remove the others, or copy the file; use a symbolic link for a second name.",
        )


def status(path: str) -> os.stat_result:
    """What the operating system says of a file that is there."""
    try:
        return Path(path).stat()
    except OSError as error:
        raise unavailable(path, error) from None


def identity(path: str) -> tuple[int, int]:
    """Which file a path leads to: its device and inode; (0, 0) where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - once a commit
    except OSError:
        return (0, 0)
    return status.st_dev, status.st_ino


def is_cut(path: str, page_bytes: int) -> bool:
    """Whether a database ends inside a page, which SQLite takes for zeros, or for no database.

    One with a -wal is not judged: what it lacks may be there.
    """
    try:
        if Path(f"{path}-wal").stat().st_size > 0:
            return False
    except OSError:
        pass
    return status(path).st_size % page_bytes != 0


def exists(path: str) -> bool:
    """Whether there is a file at this path; what is no ordinary file is refused.

    A pipe would be waited for, and a device, which has no size either, taken for an empty ledger.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise StoreError(f"{path} is a folder, not a ledger", hint="Name a file.")
        if not target.exists():
            return False
        if not target.is_file():
            raise not_a_ledger(path, "it is a device, a pipe or a socket")
    except OSError as error:
        raise unavailable(path, error) from None
    return True


def find_network_filesystem(path: str, mounts: str = "/proc/self/mounts") -> str | None:
    """The type of the network filesystem a path is on; None where it is local or cannot be told."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="replace").splitlines()
        target = Path(path).resolve()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links
        return None
    best, kind = -1, ""
    for fields in (line.split() for line in lines):
        if len(fields) < 3:
            continue
        mount = Path(fields[1].replace("\\040", " "))
        if target.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), fields[2]
    return kind if kind in _NETWORK else None
