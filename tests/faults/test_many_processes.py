"""Several processes on one file: all get their turn, nobody is told of a locked database."""

import sqlite3
import threading
import time

import pytest

import affidavit
from affidavit.errors import StoreError
from affidavit.stores.sqlite import connection
from faults.deeds import thought
from faults.support import acknowledged, assert_all_there, audit

PROCESSES = 24
RECORDS = 20
LIMIT_S = 30.0


def start_all(zygote, path, folder, count, records):
    """Start writers that begin at one moment; what they acknowledged, and the longest wait."""
    start_at = time.time() + 0.2
    children = [
        zygote.start(
            "deeds:write_some", path, str(folder / f"side-{number}"), number, records, start_at,
            limit_s=90,
        )
        for number in range(count)
    ]  # fmt: skip
    for child in children:
        child.finish(90)
    said = [line for number in range(count) for line in acknowledged(folder / f"side-{number}")]
    waits = [line[1] for line in said if line[0] == "longest"]
    assert len(waits) == count
    return [line for line in said if line[0] == "thought"], max(waits)


def test_twenty_four_busy_processes_all_record_within_half_a_minute(zygote, tmp_path):
    path = str(tmp_path / "trail.db")
    facts, longest_s = start_all(zygote, path, tmp_path, PROCESSES, RECORDS)
    print(f"{PROCESSES} processes, {RECORDS} records each: longest wait {longest_s:.2f} s")
    assert len(facts) == PROCESSES * RECORDS
    assert longest_s < LIMIT_S
    assert_all_there(path, facts)
    audit(path)


def test_processes_that_make_one_ledger_at_once_all_get_it(zygote, folder):
    for number in range(40):
        path = str(folder / f"{number}.db")
        start_at = time.time() + 0.03
        children = [zygote.start("deeds:open_at", path, start_at) for _ in range(10)]
        for child in children:
            child.finish()
        with affidavit.open(path) as ledger:
            assert len(ledger) == 1
    audit(path)


@pytest.mark.long
def test_forty_busy_processes_for_longer(zygote, tmp_path):
    path = str(tmp_path / "trail.db")
    facts, longest_s = start_all(zygote, path, tmp_path, 40, 100)
    print(f"40 processes, 100 records each: longest wait {longest_s:.2f} s")
    assert len(facts) == 4000
    assert longest_s < LIMIT_S
    assert_all_there(path, facts)
    audit(path)


@pytest.fixture
def held(zygote, folder):
    """A ledger whose write lock another process holds, and how to make that let go."""
    path = str(folder / "trail.db")
    with affidavit.open(path) as ledger:
        ledger.record_thought(**thought("before", 1))
        child = zygote.start("deeds:hold_lock", path, str(folder / "ready"), str(folder / "free"))
        while not (folder / "ready").exists():
            time.sleep(0.002)

        def let_go():
            (folder / "free").touch()
            child.finish()

        yield ledger, let_go
    audit(path)


def wait_at_most(monkeypatch, seconds):
    monkeypatch.setattr(connection, "LOCK_WAIT_S", seconds)


def test_a_writer_held_out_for_too_long_is_told_and_can_go_on(monkeypatch, held):
    ledger, let_go = held
    wait_at_most(monkeypatch, 0.3)
    for call in (
        lambda: ledger.record_thought(**thought("out", 1)),
        lambda: ledger.set(writeback="reflection"),
        ledger.rebuild,
    ):
        began = time.monotonic()
        with pytest.raises(StoreError) as caught:
            call()
        assert caught.value.code == "ERR_STORE_LOCKED"
        assert caught.value.hint
        assert 0.3 <= time.monotonic() - began < 5
    let_go()
    assert ledger.record_thought(**thought("in", 1)).index == 2


def test_threads_held_out_together_are_all_told(monkeypatch, held):
    ledger, let_go = held
    wait_at_most(monkeypatch, 0.2)
    codes = []

    def record(number):
        try:
            ledger.record_thought(**thought("out", number))
        except StoreError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=record, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert codes == ["ERR_STORE_LOCKED"] * 6
    let_go()
    ledger.record_thought(**thought("in", 1))


def test_a_writer_that_waits_gets_in_once_the_lock_is_free(held):
    ledger, let_go = held
    got = []
    thread = threading.Thread(
        target=lambda: got.append(ledger.record_thought(**thought("waits", 1)))
    )
    thread.start()
    time.sleep(0.2)
    assert not got
    let_go()
    thread.join(10)
    assert got[0].index == 2


def test_readers_do_not_wait_for_a_writer_that_waits(held):
    ledger, let_go = held
    thread = threading.Thread(target=ledger.record_thought, kwargs=thought("waits", 1))
    thread.start()
    time.sleep(0.1)
    began = time.monotonic()
    reading = threading.Thread(target=lambda: (len(ledger), ledger.list_thoughts()))
    reading.start()
    reading.join(10)
    took_s = time.monotonic() - began
    let_go()
    thread.join(10)
    reading.join(10)
    assert took_s < 2, "a reader waited for the write lock of another process"


def test_an_up_to_date_ledger_opens_while_somebody_writes(held):
    ledger, let_go = held
    opened = []

    def open_it():
        with affidavit.open(ledger.location, readonly=True) as reader:
            opened.append(len(reader))

    thread = threading.Thread(target=open_it)
    thread.start()
    thread.join(10)
    let_go()
    assert opened == [2]


def test_opening_writes_nothing_and_waits_for_nobody(zygote, folder):
    path = str(folder / "trail.db")
    with affidavit.open(path) as ledger:
        ledger.record_thought(**thought("before", 1))
    child = zygote.start("deeds:hold_lock", path, str(folder / "ready"), str(folder / "free"))
    while not (folder / "ready").exists():
        time.sleep(0.002)
    opened = []

    def open_it():
        with affidavit.open(path) as ledger:
            opened.append(ledger.describe()["wal_bytes"])

    thread = threading.Thread(target=open_it)
    thread.start()
    thread.join(10)
    waited = not opened
    (folder / "free").touch()
    child.finish()
    thread.join(10)
    assert not waited, "opening an up-to-date ledger waited for a writer"
    assert opened == [0], "opening an up-to-date ledger wrote to it"
    audit(path)


def test_another_programs_writing_shell_is_waited_for(folder):
    """Somebody looks with the sqlite3 shell and begins a transaction there."""
    path = str(folder / "trail.db")
    with affidavit.open(path) as ledger:
        shell = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        shell.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, lambda: shell.execute("ROLLBACK"))
        timer.start()
        ledger.record_thought(**thought("waits", 1))
        timer.join()
        shell.close()
    audit(path)
