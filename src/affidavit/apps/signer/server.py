"""The signer's process: a Unix socket, whose callers are known by the kernel.

Who connects is asked of the kernel (SO_PEERCRED) before a byte is read; a user who is not on the
list is hung up on. A few connections are served at once, each for a few seconds at most.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from affidavit.apps.durable_files import told
from affidavit.apps.signer.desk import Desk
from affidavit.apps.signer.messages import encode_error, read_question, receive, send
from affidavit.errors import AffidavitError, StoreError

AT_ONCE_MAX: Final = 8
_WAITING_MAX: Final = 128
_UCRED: Final = struct.Struct("3i")  # pid, uid, gid


class SignerServer:
    """Listens until it is stopped."""

    def __init__(
        self, path: Path, allowed: Collection[int], desk: Desk, say: Callable[[str], None]
    ) -> None:
        self._path = path
        self._allowed = frozenset(allowed)
        self._desk = desk
        self._say = say
        self._slots = threading.BoundedSemaphore(AT_ONCE_MAX)
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
            if find_peer(connection) not in self._allowed:
                self._say(f"refused user {find_peer(connection)}")
                connection.close()
                continue
            self._slots.acquire()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def stop(self) -> None:
        """Let `run` return, and take the socket away."""
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError, EOFError, ValueError):
                send(connection, self._answer(receive(connection)))
        finally:
            self._slots.release()

    def _answer(self, data: bytes) -> dict[str, Any]:
        question = read_question(data)
        try:
            return self._desk.answer(question)
        except AffidavitError as error:
            self._say(f"refused: {error.message}")
            return encode_error(error)


def find_peer(connection: socket.socket) -> int:
    """The user at the other end, as the kernel has it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(raw)
    return int(uid)


def _listen(path: Path) -> socket.socket:
    if not hasattr(socket, "SO_PEERCRED"):
        raise StoreError(
            "this system does not tell who is at the other end of a socket",
            hint="The signer needs Linux.",
        )
    with told(path):
        if path.is_socket() and not _is_answered(path):
            path.unlink()  # left behind by a signer that was killed
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
