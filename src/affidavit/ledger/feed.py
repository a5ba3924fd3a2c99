"""The change feed: what was committed, in log order, from any process's writes.

A subscription reads the log, so it misses nothing and holds up nobody: a slow reader falls behind
and catches up, and goes on at any index. What it holds in memory is bounded by its capacity.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from affidavit.core.entry import decode_entry
from affidavit.core.views import VIEW_OF_KIND
from affidavit.errors import InputError, StoreError
from affidavit.ledger.context import Context
from affidavit.ledger.ports import Reader

# How long a reader that has caught up sleeps; it sleeps longer while nothing comes.
_NAP_S: Final = (0.005, 0.1)
_RETRACTING: Final = frozenset(("turn.retracted", "task.deleted"))


class Change(NamedTuple):
    """One entry: what it asserted or took back, as it is after it and as it was before."""

    index: int  # type: ignore[assignment]  # the word for a place in the log
    op: str
    kind: str
    new: dict[str, Any] | None
    old: dict[str, Any] | None


class Subscription:
    """An iterator over changes that waits for more; `close` ends it, from any thread."""

    def __init__(
        self, context: Context, kinds: frozenset[str] | None, since: int, capacity: int
    ) -> None:
        self._context = context
        self._kinds = kinds
        self._next = since
        self._capacity = capacity
        self._ready: deque[Change] = deque()
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        """The next change, waited for; ends when the subscription or its ledger is closed."""
        change = self.take()
        if change is None:
            raise StopIteration
        return change

    def take(self, timeout_s: float | None = None) -> Change | None:
        """The next change; None when it was closed, or none came in time."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        nap = _NAP_S[0]
        while not self._ready and not self._closed.is_set():
            if self._fill():
                continue
            if deadline is not None and time.monotonic() >= deadline:
                return None
            self._closed.wait(nap)
            nap = min(nap * 2, _NAP_S[1])
        return self._ready.popleft() if self._ready else None

    def close(self) -> None:
        """End it; whoever waits for the next change is let go."""
        self._closed.set()

    def _fill(self) -> bool:
        """Read on in the log; whether there was anything new."""
        try:
            with self._context.store.read() as reader:
                end = min(reader.size(), self._next + self._capacity)
                if end <= self._next:
                    return False
                for index, data in reader.entries(self._next, end):
                    change = read_change(reader, index, data, self._kinds)
                    if change is not None:
                        self._ready.append(change)
                self._next = end
        except StoreError:
            if self._context.store.is_open:
                raise
            self.close()
        return True


def read_change(
    reader: Reader, index: int, data: bytes, kinds: frozenset[str] | None
) -> Change | None:
    """What an entry changed; None where it is of no kind that is wanted."""
    try:
        read = decode_entry(data)
    except InputError:
        return None  # verification tells of what was damaged
    if kinds is not None and read.kind not in kinds and read.kind.split(".")[0] not in kinds:
        return None
    op = "retract" if read.kind in _RETRACTING else "assert"
    view = VIEW_OF_KIND.get(read.kind)
    if view is None:
        return Change(index, op, read.kind, dict(read.body), None)
    row = reader.version_at(view, index)
    before = reader.version_before(view, view.name_of(read.body), index) if view.key else None
    new = None if op == "retract" else _shown(row)
    return Change(index, op, read.kind, new, _shown(before))


def _shown(row: Any) -> dict[str, Any] | None:
    """A row without the salts of its payloads."""
    if row is None:
        return None
    return {name: value for name, value in row._asdict().items() if not name.endswith("_salt")}


class ChangeHandle:
    """A callback that is told of changes until it is closed; `last_error` is what it raised."""

    def __init__(self, subscription: Subscription, callback: Callable[[Change], object]) -> None:
        self._subscription = subscription
        self._callback = callback
        self.last_error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="on_change", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tell it of nothing any more; a call that is under way ends first."""
        self._subscription.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        for change in self._subscription:
            try:
                self._callback(change)
            except Exception as error:  # noqa: BLE001 - one callback's error harms nobody
                self.last_error = error
