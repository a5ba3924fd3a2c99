"""Group commit: threads that call at once share one commit, and each waits for its own fact.

A caller that finds no leader becomes it: it drains the queue, has every request run in one
transaction, and hands over to the first one still waiting. A leader waits for nothing but the write
lock and the disk.

Threads take turns in the interpreter, so waking callers while a leader works only makes it wait for
its turn. Those whose fact is on disk are therefore held until the next leader waits itself (for the
lock or the disk: `let_go`), or there is none; and they go one by one, each waking the next as it
leaves. Nobody is held behind a request that may take long.

A signal may raise in any caller at any line, in a `finally` too. So leadership is an identity,
given up in a `finally` that was entered before it could be taken; what must happen is written so
that it can happen twice, and is begun again when it is interrupted, in place: to enter a function
that would do it is a line where a signal may raise. And requests of others that were not run go
back into the queue.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from affidavit.errors import AffidavitError, StoreError

BATCH_MAX = 1_000
# What nobody waits for is kept so far while the store fails, and no further.
DEFERRED_MAX = 10_000


class Request:
    """One caller's unit of work and, later, its outcome."""

    __slots__ = (
        "alone", "awake", "clock", "deferred", "done", "error", "quick", "result", "since", "unit",
        "wake",
    )  # fmt: skip

    def __init__(
        self,
        unit: Callable[[Any], Any],
        clock: Callable[[], int],
        *,
        deferred: bool = False,
        alone: bool = False,
        quick: bool = False,
    ) -> None:
        self.unit = unit
        self.alone = alone
        # So short that others may be held until it is done.
        self.quick = quick
        self.clock = clock
        # Nobody waits for it.
        self.deferred = deferred
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.wake: threading.Lock | None = None
        # Was woken, or waits no longer.
        self.awake = False
        self.since = time.monotonic()

    def fail(self, error: BaseException) -> None:
        """Give a caller an error of its own: what several threads raise must not be one object."""
        if isinstance(error, AffidavitError):
            error = type(error)(error.message, code=error.code, hint=error.hint, **error.details)
        self.error, self.done = error, True

    def begin_again(self) -> None:
        """What a first run said is undone."""
        self.result, self.error, self.done = None, None, False

    def succeed(self) -> None:
        """The fact is on disk."""
        self.error, self.done = None, True

    def wake_up(self) -> None:
        """Let the caller go on; a second time changes nothing."""
        if self.wake is not None and not self.awake:
            with contextlib.suppress(RuntimeError):
                self.wake.release()
        self.awake = True

    def answer(self) -> Any:
        """The outcome, as the caller gets it."""
        if self.error is not None:
            raise self.error
        return self.result


class CommitQueue:
    """Callers in, batches out, one at a time."""

    def __init__(self, run_batch: Callable[[Sequence[Request]], None]) -> None:
        self._run_batch = run_batch
        self._mutex = threading.Lock()
        self._waiting: deque[Request] = deque()
        self._later: deque[Request] = deque()
        # Settled and not yet woken: held while a leader works, then going one by one.
        self._held: list[Request] = []
        self._going: deque[Request] = deque()
        self._leader: Request | None = None

    @property
    def waiting_count(self) -> int:
        """How many callers wait for a commit."""
        return len(self._waiting)

    def defer(self, request: Request) -> None:
        """Let a request go with the next commit."""
        with self._mutex:
            self._later.append(request)

    def flush(self) -> None:
        """Commit what was deferred, where nothing has taken it along."""
        if self._later:
            self.submit(Request(lambda tx: tx.size(), self._later[0].clock))

    def submit(self, request: Request) -> Any:
        """Have a request committed, with whatever others wait, and return its answer."""
        try:
            with self._mutex:
                if self._leader is None:
                    self._leader = request
                else:
                    request.wake = threading.Lock()
                    request.wake.acquire()
                    self._waiting.append(request)
            if request.wake is not None:
                request.wake.acquire()
            if self._leader is request and not request.done:
                self._lead(request)
        finally:
            try:
                self._leave(request)
            except BaseException:
                self._leave(request)
                raise
        return request.answer()

    def _lead(self, own: Request) -> None:
        batch = [own]
        try:
            with self._mutex:
                while self._waiting and len(batch) < BATCH_MAX:
                    if own.alone or self._waiting[0].alone:
                        break
                    # Kept before it leaves the queue: to be in both does no harm, in none would.
                    batch.append(self._waiting[0])
                    self._waiting.popleft()
                deferred = 0 if own.alone else min(len(self._later), BATCH_MAX - len(batch))
                # What was deferred happened before.
                batch = [*islice(self._later, deferred), *batch]
                for _ in range(deferred):
                    self._later.popleft()
                if not all(one.quick for one in batch):
                    self._go_on()
            self._run_batch(batch)
        finally:
            try:
                self._release(batch, own)
            except BaseException:
                self._release(batch, own)
                raise

    def let_go(self) -> None:
        """The leader is about to wait: those who were held for it may go."""
        with self._mutex:
            self._go_on()

    def _go_on(self) -> None:
        """Wake the next of those who may go; it wakes the one after it when it leaves."""
        self._going.extend(self._held)
        self._held.clear()
        self._wake_next()

    def _wake_next(self) -> None:
        while self._going:
            request = self._going[0]
            was_awake = request.awake
            request.wake_up()
            self._going.popleft()
            if not was_awake:
                return

    def _release(self, batch: Sequence[Request], own: Request) -> None:
        """Those whose fact is settled may go soon; the rest wait on, in front."""
        others = [one for one in batch if one is not own]
        with self._mutex:
            for request in reversed(others):
                queue = self._later if request.deferred else self._waiting
                if isinstance(request.error, StoreError) and request.deferred:
                    request.error, request.done = None, len(queue) >= DEFERRED_MAX
                if not request.done and request not in queue:
                    queue.appendleft(request)
            # What was deferred has nobody who could wake the next one.
            self._held.extend(one for one in others if one.done and not one.deferred)

    def _leave(self, request: Request) -> None:
        """Whatever happened: wait for nothing any more, and lead no longer."""
        with self._mutex:
            request.awake = True
            if self._leader is request:
                self._leader = self._waiting[0] if self._waiting else None
            elif not request.done and request in self._waiting:
                self._waiting.remove(request)
            heir = self._leader
            if heir is not None and heir in self._waiting:
                self._waiting.remove(heir)
            # Once too often does no harm, once too seldom would leave everybody waiting.
            if heir is None:
                self._go_on()
            else:
                heir.wake_up()
                self._wake_next()
