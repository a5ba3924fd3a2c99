"""Errors of SQLite at every named point of every write: a clear answer, nothing half done."""

import sqlite3
import threading
import time

import pytest

import affidavit
from affidavit.errors import StoreError
from affidavit.stores.sqlite import committing
from faults.points import PointedConnection, armed, fail_at, failure, pointed, points_of
from faults.scenarios import EVERY_STATEMENT, SCENARIOS, thought
from faults.support import audit

CODES = {
    sqlite3.SQLITE_FULL: "ERR_STORE_FULL",
    sqlite3.SQLITE_IOERR: "ERR_STORE_UNAVAILABLE",
}


@pytest.mark.parametrize("code", CODES, ids=CODES.values())
@pytest.mark.parametrize(("name", "statement"), EVERY_STATEMENT)
def test_an_error_at_a_statement_writes_nothing_and_says_so(folder, plans, name, statement, code):
    for number, point in enumerate(points_of(plans[name], statement)):
        fail_and_look(str(folder / f"{number}.db"), name, point, code)


def fail_and_look(path, name, point, code):
    scenario = SCENARIOS[name]
    with pointed(), affidavit.open(path) as ledger:
        call = scenario.prepare(ledger)
        with armed(fail_at(point, code=code)):
            error = refusal(call)
        if point == "after commit #1":
            assert error is None, "it happened, so the answer is yes"
        elif point == "before commit #1" and code == sqlite3.SQLITE_IOERR:
            assert error.code == "ERR_OUTCOME_UNKNOWN"
        else:
            assert error.code == CODES[code], point
        assert scenario.is_there(ledger) == (error is None)
        # The next call of the same handle works.
        ledger.record_thought(**thought("afterwards"))
        if error is not None:
            assert refusal(call) is None
            assert scenario.is_there(ledger)
    audit(path)


def refusal(call):
    """The StoreError of a call, None when it answers; anything else is foreign and escapes."""
    try:
        call()
    except StoreError as error:
        assert error.hint
        return error
    return None


def test_a_rollback_that_fails_too_keeps_no_lock(folder):
    path = str(folder / "trail.db")
    with pointed(), affidavit.open(path) as ledger:
        call = SCENARIOS["thought"].prepare(ledger)
        at = ("after append #1", "before rollback #1")
        with armed(fail_at(*at, code=sqlite3.SQLITE_IOERR)):
            assert refusal(call).code == "ERR_STORE_UNAVAILABLE"
        assert_lock_is_free(path)
        ledger.record_thought(**thought("afterwards"))
        assert not SCENARIOS["thought"].is_there(ledger)
    audit(path)


def assert_lock_is_free(path):
    """Another program could write now."""
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    finally:
        other.close()


@pytest.mark.parametrize("second", ["before entry #1", "before checkpoint #1"])
def test_a_commit_that_cannot_be_looked_up_has_an_unknown_outcome(folder, second):
    path = str(folder / "trail.db")
    with pointed(), affidavit.open(path) as ledger:
        call = SCENARIOS["thought"].prepare(ledger)
        with armed(fail_at("after commit #1", second, code=sqlite3.SQLITE_IOERR)):
            assert refusal(call).code == "ERR_OUTCOME_UNKNOWN"
        # In truth it had happened; a retry with a key would have been told so.
        assert SCENARIOS["thought"].is_there(ledger)
        ledger.record_thought(**thought("afterwards"))
    audit(path)


def test_a_commit_the_disk_has_not_confirmed_is_not_acknowledged(folder, monkeypatch):
    monkeypatch.setattr(committing, "_SETTLE_WAIT_MS", 100)
    path = str(folder / "trail.db")
    with pointed(), affidavit.open(path) as ledger:
        call = SCENARIOS["thought"].prepare(ledger)
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM log").fetchone()
        # An older snapshot is being read, so that the checkpoint which would confirm is not done.
        with armed(fail_at("after commit #1", code=sqlite3.SQLITE_IOERR)):
            assert refusal(call).code == "ERR_OUTCOME_UNKNOWN"
        reader.close()
        ledger.record_thought(**thought("afterwards"))
    audit(path)


def test_a_retry_with_the_key_settles_an_unknown_outcome(folder):
    for point in ("before commit #1", "after commit #1"):
        path = str(folder / f"{point[0]}.db")
        with pointed(), affidavit.open(path) as ledger:
            call = SCENARIOS["keyed"].prepare(ledger)
            with armed(fail_at(point, "before entry #1", code=sqlite3.SQLITE_IOERR)):
                assert refusal(call).code == "ERR_OUTCOME_UNKNOWN"
            first = call()
            assert call() == first
            assert SCENARIOS["keyed"].is_there(ledger)
        audit(path)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_failing_commit_answers_all_who_share_it_alike(folder, side):
    path = str(folder / "trail.db")
    threads_count = 16
    outcomes = {}

    def record(ledger, number):
        try:
            outcomes[number] = ledger.record_thought(**thought(number)).id
        except StoreError as error:
            outcomes[number] = error.code

    with pointed(), affidavit.open(path) as ledger:
        store = ledger._context.store
        with store._lock:
            # While the lock is held they queue up, so that they share commits.
            threads = [
                threading.Thread(target=record, args=(ledger, number))
                for number in range(threads_count)
            ]
            for thread in threads:
                thread.start()
            while len(store._queue._waiting) < threads_count - 1:
                time.sleep(0.001)
            PointedConnection.counts.clear()
            PointedConnection.reach = fail_at(f"{side} commit #2", code=sqlite3.SQLITE_IOERR)
        for thread in threads:
            thread.join(30)
        PointedConnection.reach = None
        unknown = [code for code in outcomes.values() if code == "ERR_OUTCOME_UNKNOWN"]
        there = {record.id for record in ledger.list_thoughts()}
        assert there == set(outcomes.values()) - {"ERR_OUTCOME_UNKNOWN"}
        assert len(unknown) == (threads_count - 1 if side == "before" else 0)
    audit(path)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("statement", SCENARIOS["keyed"].statements)
def test_an_interrupt_at_a_statement_keeps_no_lock(folder, statement, side):
    path = str(folder / "trail.db")
    with pointed(), affidavit.open(path) as ledger:
        call = SCENARIOS["keyed"].prepare(ledger)
        with (
            armed(fail_at(f"{side} {statement} #1", error=KeyboardInterrupt())),
            pytest.raises(KeyboardInterrupt),
        ):
            call()
        assert_lock_is_free(path)
        there = SCENARIOS["keyed"].is_there(ledger)
        assert there == ((side, statement) == ("after", "commit"))
        call()
        assert SCENARIOS["keyed"].is_there(ledger)
    audit(path)


READS = {
    "get_thought": lambda ledger: ledger.get_thought("x"),
    "list_thoughts": lambda ledger: ledger.list_thoughts(),
    "iter_thoughts": lambda ledger: list(ledger.iter_thoughts()),
    "list_sessions": lambda ledger: ledger.list_sessions(),
    "list_tasks": lambda ledger: ledger.list_tasks(),
    "settings": lambda ledger: ledger.settings,
    "verify": lambda ledger: ledger.verify(),
    "verify_chain": lambda ledger: ledger.verify_chain(),
    "rebuild": lambda ledger: ledger.rebuild(check=True),
    "describe": lambda ledger: ledger.describe(),
    "len": len,
}


@pytest.mark.parametrize("name", READS)
def test_a_disk_that_fails_while_reading_is_a_store_error(folder, name):
    path = str(folder / "trail.db")
    with pointed(of_readers=True), affidavit.open(path) as ledger:
        ledger.record_thought(**thought(0))
        passed = []
        with armed(passed.append):
            READS[name](ledger)
        assert passed
        for number in range(len(passed)):
            with armed(fail_at_step(number)), pytest.raises(StoreError) as caught:
                READS[name](ledger)
            assert caught.value.code == "ERR_STORE_UNAVAILABLE"
            READS[name](ledger)
    audit(path)


def fail_at_step(number):
    """A `reach` that fails when so many points were passed."""
    steps = iter(range(10**9))

    def reach(passed):
        if next(steps) == number:
            raise failure(sqlite3.SQLITE_IOERR)

    return reach
