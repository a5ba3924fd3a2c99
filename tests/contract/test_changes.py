"""The change feed: each index once, in log order, from any process, however often it is killed."""

import os
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from pathlib import Path

import pytest

from affidavit.core.kinds import BODIES
from contract.calls import record, refused

ID = "0b0e8c1a-0000-4000-8000-000000000001"
WRITERS, FACTS, KILLS = 3, 60, 20


def take(subscription, count):
    found = [subscription.take(timeout_s=10) for _ in range(count)]
    assert None not in found
    return found


def test_changes_come_with_what_was_and_what_is(ledger):
    feed = ledger.subscribe()
    ledger.upsert_turn(ID, ID, "user", "one")
    ledger.upsert_turn(ID, ID, "user", "two")
    ledger.retract_turn(ID)
    first, second, third = take(feed, 3)
    assert [one.op for one in (first, second, third)] == ["assert", "assert", "retract"]
    assert (first.old, first.new["content"]) == (None, "one")
    assert (second.old["content"], second.new["content"]) == ("one", "two")
    assert (third.old["content"], third.new) == ("two", None)
    index, op, kind, new, _ = first
    assert (index, op, kind) == (1, "assert", "turn.asserted")
    assert not [name for name in new if name.endswith("salt")]
    assert feed.take(timeout_s=0) is None


def test_kinds_and_where_to_begin(ledger):
    record(ledger)
    ledger.request_tool_call(ID, "c", vendor="v", tool_name="t", arguments={})
    ledger.finish_tool_call(ID, "c", "completed")
    ledger.start_session(intent="i", session_id="s")
    ledger.end_session("s")
    every = take(ledger.subscribe(since=0, capacity=2), 6)
    assert [one.index for one in every] == list(range(6))
    assert [c.kind for c in take(ledger.subscribe(["tool_call"], since=0), 2)] == [
        "tool_call.requested", "tool_call.completed",
    ]  # fmt: skip
    (only,) = take(ledger.subscribe(["session.ended"], since=0), 1)
    assert only.new["session_id"] == "s"


def test_nothing_of_an_undone_transaction_comes(ledger):
    feed = ledger.subscribe()
    with ledger.transaction() as tx:
        tx.upsert_turn(ID, ID, "user", "undone")
        assert feed.take(timeout_s=0.05) is None
        tx.abort()
    ledger.upsert_turn(ID, ID, "user", "kept")
    assert take(feed, 1)[0].new["content"] == "kept"


def test_closing_lets_a_waiting_reader_go(open_ledger):
    for close_ledger in (False, True):
        ledger = open_ledger()
        feed = ledger.subscribe()
        seen = []
        reader = threading.Thread(target=lambda feed=feed, seen=seen: seen.extend(feed))
        reader.start()
        (ledger if close_ledger else feed).close()
        if close_ledger:
            feed.close()
        reader.join(10)
        assert not reader.is_alive()
        assert seen == []


def test_an_error_in_one_callback_harms_nobody(ledger):
    told, done, failed = [], threading.Event(), threading.Event()

    def fail(change):
        if change.index == 3:
            failed.set()
        raise ValueError(change.index)

    def tell(change):
        told.append(change.index)
        if len(told) == 3:
            done.set()

    bad, good = ledger.on_change("turn", fail), ledger.on_change("turn.asserted", tell)
    for number in range(3):
        ledger.upsert_turn(str(uuid.UUID(int=number)), ID, "user", "x")
    assert done.wait(10)
    assert failed.wait(10)
    for handle in (bad, good):
        handle.close()
    assert told == [1, 2, 3]
    assert bad.last_error.args == (3,)
    ledger.upsert_turn(ID, ID, "user", "after")
    time.sleep(0.05)
    assert told == [1, 2, 3]


WRITER = """
    import sys, affidavit
    with affidavit.open(sys.argv[1]) as ledger:
        for number in range(int(sys.argv[3])):
            ledger.record_thought(
                type="plan", task_id=sys.argv[2], agent_id="a", content=str(number))
"""
READER = """
    import os, sys, affidavit
    seen = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    with affidavit.open(sys.argv[1]) as ledger:
        for change in ledger.subscribe(since=int(sys.argv[3])):
            os.write(seen, b"%d\\n" % change.index)
"""


@pytest.mark.parametrize("kills", [KILLS])
def test_each_index_comes_once_whatever_is_killed(ledger, path, tmp_path, kills):
    seen = tmp_path / "seen"
    seen.touch()

    def run(script, *arguments):
        code = textwrap.dedent(script)
        return subprocess.Popen([sys.executable, "-c", code, path, *map(str, arguments)])

    def read():
        return [int(line) for line in seen.read_text().splitlines()]

    writers = [run(WRITER, f"t{n}", FACTS) for n in range(WRITERS)]
    for _ in range(kills):
        known = len(read())
        reader = run(READER, seen, known)
        wait_until(lambda known=known: len(read()) > known or len(read()) == len(ledger))
        reader.kill()
        reader.wait()
    assert [writer.wait(60) for writer in writers] == [0] * WRITERS
    reader = run(READER, seen, len(read()))
    wait_until(lambda: len(read()) == len(ledger))
    reader.kill()
    reader.wait()
    assert read() == list(range(1 + WRITERS * FACTS))
    assert os.path.getsize(path) > 0
    assert Path(path).exists()


def wait_until(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("kind", ["turnn", "turn.asserte", "turn.", ".asserted", "Turn"])
def test_a_kind_that_never_comes_is_refused(ledger, kind):
    with refused("INVALID_PARAMS", "kinds"):
        ledger.subscribe(kinds=["turn", kind])
    with refused("INVALID_PARAMS", "kind"):
        ledger.on_change(kind, print)


def test_every_kind_and_every_noun_can_be_waited_for(ledger):
    kinds = list(BODIES)
    ledger.subscribe(kinds=[*kinds, *(kind.partition(".")[0] for kind in kinds)]).close()
