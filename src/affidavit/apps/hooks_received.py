r"""Events that hooks of other users bring to a server: on disk here first, then recorded.

    <length, 4 bytes, big-endian><name>\n<a line of JSON about it>\n<the event>     any number
    +    it is on disk here                          one byte for each
    -    it never will be: whoever sends it lays it aside

Who sends is what the kernel says of the socket's other end; what is recorded of it says so
(`auth` os, and the user in `client`). What an event says is the sender's word, as everywhere.
"""

from __future__ import annotations

import pwd
import re
import socket
import threading
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, Self

from affidavit.apps import wiring
from affidavit.apps.beside import Beside
from affidavit.apps.hook import EVENT_BYTES_MAX, open_spool
from affidavit.apps.hook_sending import KEPT, LOST, REFUSED
from affidavit.apps.peers import PeerServer, receive_message
from affidavit.capture.claude_names import SOURCE
from affidavit.capture.hooks.drain import Drain
from affidavit.capture.hooks.losses import count_lost, find_lost, take_room
from affidavit.capture.hooks.spool import FILE_BYTES, Spool
from affidavit.core.entry import Source

# More than this of one user does not wait here: a sender keeps what is not taken.
WAITING_BYTES_MAX: Final = 1 << 30
_HEAD_BYTES_MAX: Final = 16_384
_PATIENCE_S: Final = 30.0
_RETRY_S: Final = 5.0
_NAME = re.compile(rb"[0-9]{20}-[0-9]{1,10}-[0-9a-f]{8}\Z")
_LOST = re.compile(LOST + rb" ([0-9]{1,9}) ([0-9]{1,13}) ([0-9]{1,13})\Z")


class HooksReceived(Beside):
    """A socket beside a server; `with HooksReceived(ledger, path, allowed, say): serve()`."""

    def __init__(
        self, ledger: str, path: Path, allowed: Collection[int], say: Callable[[str], None]
    ) -> None:
        super().__init__("hooks")
        self._ledger = ledger
        self._spools = {uid: _spool_of(ledger, uid) for uid in allowed}
        self._say = say
        self._came = threading.Event()
        self._came.set()  # what a server before this one left
        # One at once of each user: what waits is counted when a connection begins.
        self._server = PeerServer(path, allowed, self._take_in, say, at_once_max=1)
        self._listening = threading.Thread(target=self._server.run, name="hooks-in", daemon=True)

    def __enter__(self) -> Self:
        super().__enter__()
        self._listening.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._server.stop()
        self._listening.join()
        self._stop.set()
        self._came.set()
        self._thread.join()

    def _take_in(self, connection: socket.socket, uid: int) -> None:
        """Keep what one connection brings."""
        spool = self._spools[uid]
        size = spool.size_bytes()
        while size < WAITING_BYTES_MAX:
            message = receive_message(connection, EVENT_BYTES_MAX + _HEAD_BYTES_MAX, _PATIENCE_S)
            answer = REFUSED
            name, _, rest = message.partition(b"\n")
            head, _, event = rest.partition(b"\n")
            if _NAME.match(name) and len(head) <= _HEAD_BYTES_MAX:
                if lost := _LOST.match(event):
                    _count(spool, *map(int, lost.groups()))
                else:
                    spool.keep(name.decode(), head, event)
                size += len(message) + FILE_BYTES
                self._came.set()
                answer = KEPT
            connection.sendall(answer)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._came.wait()
            self._came.clear()
            if not self._record_all():
                self._stop.wait(_RETRY_S)
                self._came.set()
        self._record_all()

    def _record_all(self) -> bool:
        """Whether nothing waits any more."""
        done = True
        for uid, spool in self._spools.items():
            try:
                self._record(uid, spool)
            except Exception as error:  # noqa: BLE001 - who sends it must not end the recording
                self._say(f"events of user {uid} wait: {error}")
                done = False
        return done

    def _record(self, uid: int, spool: Spool) -> None:
        user = _user(uid)
        sources = {
            "hook": Source("os", f"{SOURCE}@{user}", "hook"),
            "proxy": Source("os", f"affidavit-proxy@{user}", "proxy"),
        }
        with spool.hold(_RETRY_S) as mine, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if mine and (spool.names() or find_lost(spool.folder)):
                Drain(
                    spool,
                    lambda root, channel: wiring.open_ledger(
                        self._ledger, source=sources[channel], project_root=root or None
                    ),
                ).run()


def _count(spool: Spool, events: int, from_ms: int, to_ms: int) -> None:
    """What a user's hooks could not keep; the next that empties the spool makes it an entry."""
    spool.folder.mkdir(0o700, parents=True, exist_ok=True)
    take_room(spool.folder)
    count_lost(spool.folder, from_ms, events)
    count_lost(spool.folder, to_ms, 0)


def _spool_of(ledger: str, uid: int) -> Spool:
    return Spool(open_spool(ledger).folder / "from" / str(uid), is_resent=True)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
