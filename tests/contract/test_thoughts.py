"""Decision records: chains, order, batches, lists and streams."""

from itertools import repeat

import pytest

import affidavit
from affidavit.errors import InputError
from contract.calls import Clock, Ids, draft, record, reflect, refused, start
from contract.oracle import ZEROS, log, select, snapshot, tamper, task_hash


def test_a_record_carries_one_hash_for_its_task_and_two_for_its_session(ledger):
    bound, unbound = record(ledger, session_id=start(ledger)), record(ledger)
    assert None not in (bound.content_hash, bound.chain_hash, bound.parent_chain_hash)
    assert bound.session_seq == 0
    assert unbound.prev_hash == bound.hash
    assert (unbound.content_hash, unbound.chain_hash, unbound.parent_chain_hash) == (None,) * 3
    assert unbound.session_seq is None


def test_the_entry_of_a_record_says_all_but_its_content(ledger, path):
    written = record(ledger, session_id=start(ledger), content="between us")
    entry = log(path)[written.index]
    shown = written.to_dict()
    assert entry.kind == "thought.recorded"
    assert entry.body == {
        key: shown[key] for key in shown if key not in ("content", "index", "at", "erased")
    }
    assert entry.src == {"auth": "none", "client": None, "via": "python"}
    assert b"between us" not in entry.raw


def test_no_free_text_stands_in_the_log(ledger, path):
    texts = [f"secret number {n}" for n in range(7)]
    session_id = start(ledger, intent=texts[0])
    record(ledger, content=texts[1], session_id=session_id)
    task = ledger.create_task(title=texts[2], description=texts[3])
    ledger.update_task(task.id, title=texts[4], description=texts[5])
    ledger.transition_task(task.id, to="CANCELLED", reason=texts[6])
    raw = b"".join(entry.raw for entry in log(path))
    assert [text for text in texts if text.encode() in raw] == []


@pytest.mark.parametrize("column", ["agent_id", "session_id"])
@pytest.mark.parametrize("bound", [True, False])
def test_authorship_cannot_be_rewritten(path, column, bound):
    with affidavit.open(path) as ledger:
        session_id, other = start(ledger), start(ledger)
        written = record(ledger, session_id=session_id if bound else None)
    value = other if column == "session_id" else "somebody else"
    tamper(path, f"UPDATE thought_records SET {column} = ? WHERE id = ?", value, written.id)
    with affidavit.open(path, readonly=True) as ledger:
        report = ledger.verify()
    assert ("view_differs", written.index) in {(one.code, one.index) for one in report.findings}


def test_the_latest_record_of_a_task_is_the_one_written_last(ledger):
    times = ["2030-01-01T00:00:00Z", "2010-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]
    chain = [record(ledger, now_fn=lambda time=time: time) for time in times]
    assert [one.prev_hash for one in chain] == [ZEROS, chain[0].hash, chain[1].hash]
    assert [one.timestamp for one in ledger.list_thoughts()] == times


def test_records_of_one_millisecond_stay_in_the_order_of_writing(open_ledger):
    ledger = open_ledger(clock=Clock(), id_fn=Ids())
    written = [record(ledger, content=str(n)) for n in range(30)]
    assert len({one.timestamp for one in written}) == 1
    assert ledger.list_thoughts() == ledger.list_thoughts(task_id="t1") == written


def test_an_injected_timestamp_is_kept_as_it_is_written(ledger, path):
    for time in ("2026-04-17T00:00:00Z", "1999-12-31T23:59:59.123456789Z"):
        written = record(ledger, now_fn=lambda time=time: time)
        assert written.timestamp == ledger.get_thought(written.id).timestamp == time
        assert log(path)[-1].body["timestamp"] == time


def test_a_minted_timestamp_comes_from_the_ledgers_clock(open_ledger):
    ledger = open_ledger(clock=lambda: 1_776_427_200_123_456)
    assert record(ledger).timestamp == "2026-04-17T12:00:00.123Z"


@pytest.mark.parametrize("bound", [True, False])
def test_a_repeated_id_is_refused_and_nothing_is_written(ledger, path, bound):
    record(ledger, id_fn=lambda: "r1")
    session_id = start(ledger) if bound else None
    before = snapshot(path)
    with refused("ERR_DUPLICATE_RECORD"):
        record(ledger, id_fn=lambda: "r1", content="other", task_id="other", session_id=session_id)
    assert snapshot(path) == before
    assert record(ledger, session_id=session_id).content == "a thought"


def test_a_task_id_is_a_label(ledger):
    assert record(ledger, task_id="no task has this id").task_id == "no task has this id"
    session = ledger.start_session(intent="x", task_id="nor this one")
    assert session.task_id == "nor this one"
    assert ledger.list_tasks(include_deleted=True).total_count == 0


def test_a_deleted_task_still_takes_records(ledger):
    task = ledger.create_task(title="x")
    ledger.delete_task(task.id)
    assert record(ledger, task_id=task.id).prev_hash == ZEROS


def test_a_record_for_an_unknown_session_is_refused(ledger):
    with refused("ERR_SESSION_NOT_FOUND", "session_id"):
        record(ledger, session_id="typo")
    assert ledger.get_session("typo") is None
    assert len(ledger) == 1


def test_content_is_kept_exactly(ledger):
    texts = [
        "\ufeff e\u0301 \u00e9",
        "\r\n\t",
        "\u2028\u2029\u0085",
        "\x01\x7f",
        '"\\/',
        "\U0010ffff",
        " ",
    ]
    for text in texts:
        written = record(ledger, content=text)
        assert ledger.get_thought(written.id).content == text
        assert written.hash == task_hash(written)


def test_a_batch_is_recorded_in_its_order_as_one_unit(ledger):
    session_id = start(ledger)
    batch = [draft(content=str(n), task_id=f"t{n % 2}", session_id=session_id) for n in range(6)]
    written = ledger.record_thoughts(batch)
    assert [one.content for one in written] == list("012345")
    assert [one.index for one in written] == list(range(2, 8))
    assert [one.session_seq for one in written] == list(range(6))
    assert len({one.at for one in written}) == 1
    assert written[2].prev_hash == written[0].hash
    assert ledger.list_thoughts() == written


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"content": ""}, "INVALID_PARAMS"),
        ({"session_id": "typo"}, "ERR_SESSION_NOT_FOUND"),
        ({"kind": "plan"}, "INVALID_PARAMS"),
    ],
)
def test_a_batch_with_one_bad_record_writes_nothing(ledger, path, bad, code):
    before = snapshot(path)
    with refused(code):
        ledger.record_thoughts([draft(), draft(), {**draft(), **bad}, draft()])
    assert snapshot(path) == before
    assert record(ledger).prev_hash == ZEROS


def test_a_batch_that_repeats_an_id_writes_nothing(open_ledger, path):
    ids = iter(["ledger", "r1", "r2", "r1", "r3"])
    ledger = open_ledger(id_fn=lambda: next(ids))
    with refused("ERR_DUPLICATE_RECORD"):
        ledger.record_thoughts([draft(), draft(), draft()])
    assert select(path, "SELECT count(*) FROM log") == [(1,)]
    assert record(ledger).id == "r3"


def test_a_batch_takes_ten_thousand_records_and_not_one_more(ledger):
    with refused("ERR_TOO_LARGE", "records") as caught:
        ledger.record_thoughts(repeat(draft()))
    assert "10,000" in str(caught.value)
    assert len(ledger) == 1
    assert len(ledger.record_thoughts(repeat(draft(), 10_000))) == 10_000
    assert len(ledger) == 10_001


def test_an_empty_batch_is_no_fact(ledger):
    assert ledger.record_thoughts([]) == []
    assert len(ledger) == 1


def test_a_batch_may_come_from_any_iterable(ledger):
    written = ledger.record_thoughts(draft(content=text) for text in "ab")
    assert [one.content for one in written] == ["a", "b"]


@pytest.fixture
def mixed(ledger):
    """Twelve records over two tasks, two sessions and three types."""
    sessions = (start(ledger, session_id="s0"), start(ledger, session_id="s1"), None)
    kinds = ("plan", "decision", "reflection")
    return [
        record(ledger, task_id=f"t{n % 2}", session_id=sessions[n % 3], type=kinds[n // 4])
        for n in range(12)
    ]


@pytest.mark.parametrize("task_id", [None, "t0", "none such"])
@pytest.mark.parametrize("session_id", [None, "s1", "none such"])
@pytest.mark.parametrize("kind", [None, "decision"])
def test_filters_of_a_list_work_together(ledger, mixed, task_id, session_id, kind):
    wanted = {"task_id": task_id, "session_id": session_id, "type": kind}
    matching = [
        one
        for one in mixed
        if all(value is None or getattr(one, name) == value for name, value in wanted.items())
    ]
    assert ledger.list_thoughts(**wanted) == list(ledger.iter_thoughts(**wanted)) == matching
    assert ledger.list_thoughts(**wanted, limit=1) == matching[:1]
    behind = [one for one in matching if one.index > mixed[4].index]
    assert ledger.list_thoughts(**wanted, after=mixed[4].id) == behind
    assert ledger.list_thoughts(**wanted, after=mixed[4].id, limit=2) == behind[:2]
    assert list(ledger.iter_thoughts(**wanted, after=mixed[4].id)) == behind


def test_pages_by_the_last_id_seen_cover_a_list_once(ledger, mixed):
    seen, after = [], None
    while page := ledger.list_thoughts(after=after, limit=5):
        seen += page
        after = page[-1].id
    assert seen == mixed


def test_after_an_unknown_record_is_refused(ledger):
    with refused("ERR_NOT_FOUND", "after"):
        ledger.list_thoughts(after="no-such-id")
    with refused("ERR_NOT_FOUND", "after"):
        next(ledger.iter_thoughts(after="no-such-id"))


def test_a_list_without_a_limit_has_everything(ledger):
    written = ledger.record_thoughts(repeat(draft(), 2_500))
    assert ledger.list_thoughts() == ledger.list_thoughts(limit=10_000) == written


def test_a_stream_goes_on_while_others_write(ledger):
    written = ledger.record_thoughts(repeat(draft(), 2_500))
    stream = ledger.iter_thoughts()
    seen = [next(stream)]
    for one in stream:
        seen.append(one)
        if len(seen) % 500 == 0:
            record(ledger, content="meanwhile")
    assert seen == written
    assert len(ledger.list_thoughts()) == 2_505


def test_a_stream_holds_no_lock_between_its_steps(ledger):
    record(ledger)
    stream = ledger.iter_thoughts()
    assert next(stream).content == "a thought"
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    ledger.seal_session(session_id)
    assert list(stream) == []


def test_a_stream_checks_its_arguments_before_its_first_step(ledger):
    with pytest.raises(InputError):
        ledger.iter_thoughts(type="observation")
