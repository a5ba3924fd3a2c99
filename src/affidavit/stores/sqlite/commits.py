"""Group commit: threads that call at once share one commit, and each waits for its own fact.

A caller that finds no leader becomes it: it drains the queue, has every request run in one
transaction, wakes the callers after the commit, and hands over to the first one still waiting. A
leader waits for nothing but the write lock and the disk.

A signal may raise in any caller at any line, in a `finally` too. So leadership is an identity,
given up in a `finally` that was entered before it could be taken; what must happen is written so
that it can happen twice, and is begun again when it is interrupted (`surely`); and requests of
others that were not run go back into the queue.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from affidavit.errors import AffidavitError, StoreError

BATCH_MAX = 1_000
# What nobody waits for is kept so far while the store fails, and no further.
DEFERRED_MAX = 10_000


def surely(step: Callable[[], None]) -> None:
    """Take a step that must be taken, also when a signal raises inside it; it may run twice."""
    try:
        step()
    except BaseException:
        step()
        raise


class Request:
    """One caller's unit of work and, later, its outcome."""

    __slots__ = ("alone", "clock", "deferred", "done", "error", "result", "since", "unit", "wake")

    def __init__(
        self,
        unit: Callable[[Any], Any],
        clock: Callable[[], int],
        *,
        deferred: bool = False,
        alone: bool = False,
    ) -> None:
        self.unit = unit
        self.alone = alone
        self.clock = clock
        # Nobody waits for it.
        self.deferred = deferred
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.wake: threading.Lock | None = None
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
        if self.wake is not None:
            with contextlib.suppress(RuntimeError):
                self.wake.release()

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
            surely(lambda: self._leave(request))
        return request.answer()

    def _lead(self, own: Request) -> None:
        batch = [own]
        try:
            with self._mutex:
                while self._waiting and len(batch) < BATCH_MAX:
                    if own.alone or self._waiting[0].alone:
                        break
                    batch.append(self._waiting.popleft())
                deferred = 0 if own.alone else min(len(self._later), BATCH_MAX - len(batch))
                # What was deferred happened before.
                batch = [*(self._later.popleft() for _ in range(deferred)), *batch]
            self._run_batch(batch)
        finally:
            surely(lambda: self._release([one for one in batch if one is not own]))

    def _release(self, others: Sequence[Request]) -> None:
        """Wake those whose fact is settled; the rest wait on, in front."""
        with self._mutex:
            for request in reversed(others):
                queue = self._later if request.deferred else self._waiting
                if isinstance(request.error, StoreError) and request.deferred:
                    request.error, request.done = None, len(queue) >= DEFERRED_MAX
                if not request.done and request not in queue:
                    queue.appendleft(request)
        for request in others:
            if request.done:
                request.wake_up()

    def _leave(self, request: Request) -> None:
        """Whatever happened: wait for nothing any more, and lead no longer."""
        with self._mutex:
            if self._leader is request:
                self._leader = self._waiting[0] if self._waiting else None
            elif not request.done and request in self._waiting:
                self._waiting.remove(request)
            heir = self._leader
            if heir is not None and heir in self._waiting:
                self._waiting.remove(heir)
            # Once too often does no harm, once too seldom would leave everybody waiting.
            if heir is not None:
                heir.wake_up()
