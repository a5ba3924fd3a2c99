"""Safe retries: the same key and input repeat the first answer, whatever happened since."""

import contextlib
import threading

import pytest

import affidavit
from affidavit.ledger.ledger import Ledger
from contract.calls import Clock, draft, record, reflect, refused, start
from contract.oracle import snapshot
from tamper.attack import tampering


def prepared(ledger):
    """A ledger on which every writing call below is allowed."""
    start(ledger, session_id="s1")
    reflect(ledger, session_id="s1", task_id="t1")
    start(ledger, session_id="s2")
    return ledger.create_task(title="x", description="d").id


WRITES = {
    "record_thought": lambda ledger, task, **key: ledger.record_thought(
        **draft(session_id="s2"), **key
    ),
    "record_thoughts": lambda ledger, task, **key: ledger.record_thoughts(
        [draft(content="a"), draft(content="b", session_id="s2")], **key
    ),
    "start_session": lambda ledger, task, **key: ledger.start_session(
        intent="x", caller="c", project="p", **key
    ),
    "seal_session": lambda ledger, task, **key: ledger.seal_session("s1", **key),
    "end_session": lambda ledger, task, **key: ledger.end_session("s1", reason="failed", **key),
    "create_task": lambda ledger, task, **key: ledger.create_task(
        title="y", description="e", **key
    ),
    "update_task": lambda ledger, task, **key: ledger.update_task(
        task, title="z", priority="high", **key
    ),
    "transition_task": lambda ledger, task, **key: ledger.transition_task(
        task, to="CANCELLED", reason="because", **key
    ),
    "delete_task": lambda ledger, task, **key: ledger.delete_task(task, reason="because", **key),
    "set": lambda ledger, task, **key: ledger.set(writeback="reflection", by="ana", **key),
}


def life_goes_on(ledger, task):
    """Everything the first answers speak of changes."""
    ledger.set(writeback="any")
    for one in ledger.list_sessions():
        if one.state == "open":
            record(ledger, session_id=one.session_id)
        if ledger.get_session(one.session_id).record_count:
            ledger.seal_session(one.session_id)
        ledger.end_session(one.session_id)
    for one in ledger.list_tasks().tasks:
        ledger.update_task(one.id, title="later", description="later", status="PLAN")
        ledger.delete_task(one.id)
    record(ledger)


def test_every_writing_call_takes_a_key():
    keyed = {
        name
        for name in dir(Ledger)
        if "idempotency_key" in getattr(getattr(Ledger, name), "__annotations__", {})
    }
    assert keyed == set(WRITES)


@pytest.mark.parametrize("call", WRITES)
def test_the_first_answer_is_given_again_and_nothing_is_written(ledger, path, call):
    task = prepared(ledger)
    first = WRITES[call](ledger, task, idempotency_key="k1")
    before = snapshot(path)
    assert WRITES[call](ledger, task, idempotency_key="k1") == first
    assert snapshot(path) == before


@pytest.mark.parametrize("call", WRITES)
def test_the_first_answer_is_given_again_after_later_changes(ledger, path, call):
    task = prepared(ledger)
    first = WRITES[call](ledger, task, idempotency_key="k1")
    life_goes_on(ledger, task)
    before = snapshot(path)
    assert WRITES[call](ledger, task, idempotency_key="k1") == first
    assert snapshot(path) == before


@pytest.mark.parametrize("call", WRITES)
def test_the_first_answer_is_given_again_after_opening_anew(open_ledger, call):
    ledger = open_ledger()
    task = prepared(ledger)
    first = WRITES[call](ledger, task, idempotency_key="k1")
    ledger.close()
    assert WRITES[call](open_ledger(), task, idempotency_key="k1") == first


OTHERS = {
    "record_thought": lambda ledger, task, **key: ledger.record_thought(**draft(), **key),
    "record_thoughts": lambda ledger, task, **key: ledger.record_thoughts([draft()], **key),
    "start_session": lambda ledger, task, **key: ledger.start_session(intent="y", **key),
    "seal_session": lambda ledger, task, **key: ledger.seal_session("s2", **key),
    "end_session": lambda ledger, task, **key: ledger.end_session("s1", reason="done", **key),
    "create_task": lambda ledger, task, **key: ledger.create_task(title="y", **key),
    "update_task": lambda ledger, task, **key: ledger.update_task(
        task, title="z", priority=None, **key
    ),
    "transition_task": lambda ledger, task, **key: ledger.transition_task(task, to="GATHER", **key),
    "delete_task": lambda ledger, task, **key: ledger.delete_task(task, **key),
    "set": lambda ledger, task, **key: ledger.set(writeback="reflection", by="bob", **key),
}


@pytest.mark.parametrize("call", WRITES)
def test_the_same_key_with_other_input_is_refused(ledger, path, call):
    task = prepared(ledger)
    WRITES[call](ledger, task, idempotency_key="k1")
    before = snapshot(path)
    with refused("ERR_IDEMPOTENCY_MISMATCH"):
        OTHERS[call](ledger, task, idempotency_key="k1")
    assert snapshot(path) == before


@pytest.mark.parametrize("call", WRITES)
def test_the_same_key_for_another_call_is_refused(ledger, path, call):
    task = prepared(ledger)
    used = "create_task" if call != "create_task" else "record_thought"
    WRITES[used](ledger, task, idempotency_key="k1")
    before = snapshot(path)
    with refused("ERR_IDEMPOTENCY_MISMATCH"):
        WRITES[call](ledger, task, idempotency_key="k1")
    assert snapshot(path) == before


@pytest.mark.parametrize("call", WRITES)
def test_other_keys_are_other_calls(ledger, call):
    task = prepared(ledger)
    if call == "delete_task":
        WRITES[call](ledger, task, idempotency_key="k1")
        with refused("ERR_NOT_FOUND"):
            WRITES[call](ledger, task, idempotency_key="k2")
        return
    if call == "transition_task":
        WRITES[call](ledger, task, idempotency_key="k1")
        with refused("ERR_INVALID_TRANSITION"):
            WRITES[call](ledger, task, idempotency_key="k2")
        return
    WRITES[call](ledger, task, idempotency_key="k1")
    WRITES[call](ledger, task, idempotency_key="k2")


def test_a_refused_call_leaves_its_key_unused(ledger):
    task = ledger.create_task(title="x")
    for _ in range(2):
        with refused("ERR_WRITEBACK_REQUIRED"):
            ledger.update_task(task.id, status="DONE", idempotency_key="k1")
    record(ledger, task_id=task.id)
    assert ledger.update_task(task.id, status="DONE", idempotency_key="k1").status == "DONE"
    ledger.update_task(task.id, status="PLAN")
    assert ledger.update_task(task.id, status="DONE", idempotency_key="k1").status == "DONE"
    assert ledger.get_task(task.id).status == "PLAN"


def test_an_empty_batch_uses_its_key_too(ledger):
    assert ledger.record_thoughts([], idempotency_key="k1") == []
    assert ledger.record_thoughts([], idempotency_key="k1") == []
    with refused("ERR_IDEMPOTENCY_MISMATCH"):
        ledger.record_thoughts([draft()], idempotency_key="k1")


def test_minted_ids_and_times_are_not_part_of_the_input(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    first = record(ledger, idempotency_key="k1")
    clock.advance(1_000_000)
    assert record(ledger, idempotency_key="k1", id_fn=lambda: "another") == first


def test_a_default_given_in_words_is_the_same_input(ledger):
    session_id = start(ledger)
    first = ledger.end_session(session_id, idempotency_key="k1")
    assert ledger.end_session(session_id, reason="done", idempotency_key="k1") == first
    task = ledger.create_task(title="x", idempotency_key="k2")
    again = ledger.create_task(title="x", status="INIT", project_id=None, idempotency_key="k2")
    assert again == task


def test_a_retry_of_a_seal_says_again_that_it_was_the_first(ledger):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    first = ledger.seal_session(session_id, idempotency_key="k1")
    second = ledger.seal_session(session_id, idempotency_key="k2")
    assert (first.already_finalized, second.already_finalized) == (False, True)
    assert ledger.seal_session(session_id, idempotency_key="k1") == first
    assert ledger.seal_session(session_id, idempotency_key="k2") == second


def test_threads_with_one_key_record_one_fact(ledger):
    barrier, answers = threading.Barrier(16), []

    def call():
        barrier.wait()
        answers.append(record(ledger, idempotency_key="k1"))

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 16
    assert len(set(answers)) == 1
    assert len(ledger) == 2


def test_what_is_kept_of_a_call_is_no_copy_of_its_text(ledger, path):
    record(ledger, content="between us", idempotency_key="k1")
    (row,) = snapshot(path)["idempotency_keys"]
    assert b"between us" not in b"".join(
        v if isinstance(v, bytes) else str(v).encode() for v in row
    )


def test_a_reader_refuses_keyed_calls_too(path):
    with affidavit.open(path) as ledger:
        record(ledger, idempotency_key="k1")
    with affidavit.open(path, readonly=True) as ledger, refused("ERR_READONLY"):
        record(ledger, idempotency_key="k1")


@pytest.mark.parametrize("name", WRITES)
def test_a_key_bent_to_other_entries_is_refused_in_this_packages_words(name, path):
    """The table is not judged (`tests/tamper/exempt.txt`): what a retry is told may be wrong."""
    with affidavit.open(path) as ledger:
        task = prepared(ledger)
        WRITES[name](ledger, task, idempotency_key="k")
        for first, last in ((0, 0), (-1, 5), (3, 1), (2**40, 2**40)):
            with tampering(path) as connection:
                sql = "UPDATE idempotency_keys SET first_index = ?, last_index = ?"
                connection.execute(sql, (first, last))
            with contextlib.suppress(affidavit.IntegrityViolation):
                WRITES[name](ledger, task, idempotency_key="k")
