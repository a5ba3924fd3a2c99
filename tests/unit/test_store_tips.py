"""What a process remembers of chains holds only while nobody else writes."""

import itertools

import pytest

import affidavit
from affidavit.errors import AffidavitError
from affidavit.stores.sqlite import registry, writing


def thought(task="t", **more):
    return {"type": "plan", "task_id": task, "agent_id": "a", "content": "c", **more}


@pytest.fixture
def two(path, monkeypatch):
    """Two handles that share nothing, as two processes would."""
    first = affidavit.open(path)
    shared = dict(registry._open)
    registry._open.clear()
    second = affidavit.open(path)
    assert first._context.store is not second._context.store
    yield first, second
    second.close()
    registry._open.update(shared)
    first.close()
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.verify().valid
        assert ledger.verify_chain(all=True).valid


def test_task_chains_written_by_turns_stay_linear(two):
    last = "0" * 64
    for step in range(30):
        record = two[step % 2].record_thought(**thought())
        assert record.prev_hash == last
        last = record.hash


def test_session_chains_written_by_turns_stay_linear(two):
    session = two[0].start_session(intent="i")
    parent = session.genesis
    for step in range(30):
        record = two[step // 3 % 2].record_thought(**thought(session_id=session.session_id))
        assert (record.session_seq, record.parent_chain_hash) == (step, parent)
        parent = record.chain_hash


def test_batches_and_single_records_by_turns_stay_linear(two):
    session = two[0].start_session(intent="i").session_id
    heads = {}
    for step in range(12):
        ledger = two[step % 2]
        batch = [thought(f"t{at % 3}", session_id=session) for at in range(1 + step % 4)]
        records = ledger.record_thoughts(batch) if step % 3 else [
            ledger.record_thought(**one) for one in batch
        ]  # fmt: skip
        for record in records:
            assert record.prev_hash == heads.get(record.task_id, "0" * 64)
            heads[record.task_id] = record.hash


def test_a_session_that_somebody_else_sealed_or_ended_takes_nothing_more(two):
    for close, code in (
        ("seal_session", "ERR_SESSION_SEALED"),
        ("end_session", "ERR_SESSION_ENDED"),
    ):
        session = two[0].start_session(intent="i").session_id
        for ledger in two:
            ledger.record_thought(**thought(session_id=session))
        getattr(two[1], close)(session)
        with pytest.raises(AffidavitError) as caught:
            two[0].record_thought(**thought(session_id=session))
        assert caught.value.code == code


def test_a_session_that_somebody_else_starts_is_found(two):
    with pytest.raises(AffidavitError):
        two[0].record_thought(**thought(session_id="s"))
    two[1].start_session(intent="i", session_id="s")
    assert two[0].record_thought(**thought(session_id="s")).session_seq == 0


def test_a_setting_that_somebody_else_changed_is_in_force(two):
    tasks = [two[0].create_task(title="t").id for _ in range(2)]
    for task in tasks:
        two[0].record_thought(**thought(task))
    two[0].update_task(tasks[0], status="DONE")
    two[1].set(writeback="reflection")
    with pytest.raises(AffidavitError) as caught:
        two[0].update_task(tasks[1], status="DONE")
    assert caught.value.code == "ERR_WRITEBACK_REQUIRED"


def test_a_refused_unit_leaves_no_tips_behind(open_ledger):
    ids = itertools.chain(
        ["ledger", "s", "one", "two", "three", "one"], map(str, itertools.count())
    )
    ledger = open_ledger(id_fn=lambda: next(ids))
    session = ledger.start_session(intent="i").session_id
    first = ledger.record_thought(**thought(session_id=session))
    with pytest.raises(AffidavitError) as caught:
        # The third repeats an id: what the first two left behind must be forgotten.
        ledger.record_thoughts([thought(session_id=session)] * 3)
    assert caught.value.code == "ERR_DUPLICATE_RECORD"
    record = ledger.record_thought(**thought(session_id=session))
    assert (record.prev_hash, record.parent_chain_hash) == (first.hash, first.chain_hash)


def test_tips_are_kept_for_so_many_chains_only(open_ledger, monkeypatch):
    monkeypatch.setattr(writing, "_TIPS_MAX", 10)
    ledger = open_ledger()
    heads = {}
    for step in range(60):
        task = f"t{step % 25}"
        record = ledger.record_thought(**thought(task))
        assert record.prev_hash == heads.get(task, "0" * 64)
        heads[task] = record.hash
        assert len(ledger._context.store._committer._tips.tasks) <= 12


def test_tips_are_used_while_nobody_else_writes(open_ledger):
    ledger = open_ledger()
    session = ledger.start_session(intent="i").session_id
    ledger.record_thought(**thought(session_id=session))
    store = ledger._context.store
    ran = []
    store._committer.connection().set_trace_callback(ran.append)
    ledger.record_thought(**thought(session_id=session))
    store._committer.connection().set_trace_callback(None)
    # BEGIN, head, entry, row, COMMIT: chains are not looked up again.
    assert len(ran) == 5, ran
