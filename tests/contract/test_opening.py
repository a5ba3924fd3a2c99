"""Opening and closing: what is created, who may only read, and several handles on one file."""

import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import affidavit
from contract.calls import draft, record, reflect, refused, start
from contract.oracle import log, snapshot, tamper


def test_opening_creates_the_ledger_and_its_folder(tmp_path):
    place = tmp_path / "a" / "b" / "trail.db"
    with affidavit.open(place) as ledger:
        assert (len(ledger), ledger.readonly) == (1, False)
        assert ledger.location == str(place)
        assert ledger.verify().valid
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_an_empty_file_that_others_could_read_is_kept_to_its_owner(tmp_path):
    place = tmp_path / "trail.db"
    place.touch(mode=0o644)
    affidavit.open(place).close()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_opening_again_writes_nothing(open_ledger, path):
    ledger = open_ledger()
    ledger_id = ledger.ledger_id
    record(ledger)
    ledger.close()
    before = snapshot(path)
    assert open_ledger().ledger_id == ledger_id
    assert snapshot(path) == before


def test_what_is_not_there_is_not_created_when_that_is_not_wanted(path):
    for options in ({"create": False}, {"readonly": True}):
        with refused("ERR_STORE_UNAVAILABLE"):
            affidavit.open(path, **options)
        assert not Path(path).exists()


def test_what_is_there_is_opened_without_leave_to_create(open_ledger):
    open_ledger().close()
    assert record(open_ledger(create=False)).index == 1


def test_a_ledger_in_memory_vanishes_when_it_is_closed():
    with affidavit.open(":memory:") as ledger:
        session_id = start(ledger)
        reflect(ledger, session_id=session_id)
        assert ledger.seal_session(session_id).record_count == 1
        assert ledger.verify().valid
        assert ledger.location == ":memory:"
    with affidavit.open(":memory:") as ledger:
        assert len(ledger) == 1


def test_two_ledgers_in_memory_are_two_ledgers():
    with affidavit.open(":memory:") as one, affidavit.open(":memory:") as other:
        record(one)
        assert (len(one), len(other)) == (2, 1)
        assert one.ledger_id != other.ledger_id


READS = {
    "len": len,
    "settings": lambda ledger: ledger.settings,
    "get_thought": lambda ledger: ledger.get_thought("r1"),
    "list_thoughts": lambda ledger: ledger.list_thoughts(),
    "iter_thoughts": lambda ledger: list(ledger.iter_thoughts()),
    "get_session": lambda ledger: ledger.get_session("s1"),
    "list_sessions": lambda ledger: ledger.list_sessions(),
    "merkle_root": lambda ledger: ledger.merkle_root("s1"),
    "get_task": lambda ledger: ledger.get_task("k1"),
    "list_tasks": lambda ledger: ledger.list_tasks(),
    "next_actions": lambda ledger: ledger.next_actions(),
    "verify_chain": lambda ledger: ledger.verify_chain(),
    "verify": lambda ledger: ledger.verify(),
    "rebuild check": lambda ledger: ledger.rebuild(check=True),
    "describe": lambda ledger: ledger.describe(),
}
WRITES = {
    "record_thought": record,
    "record_thoughts": lambda ledger: ledger.record_thoughts([draft()]),
    "start_session": start,
    "seal_session": lambda ledger: ledger.seal_session("s1"),
    "end_session": lambda ledger: ledger.end_session("s1"),
    "create_task": lambda ledger: ledger.create_task(title="x"),
    "update_task": lambda ledger: ledger.update_task("k1", title="y"),
    "transition_task": lambda ledger: ledger.transition_task("k1", to="GATHER"),
    "delete_task": lambda ledger: ledger.delete_task("k1"),
    "set": lambda ledger: ledger.set(writeback="reflection"),
}


@pytest.fixture
def filled(open_ledger):
    """A ledger with a sealed session s1, a record r1 and a task k1, closed."""
    ids = iter(["ledger", "r1", "k1"])
    ledger = open_ledger(id_fn=lambda: next(ids))
    start(ledger, session_id="s1")
    reflect(ledger, session_id="s1")
    ledger.seal_session("s1")
    ledger.create_task(title="x")
    ledger.close()


@pytest.mark.parametrize("call", READS)
def test_a_reader_reads(filled, open_ledger, call):
    with open_ledger() as ledger:
        wanted = READS[call](ledger)
    reader = open_ledger(readonly=True)
    assert reader.readonly
    found = READS[call](reader)
    if call == "describe":
        assert (found["readonly"], found["entries"]) == (True, wanted["entries"])
    else:
        assert found == wanted


@pytest.mark.parametrize("call", WRITES)
def test_a_reader_writes_nothing(filled, open_ledger, path, call):
    before = snapshot(path)
    with refused("ERR_READONLY"):
        WRITES[call](open_ledger(readonly=True))
    assert snapshot(path) == before


def test_a_reader_repairs_nothing(filled, open_ledger):
    with refused("ERR_READONLY"):
        open_ledger(readonly=True).rebuild()


def test_a_reader_sees_what_a_writer_adds(open_ledger):
    writer, reader = open_ledger(), open_ledger(readonly=True)
    written = record(writer)
    assert reader.get_thought(written.id) == written


@pytest.mark.parametrize("call", READS | WRITES)
@pytest.mark.parametrize("place", ["file", ":memory:"])
def test_a_closed_handle_refuses_every_call(path, place, call):
    ledger = affidavit.open(path if place == "file" else place)
    ledger.close()
    ledger.close()
    with refused("ERR_STORE_UNAVAILABLE"):
        (READS | WRITES)[call](ledger)


def test_a_closed_handle_refuses_every_call_while_another_is_open(filled, open_ledger):
    closed, other = open_ledger(), open_ledger()
    closed.close()
    answered = []
    for name, call in (READS | WRITES).items():
        try:
            call(closed)
        except affidavit.StoreError:
            continue
        except affidavit.AffidavitError as error:
            answered.append(f"{name}: {error}")
        else:
            answered.append(name)
    assert answered == []
    assert len(other) == 5


def test_leaving_the_block_closes_the_handle(path):
    with affidavit.open(path) as ledger:
        record(ledger)
    with refused("ERR_STORE_UNAVAILABLE"):
        record(ledger)
    with pytest.raises(ZeroDivisionError), affidavit.open(path) as ledger:
        raise ZeroDivisionError
    with refused("ERR_STORE_UNAVAILABLE"):
        len(ledger)


def test_a_stream_ends_with_its_handle(ledger):
    ledger.record_thoughts([draft()] * 1_500)
    stream = ledger.iter_thoughts()
    next(stream)
    ledger.close()
    with refused("ERR_STORE_UNAVAILABLE"):
        list(stream)


def test_closing_one_handle_leaves_the_other(open_ledger):
    one, other = open_ledger(), open_ledger()
    record(one)
    one.close()
    assert record(other).index == 2
    assert len(other.list_thoughts()) == 2


def test_two_handles_share_one_chain(open_ledger, path, tmp_path):
    link = tmp_path / "link.db"
    one = open_ledger()
    link.symlink_to(path)
    with affidavit.open(link) as other:
        session_id = start(one)
        chain = [record(handle, session_id=session_id) for handle in (one, other) * 3]
        assert [later.prev_hash for later in chain[1:]] == [early.hash for early in chain[:-1]]
        assert [one.session_seq for one in chain] == list(range(6))
        assert one.list_thoughts() == other.list_thoughts() == chain


def test_two_handles_have_clocks_and_ids_of_their_own(open_ledger):
    one = open_ledger(id_fn=lambda: "one", clock=lambda: 10**15)
    other = open_ledger(id_fn=lambda: "other", clock=lambda: 2 * 10**15)
    first, second = record(one), record(other)
    assert (first.id, second.id) == ("one", "other")
    assert (first.at, second.at) == (10**15 + 1, 2 * 10**15)


def test_threads_on_two_handles_never_fork_a_chain(open_ledger, path):
    handles = (open_ledger(), open_ledger())
    session_id = start(handles[0])
    barrier = threading.Barrier(8)

    def work(number):
        barrier.wait()
        for n in range(20):
            record(handles[number % 2], session_id=session_id, content=f"{number} {n}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chain = handles[0].list_thoughts(task_id="t1")
    assert len(chain) == 160
    assert [later.prev_hash for later in chain[1:]] == [early.hash for early in chain[:-1]]
    assert [one.session_seq for one in chain] == list(range(160))
    assert [entry.index for entry in log(path)] == list(range(162))


WORKER = """
import sys, affidavit
with affidavit.open(sys.argv[1]) as ledger:
    sys.stdin.readline()
    for n in range(30):
        ledger.record_thought(
            type="plan", task_id="t1", agent_id=sys.argv[2], content=str(n), session_id="s1"
        )
"""


def test_processes_on_one_file_never_fork_a_chain(ledger, path):
    start(ledger, session_id="s1")
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, path, f"a{n}"], stdin=subprocess.PIPE, text=True
        )
        for n in range(3)
    ]
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    mine = [record(ledger, session_id="s1", agent_id="me") for _ in range(30)]
    for worker in workers:
        worker.communicate(timeout=60)
        assert worker.returncode == 0
    chain = ledger.list_thoughts(task_id="t1")
    assert len(chain) == 120
    assert [later.prev_hash for later in chain[1:]] == [early.hash for early in chain[:-1]]
    assert [one.session_seq for one in chain] == list(range(120))
    assert [one for one in chain if one.agent_id == "me"] == mine


def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path):
    place = tmp_path / "notes.txt"
    place.write_text("these are notes, not a ledger\n" * 100, encoding="utf-8")
    with refused("ERR_NOT_A_LEDGER"):
        affidavit.open(place)
    assert place.read_text(encoding="utf-8").startswith("these are notes")


def test_a_newer_ledger_is_refused_and_left_alone(open_ledger, path):
    open_ledger().close()
    before = Path(path).read_bytes()
    data = bytearray(before)
    data[60:64] = (99).to_bytes(4, "big")  # user_version
    Path(path).write_bytes(data)
    for options in ({}, {"readonly": True}):
        with refused("ERR_LEDGER_TOO_NEW"):
            affidavit.open(path, **options)
    assert Path(path).read_bytes() == data
    Path(path).write_bytes(before)


def test_a_folder_is_no_ledger(tmp_path):
    with refused("ERR_STORE_UNAVAILABLE"):
        affidavit.open(tmp_path)


def test_opening_does_not_hide_tampering(path):
    with affidavit.open(path) as ledger:
        written = record(ledger)
    tamper(path, "UPDATE thought_records SET content = 'x'")
    with affidavit.open(path) as ledger:
        assert record(ledger).prev_hash == written.hash
        assert not ledger.verify().valid
