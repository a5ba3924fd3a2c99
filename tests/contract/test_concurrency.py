"""Threads: they share commits, fail alone, and never slip through a gate."""

import threading

import pytest

from affidavit.errors import AffidavitError
from contract.calls import draft, record, reflect, refused, start
from contract.oracle import ZEROS, log

CALLERS = 64


def at_once(*calls):
    """Run calls in a thread each, let go together; their answers or errors in order."""
    barrier = threading.Barrier(len(calls))
    answers = [None] * len(calls)

    def run(place, call):
        barrier.wait()
        try:
            answers[place] = call()
        except AffidavitError as error:
            answers[place] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def commits(ledger):
    return ledger._context.store.commit_count


def writer(ledger, **given):
    return lambda: record(ledger, **given)


def test_concurrent_calls_share_commits(ledger):
    before = commits(ledger)
    answers = at_once(*(writer(ledger, content=str(n)) for n in range(CALLERS)))
    assert 1 <= commits(ledger) - before <= 8
    assert sorted(one.content for one in answers) == sorted(map(str, range(CALLERS)))
    assert sorted(one.index for one in answers) == list(range(1, CALLERS + 1))


def test_concurrent_calls_make_one_chain(ledger):
    session_id = start(ledger)
    at_once(*(writer(ledger, session_id=session_id, content=str(n)) for n in range(CALLERS)))
    chain = ledger.list_thoughts(task_id="t1")
    assert [one.prev_hash for one in chain] == [ZEROS, *(one.hash for one in chain[:-1])]
    assert [one.session_seq for one in chain] == list(range(CALLERS))


def test_every_unit_in_a_shared_commit_has_a_time_of_its_own(open_ledger):
    ledger = open_ledger(clock=lambda: 10**15)
    answers = at_once(*(writer(ledger) for _ in range(CALLERS)))
    assert sorted(one.at for one in answers) == [10**15 + n for n in range(1, CALLERS + 1)]


def test_a_call_for_an_unknown_session_fails_alone(ledger):
    before = commits(ledger)
    calls = [writer(ledger, content=str(n)) for n in range(CALLERS)]
    calls[17] = writer(ledger, session_id="typo")
    answers = at_once(*calls)
    failed = [place for place, one in enumerate(answers) if isinstance(one, AffidavitError)]
    assert failed == [17]
    assert answers[17].code == "ERR_SESSION_NOT_FOUND"
    assert 1 <= commits(ledger) - before <= 8
    assert len(ledger.list_thoughts()) == CALLERS - 1


def test_a_call_that_repeats_an_id_fails_alone(ledger):
    record(ledger, id_fn=lambda: "r1")
    calls = [writer(ledger, content=str(n)) for n in range(CALLERS)]
    calls[17] = writer(ledger, id_fn=lambda: "r1")
    answers = at_once(*calls)
    failed = [place for place, one in enumerate(answers) if isinstance(one, AffidavitError)]
    assert failed == [17]
    assert answers[17].code == "ERR_DUPLICATE_RECORD"
    assert len(ledger.list_thoughts()) == CALLERS


def test_of_calls_with_one_id_one_is_recorded(ledger):
    answers = at_once(*(writer(ledger, id_fn=lambda: "r1") for _ in range(8)))
    refusals = [one.code for one in answers if isinstance(one, AffidavitError)]
    assert refusals == ["ERR_DUPLICATE_RECORD"] * 7
    assert len(ledger.list_thoughts()) == 1


def test_a_batch_that_fails_half_way_fails_alone(ledger):
    calls = [writer(ledger, content=str(n)) for n in range(16)]
    calls[3] = lambda: ledger.record_thoughts([draft(), draft(session_id="typo")])
    answers = at_once(*calls)
    assert answers[3].code == "ERR_SESSION_NOT_FOUND"
    assert len(ledger.list_thoughts()) == 15


def test_batches_stay_together(ledger):
    def batch(name):
        return lambda: ledger.record_thoughts([draft(content=f"{name} {n}") for n in range(20)])

    answers = at_once(*(batch(name) for name in "abcdefgh"))
    for written in answers:
        first = written[0].index
        assert [one.index for one in written] == list(range(first, first + 20))
    assert len(ledger) == 161


def test_of_sessions_with_one_id_one_starts(ledger):
    answers = at_once(*(lambda: start(ledger, session_id="s1") for _ in range(8)))
    refusals = [one.code for one in answers if isinstance(one, AffidavitError)]
    assert refusals == ["ERR_SESSION_EXISTS"] * 7


def test_a_session_is_sealed_once_and_over_all_that_it_took(ledger):
    for _ in range(10):
        session_id = start(ledger)
        reflect(ledger, session_id=session_id)
        calls = [writer(ledger, session_id=session_id) for _ in range(8)]
        calls += [lambda one=session_id: ledger.seal_session(one)] * 4
        answers = at_once(*calls)
        taken = [one for one in answers[:8] if not isinstance(one, AffidavitError)]
        assert {one.code for one in answers[:8] if one not in taken} <= {"ERR_SESSION_SEALED"}
        assert len({one.root for one in answers[8:]}) == 1
        assert sum(not one.already_finalized for one in answers[8:]) == 1
        assert answers[8].record_count == len(taken) + 1


@pytest.mark.parametrize("writeback", ["any", "reflection"])
def test_no_task_slips_through_the_gate(open_ledger, path, writeback):
    ledger = open_ledger(settings={"writeback": writeback})
    tasks = [ledger.create_task(title=str(n)).id for n in range(15)]
    for task in tasks:
        at_once(
            lambda task=task: reflect(ledger, task_id=task),
            lambda task=task: record(ledger, task_id=task),
            lambda task=task: ledger.update_task(task, status="DONE"),
            lambda task=task: ledger.update_task(task, status="DONE"),
        )
    newest, done = {}, set()
    for entry in log(path):
        task = entry.body.get("task_id")
        if entry.kind == "thought.recorded":
            newest[task] = entry.body["type"]
        elif entry.kind == "task.updated" and task not in done:
            opens = ("reflection",) if writeback == "reflection" else ("reflection", "plan")
            assert newest.get(task) in opens
            done.add(task)


def test_of_moves_from_one_state_one_is_made(ledger):
    for _ in range(10):
        task = ledger.create_task(title="x").id
        answers = at_once(*[lambda task=task: ledger.transition_task(task, to="GATHER")] * 4)
        refusals = [one.code for one in answers if isinstance(one, AffidavitError)]
        assert refusals == ["ERR_INVALID_TRANSITION"] * 3


def test_of_deletions_of_one_task_one_is_made(ledger):
    task = ledger.create_task(title="x").id
    answers = at_once(*[lambda: ledger.delete_task(task)] * 8)
    refusals = [one.code for one in answers if isinstance(one, AffidavitError)]
    assert refusals == ["ERR_NOT_FOUND"] * 7


def test_readers_see_whole_units_only(ledger):
    stop = threading.Event()
    seen = []

    def read():
        while not stop.is_set():
            seen.append(len(ledger.list_thoughts()))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(30):
        ledger.record_thoughts([draft()] * 10)
    stop.set()
    reader.join()
    assert {count % 10 for count in seen} == {0}
    assert seen == sorted(seen)


def test_verifying_while_others_write_finds_nothing(ledger):
    session_id = start(ledger)
    calls = [writer(ledger, session_id=session_id) for _ in range(16)]
    answers = at_once(*calls, ledger.verify, ledger.verify_chain, ledger.verify)
    assert all(one.valid for one in answers[16:])


def test_an_open_stream_and_a_refused_call_do_not_block_others(ledger):
    ledger.record_thoughts([draft()] * 1_200)
    stream = ledger.iter_thoughts()
    next(stream)
    with refused("ERR_SESSION_NOT_FOUND"):
        record(ledger, session_id="typo")
    answers = at_once(*(writer(ledger) for _ in range(4)))
    assert len(answers) == 4
    assert len(list(stream)) == 1_199
