"""A Unix socket whose callers are known by the kernel.

Who connects is asked of the kernel (SO_PEERCRED) before a byte is read; a user who is not on the
list is hung up on. A few connections of each user are served at once, so that nobody who holds
them keeps another user waiting.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from affidavit.apps.durable_files import told
from affidavit.errors import StoreError, invalid

AT_ONCE_MAX: Final = 8
_WAITING_MAX: Final = 128
# Connections of one user, served or waiting their turn; more are hung up on.
_HELD_MAX: Final = 64
_SAID_AGAIN_S: Final = 60.0
_UCRED: Final = struct.Struct("3i")  # pid, uid, gid

# Before each message stands its length in so many bytes, big-endian.
LENGTH_BYTES: Final = 4
# One connection, and the user at its other end.
Serve = Callable[[socket.socket, int], None]


class PeerServer:
    """Listens until it is stopped; each connection has a thread of its own."""

    def __init__(
        self,
        path: Path,
        allowed: Collection[int],
        serve: Serve,
        say: Callable[[str], None],
        at_once_max: int = AT_ONCE_MAX,
    ) -> None:
        self._path = path
        self._serve_one = serve
        self._say = say
        self._turns = {uid: threading.BoundedSemaphore(at_once_max) for uid in allowed}
        self._places = {uid: threading.BoundedSemaphore(_HELD_MAX) for uid in allowed}
        self._refused_at: dict[int, float] = {}
        self._listener = _listen(path)
        self._stopped = threading.Event()

    def run(self) -> None:
        """Serve until `stop`."""
        while not self._stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:  # the listener was closed, or no descriptor is left for a moment
                self._stopped.wait(0.05)
                continue
            uid = find_peer(connection)
            if uid not in self._places:
                self._say_refused(uid)
                connection.close()
                continue
            if not self._places[uid].acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection, uid), daemon=True).start()

    def stop(self) -> None:
        """Let `run` return, and take the socket away."""
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _say_refused(self, uid: int) -> None:
        """Anybody may knock without end: that must not fill a log."""
        now = time.monotonic()
        if now - self._refused_at.get(uid, -_SAID_AGAIN_S) >= _SAID_AGAIN_S:
            self._refused_at[uid] = now
            self._say(f"refused user {uid}")

    def _serve(self, connection: socket.socket, uid: int) -> None:
        try:
            with (
                connection,
                self._turns[uid],
                contextlib.suppress(OSError, EOFError, ValueError),
            ):
                self._serve_one(connection, uid)
        finally:
            self._places[uid].release()


def find_peer(connection: socket.socket) -> int:
    """The user at the other end, as the kernel has it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(raw)
    return int(uid)


def find_user(name: str) -> int:
    """The number of a user who is named, or numbered, in a list of those who may connect."""
    if name.isdecimal():
        return int(name[:10])
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise invalid("allow", f"there is no user {name!r:.100}") from None


def receive_message(connection: socket.socket, bytes_max: int, patience_s: float) -> bytes:
    """One message; too long is a ValueError, too late an OSError, cut short an EOFError."""
    deadline = time.monotonic() + patience_s
    length = int.from_bytes(_receive_exactly(connection, LENGTH_BYTES, deadline), "big")
    if length > bytes_max:
        raise ValueError(length)
    return _receive_exactly(connection, length, deadline)


def _receive_exactly(connection: socket.socket, length: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < length:
        # One byte a second must not hold the connection for ever.
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        part = connection.recv(min(length - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _listen(path: Path) -> socket.socket:
    if not hasattr(socket, "SO_PEERCRED"):
        raise StoreError(
            "this system does not tell who is at the other end of a socket",
            hint="This needs Linux.",
        )
    with told(path):
        if path.is_socket() and not _is_answered(path):
            path.unlink()  # left behind by a server that was killed
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            # Everybody may knock: who is let in is decided by the kernel's word, not by a mode.
            os.chmod(path, 0o666)  # noqa: PTH101, S103 - see above
            listener.listen(_WAITING_MAX)
        except BaseException:
            listener.close()
            raise
    return listener


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True
