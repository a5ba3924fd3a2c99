"""The commit queue by itself: who leads, who follows, and what happens when a leader fails."""

import signal
import sqlite3
import sys
import threading
import time
from collections import deque
from contextlib import closing

import pytest

from affidavit.errors import StoreError
from affidavit.stores.sqlite import commits
from affidavit.stores.sqlite.commits import BATCH_MAX, CommitQueue, Request

WAIT_S = 20


class Runner:
    """Stands for the store: keeps batches, and can be held up."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()
        self.running = threading.Event()

    def __call__(self, batch):
        self.running.set()
        assert self.gate.wait(WAIT_S)
        self.batches.append([request.unit for request in batch])
        for request in batch:
            request.result = f"answer to {request.unit}"
            request.succeed()


@pytest.fixture
def runner():
    return Runner()


@pytest.fixture
def queue(runner):
    return CommitQueue(runner)


class Callers:
    """Threads that submit one request each."""

    def __init__(self, queue):
        self.queue = queue
        self.outcomes = {}
        self.threads = []

    def start(self, *units):
        """Start callers one after the other, so that they stand in the queue in this order."""
        for unit in units:
            waiting = len(self.queue._waiting)
            thread = threading.Thread(target=self._submit, args=(unit,), daemon=True)
            thread.start()
            self.threads.append(thread)
            until(lambda waiting=waiting: len(self.queue._waiting) > waiting)

    def lead(self, unit, runner):
        """Start the caller that leads, and see that it is held up while it commits."""
        runner.gate.clear()
        runner.running.clear()
        thread = threading.Thread(target=self._submit, args=(unit,), daemon=True)
        thread.start()
        self.threads.append(thread)
        assert runner.running.wait(WAIT_S)

    def _submit(self, unit):
        try:
            request = Request(unit, time.time_ns, quick=not str(unit).startswith("slow"))
            self.outcomes[unit] = self.queue.submit(request)
        except BaseException as error:
            self.outcomes[unit] = error

    def join(self):
        for thread in self.threads:
            thread.join(WAIT_S)
            assert not thread.is_alive(), "a caller hangs"


def until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def test_a_lone_caller_is_served_at_once(queue, runner):
    assert queue.submit(Request("a", time.time_ns)) == "answer to a"
    assert queue.submit(Request("b", time.time_ns)) == "answer to b"
    assert runner.batches == [["a"], ["b"]]


def test_those_who_come_while_one_commits_share_the_next_commit_in_order(queue, runner):
    callers = Callers(queue)
    callers.lead("first", runner)
    callers.start("a", "b", "c", "d")
    runner.gate.set()
    callers.join()
    assert runner.batches == [["first"], ["a", "b", "c", "d"]]
    assert callers.outcomes == {unit: f"answer to {unit}" for unit in ("first", "a", "b", "c", "d")}


def test_a_batch_has_a_limit_and_the_rest_are_next(queue, runner, monkeypatch):
    assert BATCH_MAX == 1_000
    monkeypatch.setattr(commits, "BATCH_MAX", 3)
    callers = Callers(queue)
    callers.lead("first", runner)
    callers.start(*range(7))
    runner.gate.set()
    callers.join()
    assert runner.batches == [["first"], [0, 1, 2], [3, 4, 5], [6]]


def test_a_leader_that_fails_strands_nobody(queue, runner):
    callers = Callers(queue)
    callers.lead("first", runner)
    callers.start("a", "b", "c")

    def fail_once(batch, run=runner.__call__):
        if batch[0].unit == "a" and not failed:
            failed.append(len(batch))
            raise MemoryError("nothing left")
        run(batch)

    failed = []
    queue._run_batch = fail_once
    runner.gate.set()
    callers.join()
    assert failed == [3]
    assert isinstance(callers.outcomes["a"], MemoryError)
    # Nothing of the others was run: the next leader takes them, in their order.
    assert callers.outcomes["b"] == "answer to b"
    assert callers.outcomes["c"] == "answer to c"
    assert runner.batches == [["first"], ["b", "c"]]
    assert queue.submit(Request("afterwards", time.time_ns)) == "answer to afterwards"


def is_error(outcome):
    return isinstance(outcome, BaseException)


def test_a_request_that_fails_fails_alone(queue, runner):
    def run(batch):
        for request in batch:
            request.result = request.unit
            request.succeed()
            if request.unit == "bad":
                request.fail(ValueError("bad"))

    callers = Callers(queue)
    callers.lead("first", runner)
    callers.start("a", "bad", "b")
    queue._run_batch = run
    runner.gate.set()
    callers.join()
    assert isinstance(callers.outcomes.pop("bad"), ValueError)
    assert not any(map(is_error, callers.outcomes.values()))


class Interrupted(BaseException):
    """Stands for Ctrl-C."""


@pytest.fixture
def interrupt_after():
    """Interrupts the main thread, where tests run, after a while."""

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_one_who_is_interrupted_while_waiting_leaves_the_queue(queue, runner, interrupt_after):
    callers = Callers(queue)
    callers.lead("first", runner)
    interrupt_after(0.1)
    with pytest.raises(Interrupted):
        queue.submit(Request("gone", time.time_ns))
    callers.start("stays")
    runner.gate.set()
    callers.join()
    assert runner.batches == [["first"], ["stays"]]


def test_one_who_is_interrupted_after_a_leader_took_it_holds_nobody_up(
    queue, runner, interrupt_after
):
    callers = Callers(queue)
    callers.lead("first", runner)
    callers.start("second")
    again = threading.Event()

    def hold_second(batch, run=runner.__call__):
        if len(batch) == 2:
            again.set()
            # The main thread is interrupted in here, while its request is being committed.
            time.sleep(0.3)
        run(batch)

    def go():
        until(lambda: len(queue._waiting) == 2)
        runner.gate.set()

    queue._run_batch = hold_second
    threading.Thread(target=go, daemon=True).start()
    interrupt_after(0.2)
    with pytest.raises(Interrupted):
        queue.submit(Request("mine", time.time_ns))
    assert again.is_set()
    callers.join()
    assert runner.batches == [["first"], ["second", "mine"]]
    assert queue.submit(Request("afterwards", time.time_ns)) == "answer to afterwards"


class LateInterrupt:
    """A lock whose owner is interrupted at the moment it has got it."""

    def __init__(self):
        self._lock = REAL_LOCK()
        self._acquired = 0

    def acquire(self, *args, **kwargs):
        got = self._lock.acquire(*args, **kwargs)
        self._acquired += 1
        if self._acquired == 2:
            raise Interrupted
        return got

    def release(self):
        self._lock.release()


REAL_LOCK = threading.Lock


@pytest.mark.parametrize("place", ["heir", "follower"])
def test_an_interrupt_at_the_moment_of_waking_strands_nobody(queue, runner, monkeypatch, place):
    callers = Callers(queue)
    callers.lead("first", runner)
    if place == "follower":
        callers.start("heir")
    fake = type("fake", (), {"Lock": LateInterrupt})
    with monkeypatch.context() as patch:
        patch.setattr(commits, "threading", fake)
        callers.start("late")
    callers.start("after")
    runner.gate.set()
    callers.join()
    assert isinstance(callers.outcomes["late"], Interrupted)
    assert callers.outcomes["after"] == "answer to after"
    assert queue.submit(Request("afterwards", time.time_ns)) == "answer to afterwards"


class InterruptedCalls:
    """Interrupts a thread as it enters a function of the queue: the one of a number."""

    def __init__(self, number):
        self.number, self.count = number, 0

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename == commits.__file__:
            self.count += 1
            if self.count == self.number:
                raise Interrupted


@pytest.mark.parametrize("unit", ["first", "heir", "follower"])
def test_an_interrupt_at_the_door_of_a_function_strands_nobody(unit):
    for number in range(1, 100):
        runner = Runner()
        callers, interrupt = Callers(CommitQueue(runner)), InterruptedCalls(number)
        submit = callers._submit

        def submit_traced(name, submit=submit, interrupt=interrupt):
            sys.settrace(interrupt if name == unit else None)
            submit(name)

        callers._submit = submit_traced
        runner.gate.clear()
        for name in ("first", "heir", "follower", "other"):
            thread = threading.Thread(target=submit_traced, args=(name,), daemon=True)
            thread.start()
            callers.threads.append(thread)
            time.sleep(0.002)
        runner.gate.set()
        callers.join()
        assert is_error(callers.outcomes[unit]) == (number <= interrupt.count)
        assert callers.queue.submit(Request("afterwards", time.time_ns))
        if interrupt.count < number:
            return
    pytest.fail("there was no end")


class LateDeque(deque):
    """A queue whose owner is interrupted once, at the moment somebody has left it."""

    raised = False

    def popleft(self):
        left = super().popleft()
        if not self.raised:
            self.raised = True
            raise Interrupted
        return left


@pytest.mark.parametrize("place", ["_waiting", "_later"])
def test_an_interrupt_while_a_batch_is_gathered_loses_nobody(queue, runner, place):
    callers = Callers(queue)
    callers.lead("first", runner)
    callers.start("heir", "a", "b")
    queue.defer(Request("read", time.time_ns, deferred=True))
    setattr(queue, place, LateDeque(getattr(queue, place)))
    runner.gate.set()
    callers.join()
    assert isinstance(callers.outcomes["heir"], Interrupted)
    assert (callers.outcomes["a"], callers.outcomes["b"]) == ("answer to a", "answer to b")
    queue.submit(Request("afterwards", time.time_ns))
    ran = [unit for batch in runner.batches for unit in batch]
    assert sorted(ran) == ["a", "afterwards", "b", "first", "read"]


def test_many_threads_all_get_their_own_answer(queue, runner):
    callers = Callers(queue)
    for unit in range(200):
        thread = threading.Thread(target=callers._submit, args=(unit,), daemon=True)
        callers.threads.append(thread)
        thread.start()
    callers.join()
    assert callers.outcomes == {unit: f"answer to {unit}" for unit in range(200)}
    assert sorted(unit for batch in runner.batches for unit in batch) == list(range(200))
    assert queue._leader is None
    assert not queue._waiting


class Stage:
    """Three commits: `first` alone, then its heir with `follower`, then `third`, which is held up.

    What became of the follower, whose fact is on disk by then, is what these tests are about.
    """

    def __init__(self, queue, runner, third="third", *more):
        self.callers = Callers(queue)
        self.callers.lead("first", runner)
        self.callers.start("heir", "follower", *more)
        self.reached, self.gate = threading.Event(), threading.Event()

        def run(batch, run=runner.__call__):
            if batch[0].unit == "heir":
                self.callers.start(third)
            if batch[0].unit == third:
                self.reached.set()
                assert self.gate.wait(WAIT_S)
            run(batch)

        queue._run_batch = run
        runner.gate.set()
        assert self.reached.wait(WAIT_S)
        until(lambda: {"first", "heir"} <= self.callers.outcomes.keys())

    def end(self):
        self.gate.set()
        self.callers.join()
        assert not any(map(is_error, self.callers.outcomes.values()))


def test_who_is_settled_is_held_while_a_quick_leader_works_and_goes_when_it_waits(queue, runner):
    stage = Stage(queue, runner, "third", "another", "and another")
    time.sleep(0.05)
    assert not {"follower", "another", "and another"} & stage.callers.outcomes.keys()
    queue.let_go()
    until(lambda: {"follower", "another", "and another"} <= stage.callers.outcomes.keys())
    assert "third" not in stage.callers.outcomes
    stage.end()


def test_nobody_is_held_behind_one_who_may_take_long(queue, runner):
    stage = Stage(queue, runner, "slow third")
    until(lambda: "follower" in stage.callers.outcomes)
    assert "slow third" not in stage.callers.outcomes
    stage.end()


def test_nobody_stays_held_where_the_next_leader_fails(queue, runner):
    stage = Stage(queue, runner)

    def fail(batch):
        raise MemoryError("nothing left")

    queue._run_batch = fail
    stage.end()
    assert stage.callers.outcomes["follower"] == "answer to follower"


def test_a_deferred_one_among_the_settled_does_not_end_the_chain(queue, runner):
    callers = Callers(queue)
    callers.lead("first", runner)
    callers.start("a", "b", "c")
    queue.defer(Request("read", time.time_ns, deferred=True))
    runner.gate.set()
    callers.join()
    assert runner.batches == [["first"], ["read", "a", "b", "c"]]


@pytest.fixture
def let_go(open_ledger, monkeypatch):
    """A store, and an event that is set when its leader lets those go who are held."""
    ledger = open_ledger()
    ledger.start_session(intent="so that there is a connection")
    store, went = ledger._context.store, threading.Event()
    monkeypatch.setattr(store._queue, "let_go", went.set)
    return ledger, store, went


def test_a_leader_that_waits_for_another_process_lets_go_first(let_go, path):
    ledger, _, went = let_go
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        late = threading.Thread(target=lambda: ledger.create_task(title="late"), daemon=True)
        late.start()
        assert went.wait(WAIT_S)
        assert late.is_alive()
        other.execute("ROLLBACK")
    late.join(WAIT_S)
    assert ledger.list_tasks().total_count == 1


@pytest.mark.parametrize("how", ["rebuild", "scrub", "fork"])
def test_what_keeps_commits_off_for_longer_lets_go_too(let_go, how):
    ledger, store, went = let_go
    if how == "rebuild":
        ledger.rebuild()
    elif how == "scrub":
        store.scrub([])
    else:
        store.before_fork()
        store.after_fork_in_parent()
    assert went.is_set()
    assert not store._apart
    ledger.create_task(title="afterwards")


def later(unit):
    return Request(unit, int, deferred=True)


def test_what_was_deferred_goes_with_the_next_commit_and_before_it(queue, runner):
    for unit in ("read 1", "read 2"):
        queue.defer(later(unit))
    assert runner.batches == []
    queue.submit(Request("write", int))
    assert runner.batches == [["read 1", "read 2", "write"]]
    queue.submit(Request("another", int))
    assert runner.batches[1:] == [["another"]]


def test_a_flush_commits_what_was_deferred_and_nothing_where_nothing_was(queue, runner):
    queue.flush()
    assert runner.batches == []
    queue.defer(later("read"))
    queue.flush()
    assert [batch[:-1] for batch in runner.batches] == [["read"]]


def test_what_was_deferred_is_kept_while_the_store_fails(queue, runner):
    def fail(batch):
        for request in batch:
            request.fail(StoreError("the disk is full", code="ERR_STORE_FULL"))

    for unit in ("read 1", "read 2"):
        queue.defer(later(unit))
    queue._run_batch = fail
    with pytest.raises(StoreError):
        queue.submit(Request("write", int))
    queue._run_batch = runner
    queue.submit(Request("again", int))
    assert runner.batches == [["read 1", "read 2", "again"]]


def test_what_was_deferred_is_kept_when_its_leader_is_interrupted(queue, runner):
    def interrupt(batch):
        raise KeyboardInterrupt

    queue.defer(later("read"))
    queue._run_batch = interrupt
    with pytest.raises(KeyboardInterrupt):
        queue.submit(Request("write", int))
    queue._run_batch = runner
    queue.submit(Request("again", int))
    assert runner.batches == [["read", "again"]]
