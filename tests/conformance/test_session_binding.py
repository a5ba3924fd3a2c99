"""Records bound to a session: what binding adds, and what it leaves as it was."""

from contract.calls import draft, record, reflect, refused, start
from contract.oracle import ZEROS, log, root, select, task_hash

NINE = (
    "id", "type", "task_id", "agent_id", "content", "timestamp", "prev_hash", "hash", "session_id",
)  # fmt: skip


def test_the_session_is_not_part_of_the_six_field_hash(ledger):
    bound = record(ledger, session_id=start(ledger))
    assert bound.hash == task_hash(bound)


def test_the_pinned_hash_is_the_same_in_a_session(ledger):
    pinned = draft(content="hello", session_id=start(ledger))
    written = ledger.record_thought(
        **pinned, id_fn=lambda: "r1", now_fn=lambda: "2026-04-17T00:00:00Z"
    )
    assert written.hash == "6a2f9597f563d5515cfa69891a51806d0f93bfbe222997d3ba37c365ceee3f1a"


def test_verifying_a_task_does_not_care_about_sessions(ledger):
    first, second = start(ledger), start(ledger)
    for session_id in (first, None, second, first):
        record(ledger, session_id=session_id)
    report = ledger.verify_chain(task_id="t1")
    assert (report.valid, report.record_count) == (True, 4)
    assert report.by_session == {}


def test_a_task_chain_links_across_sessions(ledger):
    sessions = (start(ledger), None, start(ledger))
    chain = [record(ledger, session_id=session_id) for session_id in sessions]
    assert [one.prev_hash for one in chain] == [ZEROS, chain[0].hash, chain[1].hash]


def test_unbound_records_are_never_bound_later(ledger, path):
    before = record(ledger)
    session_id = start(ledger, task_id="t1")
    reflect(ledger, session_id=session_id)
    ledger.seal_session(session_id)
    ledger.end_session(session_id)
    assert ledger.get_thought(before.id) == before
    stored = select(path, "SELECT session_id FROM thought_records WHERE id = ?", before.id)
    assert stored == [(None,)]


def test_a_record_is_returned_with_every_field_it_had_and_its_session(ledger):
    session_id = start(ledger)
    for given in (session_id, None):
        shown = record(ledger, session_id=given).to_dict()
        assert tuple(shown)[:9] == NINE
        assert shown["session_id"] == given


def test_the_gate_counts_records_of_the_task_whatever_their_session(ledger):
    for session_id in (None, start(ledger)):
        task = ledger.create_task(title="x")
        record(ledger, task_id=task.id, session_id=session_id)
        assert ledger.update_task(task.id, status="DONE").status == "DONE"


def test_a_given_session_is_stored_with_the_record(ledger, path):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    assert select(path, "SELECT session_id FROM thought_records") == [(session_id,)]


def test_an_omitted_session_is_stored_as_null(ledger, path):
    record(ledger)
    assert select(path, "SELECT session_id FROM thought_records") == [(None,)]


def test_an_empty_session_id_is_refused_and_nothing_is_written(ledger, path):
    with refused("INVALID_PARAMS", "session_id"):
        record(ledger, session_id="")
    assert select(path, "SELECT count(*) FROM thought_records") == [(0,)]


def test_sealing_a_session_with_records_gives_a_real_root(ledger, path):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    reflect(ledger, session_id=session_id)
    seal = ledger.seal_session(session_id)
    assert seal.session_id == session_id
    assert seal.root == root([entry.raw for entry in log(path, "thought.recorded")])
    assert ledger.merkle_root(session_id).root == seal.root


def test_a_seal_counts_the_records_of_its_session(ledger):
    session_id = start(ledger)
    for _ in range(5):
        record(ledger, session_id=session_id)
        record(ledger)
    assert ledger.seal_session(session_id).record_count == 5


def test_sessions_do_not_leak_into_each_others_seals(ledger, path):
    first, second = start(ledger), start(ledger)
    for session_id in (first, second, None, second, first, first):
        record(ledger, session_id=session_id)
    thoughts = log(path, "thought.recorded")
    for session_id, count in ((first, 3), (second, 2)):
        own = [entry.raw for entry in thoughts if entry.body["session_id"] == session_id]
        seal = ledger.seal_session(session_id)
        assert (seal.record_count, seal.root) == (count, root(own))
