"""Reading connections see what is committed, whole, and nothing else."""

import sqlite3
import threading

import pytest

import affidavit
from affidavit.errors import AffidavitError, StoreError


def thought(content="c", **more):
    return {"type": "plan", "task_id": "t", "agent_id": "a", "content": content, **more}


class StopInside(Exception):
    pass


def write_half(store, reached, go_on):
    """A unit that has written, and is not committed, until it is told to go on."""

    def unit(tx):
        tx._execute("INSERT INTO log VALUES (?, ?, ?)", (tx.size(), b'{"at":1', b"x" * 32))
        tx.writes += 1
        reached.set()
        assert go_on.wait(20)
        raise StopInside

    with pytest.raises(StopInside):
        store.write(unit, lambda: 10**15)


def test_readers_never_see_what_is_not_committed(ledger):
    ledger.record_thought(**thought())
    reached, go_on = threading.Event(), threading.Event()
    store = ledger._context.store
    thread = threading.Thread(target=write_half, args=(store, reached, go_on))
    thread.start()
    assert reached.wait(20)
    seen = read_in_time(lambda: (len(ledger), len(ledger.list_thoughts()), ledger.verify().valid))
    go_on.set()
    thread.join(20)
    assert seen == (2, 1, True)
    assert len(ledger) == 2


def read_in_time(ask):
    """Ask in a thread of its own, so that a reader that waits for the writer is found out."""
    seen = []
    thread = threading.Thread(target=lambda: seen.append(ask()))
    thread.start()
    thread.join(5)
    return seen[0] if seen else "waits for the writer"


def test_one_snapshot_does_not_move_while_others_write(ledger):
    ledger.record_thought(**thought("one"))
    with ledger._context.store.read() as reader:
        before = reader.size()
        read_in_time(lambda: ledger.record_thought(**thought("two")))
        assert reader.size() == before
    assert len(ledger) == before + 1


def test_an_iteration_ends_where_it_began_to_and_holds_nothing_up(ledger):
    ledger.record_thoughts([thought(str(number)) for number in range(1500)])
    stream = ledger.iter_thoughts()
    first = next(stream)
    ledger.record_thought(**thought("later"))
    rest = [record.content for record in stream]
    assert [first.content, *rest] == [str(number) for number in range(1500)]


def test_an_iteration_left_alone_keeps_no_reader(ledger):
    ledger.record_thoughts([thought(str(number)) for number in range(1500)])
    streams = [ledger.iter_thoughts() for _ in range(20)]
    for stream in streams:
        next(stream)
    # Nobody reads now, so that everything can be folded back into the database.
    store = ledger._context.store
    busy = store._committer.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    assert busy == 0


def test_a_reading_connection_cannot_write(ledger):
    with ledger._context.store.read() as reader, pytest.raises(sqlite3.OperationalError):
        reader._execute("CREATE TABLE mine (x)")


def test_connections_are_used_again(ledger):
    ledger.record_thought(**thought())
    store = ledger._context.store
    for _ in range(20):
        len(ledger)
        ledger.verify()
    assert len(store._idle) == 1


def test_a_closed_ledger_says_so_and_can_be_closed_again(path):
    ledger = affidavit.open(path)
    ledger.close()
    ledger.close()
    for call in (
        lambda: len(ledger),
        ledger.verify,
        ledger.list_thoughts,
        lambda: ledger.record_thought(**thought()),
        ledger.rebuild,
        ledger.describe,
    ):
        with pytest.raises(StoreError) as caught:
            call()
        assert caught.value.hint


def test_a_handle_that_is_closed_leaves_others_open(path):
    one, two = affidavit.open(path), affidavit.open(path)
    one.close()
    two.record_thought(**thought())
    assert len(two) == 2
    two.close()


def test_closing_while_threads_read_and_write_raises_only_what_is_ours(path):
    ledger = affidavit.open(path)
    ledger.record_thought(**thought())
    foreign, started = [], threading.Barrier(5)

    def work(call):
        started.wait()
        try:
            while True:
                call()
        except AffidavitError:
            pass
        except BaseException as error:
            foreign.append(error)

    calls = [
        lambda: ledger.record_thought(**thought()),
        ledger.verify,
        lambda: list(ledger.iter_thoughts()),
        lambda: len(ledger),
    ]
    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    started.wait()
    ledger.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert not foreign
    with affidavit.open(path) as again:
        assert again.verify().valid


def test_memory_ledgers_are_apart_and_read_their_own():
    with affidavit.open(":memory:") as one, affidavit.open(":memory:") as two:
        one.record_thought(**thought())
        assert (len(one), len(two)) == (2, 1)
        assert one.verify().valid
        one.set(writeback="reflection")
        assert one.settings["writeback"] == "reflection"
        assert two.settings["writeback"] == "any"


def test_a_memory_ledger_outlives_what_replaces_a_connection():
    """A connection in memory is the ledger: it must not be closed to be opened again."""
    with affidavit.open(":memory:") as ledger:
        first = ledger.record_thought(**thought())
        assert ledger.rebuild().valid
        assert ledger.rebuild().valid, "the first rebuild left something behind"
        assert len(ledger) == 2
        assert ledger.record_thought(**thought()).prev_hash == first.hash
        ledger._context.store._committer.reset()
        assert len(ledger.list_thoughts()) == 2
