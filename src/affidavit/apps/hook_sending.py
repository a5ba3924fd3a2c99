"""Brings what hooks left in a spool to a server of another user; hooks start it, and it ends.

    python -m affidavit.apps.hook_sending SOCKET

An event leaves the spool when the server says that it is on its disk. While there is no server,
everything waits for the next hook. Loads nothing but the interpreter's own modules.
"""

from __future__ import annotations

import socket
import sys
import time
from typing import Final

from affidavit.apps.hook import find_goal
from affidavit.apps.hook_drain import LINGER_S, empty, stay
from affidavit.capture.hooks.losses import find_lost, settle_lost
from affidavit.capture.hooks.spool import Spool, fresh_name

LENGTH_BYTES: Final = 4
KEPT: Final = b"+"
REFUSED: Final = b"-"
# What a server is sent for an event whose writer was killed: no event, so that it counts it.
HALF_WRITTEN: Final = b"half-written"
# And for what hooks here could not keep: how many events, and between which times.
LOST: Final = b"lost"
_PATIENCE_S: Final = 30.0
_PROBE: Final = b"AffidavitProbe"


def send(path: str, spool: Spool, *, wait_s: float = 0.0, linger_s: float = 0.0) -> int | None:
    """Empty a spool; None where another process is doing it."""
    with spool.hold(wait_s) as mine:
        if not mine:
            return None
        return empty(lambda: _send_waiting(path, spool), linger_s)


def _send_waiting(path: str, spool: Spool) -> int:
    lost = spool.find_unfinished(time.time())
    names, unkept = spool.names(), find_lost(spool.folder)
    if not names and not lost and unkept is None:
        return 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        connection.connect(path)
        for name in lost:
            _post(connection, name.partition(".")[0], b"{}", HALF_WRITTEN)
            spool.refuse(name)
        if unkept is not None:
            said = b"%s %d %d %d" % (LOST, *unkept)
            if _post(connection, fresh_name(), b"{}", said):
                settle_lost(spool.folder, unkept)
        for name in names:
            head, event = spool.read(name)
            if _post(connection, name, head, event):
                spool.remove([name])
                if _PROBE in event:
                    spool.answer(name)
            else:
                spool.refuse(name)
                spool.note(f"{name} was refused by the server at {path}")
    return len(names) + len(lost)


def _post(connection: socket.socket, name: str, head: bytes, event: bytes) -> bool:
    """Whether the server has it on disk; False where it will never take it."""
    data = b"\n".join((name.encode(), head, event))
    try:
        connection.sendall(len(data).to_bytes(LENGTH_BYTES, "big") + data)
        answer = connection.recv(1)
    except (BrokenPipeError, ConnectionResetError):
        answer = b""
    if answer not in (KEPT, REFUSED):
        raise ConnectionError("the server hung up: is this user on its list, is its disk full?")
    return answer == KEPT


def main(path: str) -> None:
    """Bring what waits to the socket."""
    spool = find_goal(["--to", path]).spool
    stay(spool, lambda: send(path, spool, linger_s=LINGER_S), f"sending to {path}")


if __name__ == "__main__":
    main(sys.argv[1])
