"""One store per file and process, whatever names and handles lead to it.

The key is the file's device and inode: two handles on one file share its connections, its queue and
its locks, also through a link. And before this process forks, every store is at rest with nothing
open; one in memory is copied to the child.
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple
from weakref import WeakSet

from affidavit.errors import StoreError
from affidavit.stores.sqlite import files
from affidavit.stores.sqlite.store import SqliteStore


class _Key(NamedTuple):
    device: int
    inode: int
    readonly: bool


class _Shared:
    """A store and how many handles hold it."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.handles = 0


_lock = threading.RLock()
_open: dict[_Key, _Shared] = {}
_in_memory: WeakSet[SqliteStore] = WeakSet()


def open_store(path: str, *, readonly: bool = False, create: bool = True) -> SqliteStore:
    """The store of a file, made with the file where there is none and `create` allows it."""
    if path == files.MEMORY:
        with _lock:
            store = SqliteStore(path, readonly=readonly)
            _in_memory.add(store)
        return store
    # SQLite names the -wal after the path, so a link must lead to the same name.
    target = os.path.realpath(path)
    files.check_name(target)
    with _lock:
        made = _prepare(target, readonly=readonly, create=create)
        status = files.status(target)
        key = _Key(status.st_dev, status.st_ino, readonly)
        shared = _open.get(key)
        if shared is None:
            if not readonly:
                files.check_only_name(target, status)
                files.keep_to_owner(target, status)
            try:
                shared = _open[key] = _Shared(SqliteStore(_name(key, target), readonly=readonly))
            except BaseException:
                if made:
                    files.remove_if_empty(target)
                raise
        shared.handles += 1
        return shared.store


def is_open(path: str) -> bool:
    """Whether this process has the file open as a ledger."""
    try:
        status = files.status(path)
    except (OSError, StoreError):
        return False
    with _lock:
        return any(key[:2] == (status.st_dev, status.st_ino) for key in _open)


def close_store(store: SqliteStore) -> None:
    """Give a handle back; the last one closes the store."""
    with _lock:
        for key, shared in _open.items():
            if shared.store is store:
                shared.handles -= 1
                if shared.handles == 0:
                    del _open[key]
                    store.close()
                return
    store.close()


def _name(key: _Key, path: str) -> str:
    """The name to open a file by: the one by which this process has it open already, if any."""
    names = [shared.store.location for other, shared in _open.items() if other[:2] == key[:2]]
    return names[0] if names else path


def _prepare(path: str, *, readonly: bool, create: bool) -> bool:
    """See that there is a file; True if this made it."""
    if files.exists(path):
        return False
    if readonly or not create:
        raise StoreError(
            f"there is no ledger at {path}",
            hint="Create one with `affidavit init`, or check the path.",
        )
    files.create(path)
    return True


def _stores() -> list[SqliteStore]:
    return [*(shared.store for shared in _open.values()), *_in_memory]


def _before_fork() -> None:
    _lock.acquire()
    for store in _stores():
        store.before_fork()


def _after_fork_in_parent() -> None:
    for store in _stores():
        store.after_fork_in_parent()
    _lock.release()


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603 - the inherited lock belongs to the parent's thread
    for store in _stores():
        store.after_fork_in_child()
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
