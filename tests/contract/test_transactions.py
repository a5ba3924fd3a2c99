"""Transactions: several calls as one unit, all or nothing, for a limited time."""

import threading
import time

import pytest

import affidavit
from affidavit.ledger import transactions
from contract.calls import record, refused, start

ID = "0b0e8c1a-0000-4000-8000-000000000001"


def test_all_of_it_at_one_time_and_seen_inside_first(ledger):
    with ledger.transaction() as tx:
        start(tx, session_id="s")
        record(tx, session_id="s")
        tx.upsert_turn(ID, ID, "user", "hello", session_id="s")
        assert tx.get_turn(ID).content == "hello"
        assert len(tx) == 4
        assert len(ledger) == 1
        assert ledger.get_turn(ID) is None
    assert len(ledger) == 4
    assert len({entry.at for entry in ledger.list_entries(after=0)}) == 1


def test_an_error_undoes_all_of_it(ledger):
    with pytest.raises(ZeroDivisionError), ledger.transaction() as tx:
        record(tx)
        1 / 0  # noqa: B018
    with refused("ERR_SESSION_NOT_FOUND"), ledger.transaction() as tx:
        record(tx)
        record(tx, session_id="typo")
    assert len(ledger) == 1


def test_an_error_nobody_tells_of_undoes_it_too(ledger):
    with refused("ERR_TRANSACTION_ENDED"), ledger.transaction() as tx:
        record(tx)
        with refused("INVALID_PARAMS"):
            record(tx, content="")
        with refused("ERR_TRANSACTION_ENDED"):
            record(tx)
    assert len(ledger) == 1


def test_abort_undoes_and_ends_it(ledger):
    with ledger.transaction() as tx:
        record(tx)
        tx.abort()
    with refused("ERR_TRANSACTION_ENDED"):
        len(tx)
    assert len(ledger) == 1
    record(ledger)


def test_reading_ones_are_one_snapshot(ledger):
    with ledger.transaction(write=False) as tx:
        assert len(tx) == 1
        record(ledger)
        assert (len(tx), tx.list_thoughts()) == (1, [])
    assert len(ledger) == 2
    with refused("ERR_READONLY"), ledger.transaction(write=False) as tx:
        record(tx)


def test_the_lock_is_given_back_in_time(ledger, open_ledger, monkeypatch):
    monkeypatch.setattr(transactions, "TRANSACTION_S", 0.2)
    other = open_ledger()
    with refused("ERR_TRANSACTION_ENDED") as caught, ledger.transaction() as tx:
        record(tx)
        writer = threading.Thread(target=lambda: record(other))
        writer.start()
        time.sleep(0.5)
        writer.join(10)
        assert not writer.is_alive()
        record(tx)
    assert "TRANSACTION_S" in str(caught.value)
    assert len(ledger) == 2


def test_calls_beside_it_are_refused_instead_of_waiting_for_themselves(ledger):
    with refused("ERR_TRANSACTION_OPEN"), ledger.transaction() as tx:
        record(tx)
        record(ledger)
    with refused("ERR_TRANSACTION_OPEN"), ledger.transaction(), ledger.transaction():
        pass
    with affidavit.open(":memory:") as memory, memory.transaction() as tx:
        record(tx)
        with refused("ERR_TRANSACTION_OPEN"):
            len(memory)
    assert len(ledger) == 1


@pytest.mark.parametrize("call", ["verify", "rebuild", "checkpoint", "query"])
def test_what_needs_committed_facts_is_refused_inside(ledger, call):
    given = ("SELECT 1",) if call == "query" else ()
    with refused("ERR_TRANSACTION_ENDED"), ledger.transaction() as tx:
        getattr(tx, call)(*given)


def test_threads_beside_it_wait_and_then_write(ledger):
    threads = []
    with ledger.transaction() as tx:
        for _ in range(4):
            threads.append(threading.Thread(target=lambda: record(ledger)))
            threads[-1].start()
        time.sleep(0.05)
        record(tx)
        assert len(ledger) == 1
    for thread in threads:
        thread.join()
    assert len(ledger) == 6


def test_idempotency_keys_hold_inside(ledger):
    for _ in range(2):
        with ledger.transaction() as tx:
            record(tx, idempotency_key="k")
    assert len(ledger) == 2
