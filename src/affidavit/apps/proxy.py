"""A recording proxy in front of an MCP server over stdio: bytes pass as they are, copies are read.

What passes never waits for the record, and fails for no reason of ours: its copy goes to a thread
that keeps calls in the spool that hooks use, and one process brings both into the ledger, in their
order. What was not kept is counted. Who is killed may lose what passed in that moment.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from affidavit.apps.hook import find_goal, project_root, start_drain
from affidavit.capture.claude_names import RUN_VARIABLE
from affidavit.capture.hooks.losses import count_lost, take_room
from affidavit.capture.proxy.frames import Conversation, Lines

_CHUNK: Final = 1 << 16
_KEEP_S_MAX: Final = 10.0
CHANNEL: Final = "proxy"
# A command that starts a server of ours.
_OURS: Final = re.compile(r"(?:^|[\s/])affidavit(?:\s|$)")


class Piece(NamedTuple):
    """Bytes that passed, when, and which way."""

    is_of_client: bool
    at_ms: int
    data: bytes


class Keeper(threading.Thread):
    """Reads copies of what passed, and keeps the tool calls among it."""

    def __init__(self, ledger: str, called: str, *, may_be_ours: bool = False) -> None:
        super().__init__(daemon=True)
        self.pieces: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._goal = find_goal(["--ledger", ledger])
        self._spool = self._goal.spool
        self._lines = {True: Lines(), False: Lines()}
        self._conversation = Conversation(may_be_ours=may_be_ours)
        self._head = json.dumps({"root": project_root(), "channel": CHANNEL}).encode()
        self._own = {"proxy": os.urandom(16).hex(), "called": called}
        if run := os.environ.get(RUN_VARIABLE):
            self._own["session_id"] = run
        self._lost = 0
        self._lost_since_ms = 0
        self._kept = False

    def run(self) -> None:
        """Until nothing passes any more."""
        with contextlib.suppress(OSError):
            self._spool.folder.mkdir(0o700, parents=True, exist_ok=True)
            take_room(self._spool.folder)
        while (piece := self.pieces.get()) is not None:
            try:
                for told in self._read(piece.is_of_client, piece.data):
                    self._keep({**told, "at_ms": piece.at_ms})
            except Exception as error:  # noqa: BLE001 - the next may be read again
                self._fail(error)
        for told in self._conversation.left_open():
            self._keep(told)
        if self._kept or self._lost:
            self._keep({"kind": "ended"})
        if self._lost:
            self._leave_count()

    def _leave_count(self) -> None:
        """Whoever empties the spool next tells what this proxy lost, for it cannot any more."""
        now_ms, folder = time.time_ns() // 1_000_000, self._spool.folder
        with contextlib.suppress(OSError):
            count_lost(folder, self._lost_since_ms, self._lost, CHANNEL)
            count_lost(folder, now_ms, 0, CHANNEL)

    def _read(self, is_of_client: bool, data: bytes) -> Iterator[dict[str, Any]]:
        lines = self._lines[is_of_client]
        talk = self._conversation
        read = talk.from_client if is_of_client else talk.from_server
        for line in lines.take(data):
            yield from read(line)
        if missed := lines.passed_over + talk.unread:
            self._lose(missed)
            lines.passed_over = talk.unread = 0

    def _keep(self, told: dict[str, Any]) -> None:
        try:
            if self._lost:
                lost = {"kind": "lost", "count": self._lost, "from_ms": self._lost_since_ms}
                self._put(lost)
                self._lost = 0
            self._put(told)
            self._kept = True
            start_drain(self._goal)
        except Exception as error:  # noqa: BLE001 - what passes must not fail for its record
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._lose(1)
        with contextlib.suppress(Exception):
            self._spool.note(f"proxy: {type(error).__name__}: {error}")

    def _put(self, told: dict[str, Any]) -> None:
        self._spool.put(self._head, json.dumps({**told, **self._own}).encode())

    def _lose(self, count: int) -> None:
        if not self._lost:
            self._lost_since_ms = time.time_ns() // 1_000_000
        self._lost += count


def run(ledger: str, called: str, command: list[str]) -> int:
    """Be the server that a client started; the exit code is that of the real one."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: server.send_signal(got))
    may_be_ours = any(_OURS.search(word) for word in command)
    keeper = Keeper(ledger, called, may_be_ours=may_be_ours)
    keeper.start()
    asks = threading.Thread(target=_pass_on, args=(keeper, True, 0, server.stdin), daemon=True)
    answers = threading.Thread(target=_pass_on, args=(keeper, False, server.stdout, 1), daemon=True)
    asks.start()
    answers.start()
    answers.join()
    code = server.wait()
    keeper.pieces.put(None)
    keeper.join(_KEEP_S_MAX)
    return code if code >= 0 else 128 - code


def _pass_on(keeper: Keeper, is_of_client: bool, source: Any, target: Any) -> None:
    """Bytes as they come; at the end of one side the other's end."""
    ends = [one if isinstance(one, int) else one.fileno() for one in (source, target)]
    with contextlib.suppress(OSError):
        while data := os.read(ends[0], _CHUNK):
            # The copy first: an answer may be read before this goes on, and comes behind it so.
            keeper.pieces.put(Piece(is_of_client, time.time_ns() // 1_000_000, data))
            _write(ends[1], data)
    # The copy's last line may have no end.
    keeper.pieces.put(Piece(is_of_client, time.time_ns() // 1_000_000, b"\n"))
    for end in (source, target):
        if not isinstance(end, int):
            with contextlib.suppress(OSError):
                end.close()


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def leave(code: int) -> None:
    """End at once: a thread may still wait for a client that says nothing more."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)
