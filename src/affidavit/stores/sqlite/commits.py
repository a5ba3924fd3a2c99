"""Group commit: threads that call at once share one commit, and each waits for its own fact.

A caller finds no leader and becomes it: it drains the queue, runs every request in one transaction,
wakes the callers after the commit, and hands over to the first one still waiting. A leader never
waits for anything but the write lock and the disk.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from affidavit.errors import StoreError

BATCH_MAX = 1_000


class Request:
    """One caller's unit of work and, later, its outcome."""

    __slots__ = ("clock", "done", "error", "leads", "result", "unit", "wake")

    def __init__(self, unit: Callable[[Any], Any], clock: Callable[[], int]) -> None:
        self.unit = unit
        self.clock = clock
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.wake: threading.Lock | None = None

    def answer(self) -> Any:
        """The outcome, as the caller gets it."""
        if self.error is not None:
            raise self.error
        return self.result


def _interrupted() -> StoreError:
    return StoreError(
        "the thread that was committing for others was interrupted",
        code="ERR_OUTCOME_UNKNOWN",
        hint="The fact may or may not be recorded. Retry with the same idempotency_key.",
    )


class CommitQueue:
    """Callers in, batches out, one at a time."""

    def __init__(self, run_batch: Callable[[Sequence[Request]], None]) -> None:
        self._run_batch = run_batch
        self._mutex = threading.Lock()
        self._waiting: deque[Request] = deque()
        self._has_leader = False

    def submit(self, request: Request) -> Any:
        """Have a request committed, with whatever others wait, and return its answer."""
        with self._mutex:
            if self._has_leader:
                request.wake = threading.Lock()
                request.wake.acquire()
                self._waiting.append(request)
            else:
                self._has_leader = True
                request.leads = True
        if request.wake is not None:
            self._wait(request, request.wake)
        if request.leads and not request.done:
            self._lead(request)
        return request.answer()

    def _wait(self, request: Request, wake: threading.Lock) -> None:
        try:
            wake.acquire()
        except BaseException:
            # Interrupted: leave the queue, or, if a leader has taken the request, see it through.
            with self._mutex:
                taken = request not in self._waiting
                if not taken:
                    self._waiting.remove(request)
            if taken:
                wake.acquire()
                if request.leads and not request.done:
                    self._lead(request)
            raise

    def _lead(self, own: Request) -> None:
        with self._mutex:
            batch = [own]
            while self._waiting and len(batch) < BATCH_MAX:
                batch.append(self._waiting.popleft())
        try:
            self._run_batch(batch)
        except BaseException as error:  # noqa: BLE001 - whatever stops the leader must not strand the others
            for request in batch:
                if not request.done:
                    request.error = error if request is own else _interrupted()
                    request.done = True
        finally:
            self._hand_over()
            for request in batch:
                if request is not own and request.wake is not None:
                    request.wake.release()

    def _hand_over(self) -> None:
        with self._mutex:
            if not self._waiting:
                self._has_leader = False
                return
            heir = self._waiting.popleft()
            heir.leads = True
        if heir.wake is not None:
            heir.wake.release()
