"""Events on disk until the ledger has them. Loads nothing but the interpreter's own modules.

<folder>/events/<ns>-<pid>-<random>    one event: a line of JSON about it, then what came in
<folder>/refused/                      events that no ledger could take, for a person to look at
<folder>/drain.lock                    held by the one process that empties the spool
<folder>/hooks.log                     what went wrong
<folder>/claims/                       when something was last done that is done seldom
<folder>/answered                      the newest question whether events get through
<folder>/lost                          how many events could not be kept (`losses`)
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

LOG_BYTES_MAX: Final = 1_000_000
# A file that was begun so long ago will not be finished: its writer was killed.
UNFINISHED_S: Final = 60
# A file takes its blocks, however short.
FILE_BYTES: Final = 4_096
_OWNER_ONLY: Final = 0o600
_FRESH: Final = ".part"
# Whatever else lies among the events is not ours.
_NAME: Final = re.compile(r"[0-9]{20}-")


def fresh_name() -> str:
    """A name that no other event has, and that sorts behind those before."""
    return f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}"


class Spool:
    """One folder of events; `is_resent`: whoever left one half-written will bring it again."""

    def __init__(self, folder: Path, *, is_resent: bool = False) -> None:
        self.folder = folder
        self._is_resent = is_resent
        self._events = folder / "events"
        self._refused = folder / "refused"

    def put(self, head: bytes, event: bytes) -> str:
        """Keep an event; it is on disk when this returns."""
        name = fresh_name()
        self.keep(name, head, event)
        return name

    def keep(self, name: str, head: bytes, event: bytes) -> None:
        """Keep an event that has its name already; doing it twice is doing it once."""
        fresh = self._events / f"{name}.{os.urandom(4).hex()}{_FRESH}"
        self._events.mkdir(0o700, parents=True, exist_ok=True)
        try:
            _write(fresh, head + b"\n" + event)
        except OSError:
            # Whoever called counts it as lost; a half of it would be counted again.
            fresh.unlink(missing_ok=True)
            raise
        fresh.rename(self._events / name)
        _sync(self._events)

    def size_bytes(self) -> int:
        """How much of the disk is taken by what waits or was laid aside."""
        return sum(
            _size_of(path)
            for folder in (self._events, self._refused)
            if folder.is_dir()
            for path in folder.iterdir()
        )

    def names(self) -> list[str]:
        """Events that wait, the oldest first."""
        return sorted(name for name in self._listed() if not name.endswith(_FRESH))

    def _listed(self) -> list[str]:
        try:
            return [path.name for path in self._events.iterdir() if _NAME.match(path.name)]
        except FileNotFoundError:
            return []

    def read(self, name: str) -> tuple[bytes, bytes]:
        """What is known of an event, and what came in."""
        head, _, event = (self._events / name).read_bytes().partition(b"\n")
        return head, event

    def remove(self, names: list[str]) -> None:
        """The ledger has these."""
        for name in names:
            (self._events / name).unlink(missing_ok=True)

    def refuse(self, name: str) -> None:
        """Lay an event aside."""
        self._refused.mkdir(0o700, parents=True, exist_ok=True)
        (self._events / name).rename(self._refused / name)

    def refused(self) -> list[str]:
        """Events that were laid aside."""
        try:
            return sorted(path.name for path in self._refused.iterdir())
        except FileNotFoundError:
            return []

    def find_unfinished(self, now_s: float) -> list[str]:
        """What killed hooks left half-written, to be counted and then laid aside."""
        fresh = [name for name in sorted(self._listed()) if name.endswith(_FRESH)]
        if self._is_resent:
            self.remove([name for name in fresh if self._is_left(name, now_s)])
            return []
        return [name for name in fresh if now_s - int(name.split("-")[0]) / 1e9 > UNFINISHED_S]

    def _is_left(self, name: str, now_s: float) -> bool:
        """Whether nobody writes it any more; what it is named after may be long ago."""
        try:
            return now_s - (self._events / name).stat().st_mtime > UNFINISHED_S
        except FileNotFoundError:
            return False

    @contextlib.contextmanager
    def hold(self, wait_s: float = 0.0) -> Iterator[bool]:
        """Be the one who empties the spool; False where somebody else is."""
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        path = self.folder / "drain.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        try:
            yield _lock(descriptor, wait_s)
        finally:
            os.close(descriptor)

    def note(self, said: str) -> None:
        """Write into the log what went wrong."""
        path = self.folder / "hooks.log"
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {said}"
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > LOG_BYTES_MAX:
                path.rename(path.with_suffix(".log.1"))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _OWNER_ONLY)
        try:
            os.write(descriptor, (" ".join(line.split())[:2000] + "\n").encode("utf-8", "replace"))
        finally:
            os.close(descriptor)

    def answer(self, name: str) -> None:
        """Say that an event went all the way."""
        (self.folder / "answered").write_text(name, encoding="utf-8")

    def answered(self) -> str:
        """The event last answered so."""
        try:
            return (self.folder / "answered").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def last_note(self) -> str:
        """The newest line of the log."""
        try:
            text = (self.folder / "hooks.log").read_text(encoding="utf-8")
            return text.rstrip("\n").rpartition("\n")[2]
        except FileNotFoundError:
            return ""

    def claim(self, name: str, every_s: float) -> bool:
        """Whether a thing may be done now that is done once in so many seconds."""
        now = time.time()

        def is_free(before: bytes) -> bool:
            return not before or not 0 <= now - float(before) < every_s

        return self._claim(name, f"{now:.3f}".encode(), is_free)

    def claim_once(self, name: str, turn: str) -> bool:
        """Whether a thing may be done in this turn that is done once a turn."""
        return self._claim(name, turn.encode(), lambda before: before != turn.encode())

    def _claim(self, name: str, mark: bytes, is_free: Callable[[bytes], bool]) -> bool:
        path = self.folder / "claims" / name
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not is_free(os.read(descriptor, 1_000)):
                return False
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, mark, 0)
        finally:
            os.close(descriptor)
        return True


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size + FILE_BYTES
    except FileNotFoundError:  # it has just been recorded
        return 0


def _lock(descriptor: int, wait_s: float) -> bool:
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        else:
            return True


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
