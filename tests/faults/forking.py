"""Children that fork while a ledger is open, each in a fresh process with a time limit.

python -m faults.forking PATH SIDE HOW
"""

import multiprocessing
import os
import sys
import threading
import time
import traceback
import warnings

import affidavit
from faults.deeds import sayer, thought

THREADS = 3
FORKS = 6
RECORDS = 10


def fork(deed):
    """Fork a child that does a deed and ends; its id."""
    with warnings.catch_warnings():
        # Python warns of forking with threads from 3.12 on; that it works is what is shown here.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        deed()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait_for(pids):
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0


def write(ledger, say, name, count=RECORDS, session=None):
    for step in range(count):
        record = ledger.record_thought(**thought(name, step, session_id=session))
        say("thought", record.id, record.hash)


class Writers:
    """Threads that write until told to stop."""

    def __init__(self, ledger, say):
        self._stop = threading.Event()
        self._failed = []
        self._threads = [
            threading.Thread(target=self._work, args=(ledger, say, f"thread-{number}"))
            for number in range(THREADS)
        ]

    def _work(self, ledger, say, name):
        try:
            while not self._stop.is_set():
                write(ledger, say, name, 1)
        except BaseException as error:
            self._failed.append(error)
            raise

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), "a writer hangs"
        assert not self._failed


def writing_threads(path, say):
    """A fork while other threads write: parent and child go on, through the same handle."""
    with affidavit.open(path) as ledger:
        session = ledger.start_session(intent="forked").session_id
        with Writers(ledger, say):
            pids = []
            for number in range(FORKS):
                time.sleep(0.02)
                name = f"child-{number}"
                pids.append(fork(lambda name=name: write(ledger, say, name, session=session)))
                write(ledger, say, "parent", 3)
            wait_for(pids)
        write(ledger, say, "parent", 3, session)


def busy_readers(path, say):
    """A fork while other threads read all the time: it does not wait for ever."""
    stop = threading.Event()
    with affidavit.open(path) as ledger:
        write(ledger, say, "parent")

        def read():
            while not stop.is_set():
                ledger.list_thoughts(task_id="shared-0")
                ledger.verify()

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        longest_s = 0.0
        for number in range(FORKS):
            began = time.monotonic()
            pid = fork(lambda number=number: write(ledger, say, f"child-{number}", 2))
            longest_s = max(longest_s, time.monotonic() - began)
            wait_for([pid])
        stop.set()
        for thread in threads:
            thread.join(30)
        print(f"longest fork {longest_s:.3f} s")
        assert longest_s < 5


def iterating(path, say):
    """A fork in the middle of an iteration: both go on with it, and see the same."""
    with affidavit.open(path) as ledger:
        for part in range(3):
            ledger.record_thoughts([thought("before", part * 900 + step) for step in range(900)])
        expected = [record.id for record in ledger.iter_thoughts()]
        for at in (1, 1000, 1500):
            stream = ledger.iter_thoughts()
            seen = [next(stream).id for _ in range(at)]

            def rest(stream=stream, seen=seen, expected=expected):
                assert seen + [record.id for record in stream] == expected

            def child(rest=rest):
                write(ledger, say, "child", 2)
                rest()

            pid = fork(child)
            rest()
            wait_for([pid])
            expected = [record.id for record in ledger.iter_thoughts()]


def with_multiprocessing(path, say):
    """A pool of forked workers that use the parent's handle."""
    context = multiprocessing.get_context("fork")
    with affidavit.open(path) as ledger, Writers(ledger, say):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            workers = [
                context.Process(target=write, args=(ledger, say, f"worker-{number}"))
                for number in range(4)
            ]
            for worker in workers:
                worker.start()
        for worker in workers:
            worker.join(30)
            assert worker.exitcode == 0


def closing(path, say):
    """A child that closes its handle, or ends without, leaves the parent's alone."""
    with affidavit.open(path) as ledger:
        write(ledger, say, "parent", 2)
        for deed in (ledger.close, lambda: None, lambda: affidavit.open(path).close()):
            wait_for([fork(deed)])
            write(ledger, say, "parent", 2)
        with affidavit.open(path, readonly=True) as reader:
            wait_for([fork(lambda: len(reader) and reader.verify())])
            assert reader.verify().valid


def grandchildren(path, say):
    """A child of a child."""

    def child():
        write(ledger, say, "child", 2)
        wait_for([fork(lambda: write(ledger, say, "grandchild", 2))])
        write(ledger, say, "child", 2)

    with affidavit.open(path) as ledger, Writers(ledger, say):
        wait_for([fork(child), fork(child)])


def subprocesses(path, say):
    """Programs started from a writing process: nothing of the ledger reaches them."""
    import subprocess

    code = (
        "import os\nfor n in os.listdir('/proc/self/fd'):\n"
        "  try: print(os.readlink(f'/proc/self/fd/{n}'))\n  except OSError: pass"
    )
    with affidavit.open(path) as ledger, Writers(ledger, say):
        for close in (True, False):
            done = subprocess.run(
                [sys.executable, "-c", code],
                close_fds=close, capture_output=True, text=True, timeout=30, check=True,
            )  # fmt: skip
            assert "trail.db" not in done.stdout, done.stdout


def in_memory(path, say):
    """A ledger in memory is copied whole, also while other threads write to it."""

    def child():
        before = len(ledger)
        write(ledger, unsaid, "child", 2)
        assert len(ledger) == before + 2
        assert ledger.verify().valid

    def unsaid(*_):
        pass

    with affidavit.open(":memory:") as ledger, Writers(ledger, unsaid):
        for _ in range(FORKS):
            pid = fork(child)
            write(ledger, unsaid, "parent", 2)
            wait_for([pid])
    with affidavit.open(path) as ledger:
        write(ledger, say, "parent", 1)


WAYS = [
    "writing_threads", "busy_readers", "iterating", "with_multiprocessing", "closing",
    "grandchildren", "subprocesses", "in_memory",
]  # fmt: skip


if __name__ == "__main__":
    globals()[sys.argv[3]](sys.argv[1], sayer(sys.argv[2]))
