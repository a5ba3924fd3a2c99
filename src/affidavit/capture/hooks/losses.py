"""How many events could not be kept, on disk even where the disk has no room left.

<folder>/lost    three numbers in room that was taken in time: how many, and the first and last time

Each channel has its place in it.

What a hook cannot keep it counts here, in place; whoever empties the spool makes it an entry.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_NAME: Final = "lost"
_HOOKS: Final = "hook"
_PLACES: Final = {_HOOKS: 0, "proxy": 1_024}
_PLACE_BYTES: Final = 200
_ROOM: Final = 4_096
_OWNER_ONLY: Final = 0o600


class Losses(NamedTuple):
    """How many events were lost, and between which times."""

    events: int
    from_ms: int
    to_ms: int


_NONE: Final = Losses(0, 0, 0)


def take_room(folder: Path) -> None:
    """Have room to count in, before it is needed."""
    path = folder / _NAME
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size >= _ROOM:
            return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
    try:
        if os.fstat(descriptor).st_size < _ROOM:
            os.pwrite(descriptor, b" " * _ROOM, 0)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def count_lost(folder: Path, at_ms: int, count: int = 1, channel: str = _HOOKS) -> None:
    """One more event could not be kept."""
    with _opened(folder) as descriptor:
        known = _read(descriptor, channel)
        first = min(known.from_ms, at_ms) if known.events else at_ms
        _write(descriptor, channel, Losses(known.events + count, first, max(known.to_ms, at_ms)))


def find_lost(folder: Path, channel: str = _HOOKS) -> Losses | None:
    """What was lost and is no entry yet."""
    try:
        with _opened(folder) as descriptor:
            known = _read(descriptor, channel)
    except FileNotFoundError:
        return None
    return known if known.events else None


def settle_lost(folder: Path, told: Losses, channel: str = _HOOKS) -> None:
    """These are an entry now; what was lost since still counts."""
    with _opened(folder) as descriptor:
        known = _read(descriptor, channel)
        left = known.events - told.events
        _write(descriptor, channel, Losses(left, told.to_ms, known.to_ms) if left > 0 else _NONE)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder / _NAME, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _read(descriptor: int, channel: str) -> Losses:
    words = os.pread(descriptor, _PLACE_BYTES, _PLACES[channel]).split()
    try:
        count, first, last = map(int, words)
    except ValueError:
        return _NONE
    return Losses(count, first, last) if count > 0 else _NONE


def _write(descriptor: int, channel: str, losses: Losses) -> None:
    text = f"{losses.events} {losses.from_ms} {losses.to_ms}"
    os.pwrite(descriptor, text.encode().ljust(_PLACE_BYTES), _PLACES[channel])
    os.fsync(descriptor)
