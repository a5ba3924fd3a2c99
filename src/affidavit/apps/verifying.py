"""Processes that verify stretches of a ledger's file at the same time.

    python -P -m affidavit.apps.verifying FILE

A worker reads stretches, a JSON line each, and answers with lines: how many entries went by since
the last line, and at the end of a stretch its verdict. It opens the file by itself, for reading
only. Whatever goes wrong with a worker, the answer is only that it could not be done.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import IO, Any, Final

from affidavit.stores.sqlite.files import MEMORY
from affidavit.verify.ledger import StretchReport, verify_stretch
from affidavit.verify.ports import Stretch

_SAID_EVERY: Final = 4_096


class VerifyingProcesses:
    """One process a core, for as long as one verification takes."""

    def count(self) -> int:
        """As many as this process may use cores."""
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def verify(
        self, location: str, stretches: Sequence[Stretch], progress: Callable[[int], None] | None
    ) -> list[StretchReport] | None:
        """The verdict over each stretch; None where a process could not give it."""
        if location == MEMORY or not sys.executable:
            return None
        counter = _Counter(progress)
        with ExitStack() as stack:
            try:
                many = min(self.count(), len(stretches))
                workers = [_Worker(location, counter) for _ in range(many)]
                for worker in workers:
                    stack.callback(worker.stop)
                return _share(workers, stretches)
            except (OSError, ValueError, KeyError, TypeError):
                return None


def _share(workers: Sequence[_Worker], stretches: Sequence[Stretch]) -> list[StretchReport]:
    """Each worker takes the next stretch when it is done with one."""
    waiting, found = list(reversed(stretches)), list[StretchReport]()

    def work(worker: _Worker) -> None:
        while waiting and all(report.valid for report in found):
            try:
                stretch = waiting.pop()
            except IndexError:
                return
            found.append(worker.verify(stretch))

    with ThreadPoolExecutor(len(workers)) as pool:
        for done in [pool.submit(work, worker) for worker in workers]:
            done.result()
    return found


class _Counter:
    """Adds up what all workers have done."""

    def __init__(self, progress: Callable[[int], None] | None) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._done = 0

    def add(self, done: int) -> None:
        """So many entries more."""
        with self._lock:
            self._done += done
            if self._progress is not None:
                self._progress(self._done)


class _Worker:
    """A process, as the one that started it sees it."""

    def __init__(self, location: str, counter: _Counter) -> None:
        self._counter = counter
        # -P: what lies in the working directory is not to be imported.
        command = [sys.executable, "-P", "-m", __name__, location]
        self._process = subprocess.Popen(  # noqa: S603 - this very module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def verify(self, stretch: Stretch) -> StretchReport:
        """The verdict over a stretch; a worker that ended is a ValueError."""
        pipe = self._process
        if pipe.stdin is None or pipe.stdout is None:
            raise ValueError
        _say(pipe.stdin, list(stretch))
        done = 0
        while True:
            told = json.loads(pipe.stdout.readline())
            if isinstance(told, int):
                done += told
                self._counter.add(told)
            else:
                self._counter.add(told["checked"]["entries"] - done)
                return StretchReport(told["valid"], told["checked"], told["unknown"])

    def stop(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()
        # What was not sent to it any more cannot be sent on closing either.
        with contextlib.suppress(OSError), self._process:
            pass
        self._process.wait()


def _say(pipe: IO[bytes], told: Any) -> None:
    pipe.write(json.dumps(told).encode() + b"\n")
    pipe.flush()


def main(location: str) -> None:
    """Be a worker."""
    from affidavit.apps.wiring import open_audit  # noqa: PLC0415 - the wiring imports this module

    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        stretch = Stretch(*json.loads(line))
        said = stretch.start

        def tell(index: int, _: int) -> None:
            nonlocal said
            if index - said >= _SAID_EVERY:
                _say(out, index - said)
                said = index

        with open_audit(location) as source:
            report = verify_stretch(source, stretch, tell)
        _say(out, report._asdict())


if __name__ == "__main__":
    main(sys.argv[1])
