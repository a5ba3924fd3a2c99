"""Sessions: how they start, continue, end, and are lost; their states and what each refuses."""

import pytest

import affidavit
from contract.calls import HOUR_US, Clock, draft, record, reflect, refused, start
from contract.oracle import genesis, log, select, snapshot


def test_a_session_starts_with_everything_it_was_given(ledger):
    session = ledger.start_session(
        intent="ship it",
        caller="agent-1",
        task_id="t1",
        session_id="s1",
        proof_grade=True,
        project="p1",
        model="m1",
    )
    assert (session.session_id, session.intent, session.caller) == ("s1", "ship it", "agent-1")
    assert (session.task_id, session.proof_grade) == ("t1", True)
    assert (session.project, session.model, session.continues) == ("p1", "m1", None)
    assert (session.state, session.record_count, session.root) == ("open", 0, None)
    assert ledger.get_session("s1") == session


def test_what_is_not_given_is_null(ledger):
    session = ledger.start_session(intent="x")
    assert (session.caller, session.task_id, session.project, session.model) == (None,) * 4
    assert session.proof_grade is False


def test_the_start_is_an_entry_with_the_seven_keys_and_its_genesis(ledger, path):
    session = ledger.start_session(intent="x", caller="c", task_id="t1", project="p", model="m")
    (started,) = log(path, "session.started")
    assert started.body.keys() == {
        "caller", "continues", "ledger_id", "proof_grade", "session_id", "started_at", "task_id",
        "genesis", "intent", "project", "model",
    }  # fmt: skip
    assert started.body["ledger_id"] == ledger.ledger_id
    assert started.body["genesis"] == genesis(started.body) == session.genesis
    assert started.body["intent"].keys() == {"bytes", "commit"}
    assert (started.index, started.at) == (session.index, session.at)


def test_the_start_time_is_rendered_from_the_entrys_own_time(open_ledger):
    ledger = open_ledger(clock=lambda: 1_776_427_200_123_999)
    session = ledger.start_session(intent="x")
    assert session.at == 1_776_427_200_124_000  # the ledger's own entry came a microsecond before
    assert session.started_at == "2026-04-17T12:00:00.124Z"


def test_a_given_session_id_that_is_taken_is_refused(ledger, path):
    first = ledger.start_session(intent="x", session_id="s1")
    before = snapshot(path)
    with refused("ERR_SESSION_EXISTS"):
        ledger.start_session(intent="y", session_id="s1")
    assert snapshot(path) == before
    assert ledger.get_session("s1") == first


def test_the_id_of_an_ended_session_stays_taken(ledger):
    ledger.end_session(start(ledger, session_id="s1"))
    with refused("ERR_SESSION_EXISTS"):
        ledger.start_session(intent="x", session_id="s1")


def test_session_ids_are_compared_byte_by_byte(ledger):
    names = ["s1", "S1", " s1", "s1 ", "\u00e9", "e\u0301"]
    for name in names:
        start(ledger, session_id=name)
        record(ledger, session_id=name)
    assert [ledger.get_session(name).record_count for name in names] == [1] * 6


def test_an_absent_session_is_none(ledger):
    assert ledger.get_session("no-such-session") is None


@pytest.mark.parametrize("verb", ["seal_session", "merkle_root", "end_session"])
def test_an_unknown_session_is_refused_by_every_verb(ledger, verb):
    with refused("ERR_SESSION_NOT_FOUND", "session_id"):
        getattr(ledger, verb)("typo")
    assert len(ledger) == 1


def test_states_go_from_open_to_sealed_to_ended(ledger):
    session_id = start(ledger)
    assert ledger.get_session(session_id).state == "open"
    reflect(ledger, session_id=session_id)
    seal = ledger.seal_session(session_id)
    sealed = ledger.get_session(session_id)
    assert (sealed.state, sealed.root) == ("sealed", seal.root)
    assert (sealed.finalized_at, sealed.record_count) == (seal.finalized_at, 1)
    end = ledger.end_session(session_id)
    ended = ledger.get_session(session_id)
    assert (ended.state, ended.root, ended.ended_at) == ("ended", seal.root, end.ended_at)
    assert ended.end_reason == end.reason == "done"


def test_states_go_from_open_to_ended(ledger):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    end = ledger.end_session(session_id, reason="failed")
    assert (end.sealed, end.record_count, end.reason) == (False, 1, "failed")
    assert ledger.get_session(session_id).state == "ended"


def test_the_end_is_an_entry(ledger, path):
    session_id = start(ledger)
    end = ledger.end_session(session_id, reason="lost")
    (ended,) = log(path, "session.ended")
    assert ended.index == end.index
    assert ended.body == {"session_id": session_id, "ended_at": end.ended_at, "reason": "lost"}


def test_a_session_without_records_may_end(ledger):
    assert ledger.end_session(start(ledger)).record_count == 0


def test_a_sealed_session_takes_no_records(ledger, path):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    ledger.seal_session(session_id)
    before = snapshot(path)
    with refused("ERR_SESSION_SEALED"):
        record(ledger, session_id=session_id)
    with refused("ERR_SESSION_SEALED"):
        ledger.record_thoughts([draft(), draft(session_id=session_id)])
    assert snapshot(path) == before


def test_an_ended_session_takes_no_records(ledger, path):
    session_id = start(ledger)
    ledger.end_session(session_id)
    before = snapshot(path)
    with refused("ERR_SESSION_ENDED"):
        record(ledger, session_id=session_id)
    assert snapshot(path) == before


def test_ending_twice_repeats_the_first_answer(ledger):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    first = ledger.end_session(session_id, reason="failed")
    size = len(ledger)
    assert ledger.end_session(session_id, reason="done") == first
    assert len(ledger) == size


def test_ending_twice_repeats_the_first_answer_after_a_late_seal(ledger):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    first = ledger.end_session(session_id)
    ledger.seal_session(session_id)
    assert ledger.end_session(session_id) == first


def test_an_ended_session_may_be_sealed_once(ledger):
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    ledger.end_session(session_id)
    seal = ledger.seal_session(session_id)
    assert not seal.already_finalized
    assert ledger.seal_session(session_id).already_finalized
    assert ledger.merkle_root(session_id).root == seal.root
    found = ledger.get_session(session_id)
    assert (found.state, found.root) == ("ended", seal.root)


def test_a_session_continues_a_sealed_one(ledger, path):
    earlier = start(ledger)
    last = reflect(ledger, session_id=earlier)
    ledger.seal_session(earlier)
    later = ledger.start_session(intent="go on", continues=earlier)
    assert later.continues == earlier
    assert ledger.get_session(later.session_id).continues == earlier
    body = log(path, "session.started")[-1].body
    assert body["continues"] == {"chain_hash": last.chain_hash, "session_id": earlier}
    assert genesis(body) == later.genesis


def test_a_session_continues_one_without_records_from_its_genesis(ledger, path):
    earlier = ledger.start_session(intent="x")
    ledger.end_session(earlier.session_id)
    ledger.start_session(intent="go on", continues=earlier.session_id)
    continued = log(path, "session.started")[-1].body["continues"]
    assert continued == {"chain_hash": earlier.genesis, "session_id": earlier.session_id}


def test_an_open_session_cannot_be_continued(ledger, path):
    earlier = start(ledger)
    record(ledger, session_id=earlier)
    before = snapshot(path)
    with refused("ERR_SESSION_OPEN"):
        start(ledger, continues=earlier)
    assert snapshot(path) == before


def test_an_unknown_session_cannot_be_continued(ledger):
    with refused("ERR_SESSION_NOT_FOUND", "continues"):
        start(ledger, continues="typo")
    with refused("ERR_SESSION_NOT_FOUND", "continues"):
        start(ledger, session_id="s1", continues="s1")
    assert ledger.list_sessions() == []


def test_the_first_record_binds_the_whole_past(ledger):
    earlier, last = None, None
    for _ in range(3):
        session = ledger.start_session(intent="x", continues=earlier)
        first = record(ledger, session_id=session.session_id)
        assert first.parent_chain_hash == session.genesis
        assert first.chain_hash != last
        ledger.end_session(session.session_id)
        earlier, last = session.session_id, first.chain_hash
    assert ledger.verify_chain().valid


def test_a_client_that_vanishes_leaves_its_session_open(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    ledger.close()
    clock.advance(23 * HOUR_US)
    again = open_ledger(clock=clock)
    assert again.get_session(session_id).state == "open"
    assert record(again, session_id=session_id).session_seq == 0


def test_an_idle_session_is_lost_at_the_next_opening_and_never_sealed(open_ledger, path):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    ledger.close()
    clock.advance(24 * HOUR_US + 1_000)
    found = open_ledger(clock=clock).get_session(session_id)
    assert (found.state, found.end_reason, found.root) == ("ended", "lost", None)
    (ended,) = log(path, "session.ended")
    assert ended.body["reason"] == "lost"
    assert log(path, "session.sealed") == []


def test_a_session_with_a_recent_record_is_not_idle(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    clock.advance(20 * HOUR_US)
    record(ledger, session_id=session_id)
    ledger.close()
    clock.advance(20 * HOUR_US)
    assert open_ledger(clock=clock).get_session(session_id).state == "open"


def test_a_lost_session_may_still_be_sealed_once(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    ledger.close()
    clock.advance(25 * HOUR_US)
    again = open_ledger(clock=clock)
    assert again.seal_session(session_id).record_count == 1
    with refused("ERR_SESSION_SEALED"):
        record(again, session_id=session_id)


def test_how_long_is_idle_is_a_setting(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock, settings={"session_idle_hours": 2})
    session_id = start(ledger)
    ledger.close()
    clock.advance(HOUR_US)
    again = open_ledger(clock=clock)
    assert again.get_session(session_id).state == "open"
    again.close()
    clock.advance(HOUR_US + 1_000)
    assert open_ledger(clock=clock).get_session(session_id).end_reason == "lost"


def test_a_reader_never_ends_a_session(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    ledger.close()
    clock.advance(48 * HOUR_US)
    assert open_ledger(clock=clock, readonly=True).get_session(session_id).state == "open"


def test_a_session_that_is_in_use_is_not_lost_by_a_second_handle(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    clock.advance(30 * HOUR_US)
    record(ledger, session_id=session_id)
    assert open_ledger(clock=clock).get_session(session_id).state == "open"


def test_sessions_are_listed_newest_first_and_in_pages(ledger):
    names = [start(ledger, session_id=f"s{n}") for n in range(7)]
    assert [one.session_id for one in ledger.list_sessions()] == names[::-1]
    seen, after = [], None
    while page := ledger.list_sessions(after=after, limit=3):
        seen += [one.session_id for one in page]
        after = seen[-1]
    assert seen == names[::-1]
    with refused("ERR_SESSION_NOT_FOUND", "after"):
        ledger.list_sessions(after="typo")


def test_sessions_are_listed_by_task_and_state(ledger):
    for n, task_id in enumerate(("t1", "t2", "t1", None)):
        start(ledger, session_id=f"s{n}", task_id=task_id)
        record(ledger, session_id=f"s{n}")
    ledger.seal_session("s0")
    ledger.end_session("s1")
    ledger.seal_session("s1")

    def names(**wanted):
        return [one.session_id for one in ledger.list_sessions(**wanted)]

    assert names(task_id="t1") == ["s2", "s0"]
    assert names(state="open") == ["s3", "s2"]
    assert names(state="sealed", task_id="t1") == ["s0"]
    assert names(state="ended") == ["s1"]


def test_sessions_listed_without_a_limit_are_all_there_are(ledger):
    names = [start(ledger, session_id=f"s{n}") for n in range(103)]
    assert [one.session_id for one in ledger.list_sessions()] == names[::-1]


def test_listed_sessions_are_what_get_session_gives(ledger):
    sealed, ended = start(ledger), start(ledger)
    reflect(ledger, session_id=sealed)
    ledger.seal_session(sealed)
    ledger.end_session(ended)
    for one in ledger.list_sessions():
        assert ledger.get_session(one.session_id) == one


def test_sessions_survive_closing_and_opening(path):
    with affidavit.open(path) as ledger:
        session_id = start(ledger)
        first = record(ledger, session_id=session_id)
    with affidavit.open(path) as ledger:
        second = record(ledger, session_id=session_id)
        assert (second.parent_chain_hash, second.session_seq) == (first.chain_hash, 1)
        assert ledger.verify().valid


def test_audit_events_show_what_happened_to_sessions_and_settings_in_order(ledger, path):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    ledger.set(writeback="reflection", by="ana")
    ledger.create_task(title="x")
    ledger.seal_session(session_id)
    ledger.end_session(session_id)
    events = select(path, "SELECT log_index, at, kind FROM audit_events")
    shown = ("ledger.created", "session.started", "setting.changed", "session.sealed")
    expected = [one for one in log(path) if one.kind in (*shown, "session.ended")]
    assert events == [(one.index, one.at, one.kind) for one in expected]
    assert len(events) == 5


def test_an_idle_session_that_is_sealed_is_not_lost(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    ledger.seal_session(session_id)
    ledger.close()
    clock.advance(25 * HOUR_US)
    assert open_ledger(clock=clock).get_session(session_id).state == "sealed"
