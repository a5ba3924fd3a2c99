"""The decision trail: a recorded genesis, chains that show every edit, a seal over all of it."""

import json
from hashlib import sha256
from types import SimpleNamespace

import pytest

import affidavit
from affidavit.ledger.ledger import Ledger
from contract.calls import record, reflect, refused, start
from contract.oracle import (
    canonical,
    chain_hash,
    content_hash,
    genesis,
    log,
    select,
    tamper,
    task_hash,
)


def broken_session(path, count=5, at=2):
    """A session in which one record was edited; its id and the record."""
    with affidavit.open(path) as ledger:
        session_id = start(ledger)
        records = [record(ledger, session_id=session_id, content=str(n)) for n in range(count)]
    sql = "UPDATE thought_records SET content = 'edited' WHERE id = ?"
    tamper(path, sql, records[at].id)
    return session_id, records[at]


def test_there_are_four_types_and_no_other(ledger):
    for kind in ("plan", "analysis", "decision", "reflection"):
        assert record(ledger, type=kind).type == kind
    for kind in ("observation", "note", "PLAN", "informational"):
        with refused("INVALID_PARAMS", "type"):
            record(ledger, type=kind)


def test_both_hashes_of_a_bound_record_follow_from_its_fields_and_its_parent(ledger):
    session_id = start(ledger)
    parent = ledger.get_session(session_id).genesis
    for n in range(3):
        written = record(ledger, session_id=session_id, content=str(n), task_id=f"t{n}")
        assert written.content_hash == content_hash(written)
        assert written.parent_chain_hash == parent
        assert written.chain_hash == chain_hash(written.content_hash, parent)
        parent = written.chain_hash


def test_chains_are_per_session(ledger):
    first, second = start(ledger), start(ledger)
    one = record(ledger, session_id=first)
    other = record(ledger, session_id=second)
    assert one.parent_chain_hash == ledger.get_session(first).genesis
    assert other.parent_chain_hash == ledger.get_session(second).genesis


def test_the_genesis_is_the_hash_of_the_session_and_is_recorded(ledger, path):
    session = ledger.start_session(intent="x", caller="agent-1", task_id="t1")
    (started,) = log(path, "session.started")
    assert started.index == session.index
    assert started.body["genesis"] == session.genesis == genesis(started.body)
    assert (started.body["caller"], started.body["session_id"]) == ("agent-1", session.session_id)
    assert started.body["started_at"] == session.started_at


def test_every_start_of_a_session_is_on_the_record(ledger, path):
    session_id = start(ledger)
    events = select(path, "SELECT kind, json_extract(body, '$.session_id') FROM audit_events")
    assert events == [("ledger.created", None), ("session.started", session_id)]


def test_a_session_continues_an_earlier_one_through_its_last_chain_hash(ledger, path):
    earlier = start(ledger)
    last = record(ledger, session_id=earlier)
    ledger.end_session(earlier)
    later = ledger.start_session(intent="go on", continues=earlier)
    first = record(ledger, session_id=later.session_id)
    started = log(path, "session.started")[1]
    assert started.body["continues"] == {"chain_hash": last.chain_hash, "session_id": earlier}
    assert later.genesis == genesis(started.body)
    assert first.parent_chain_hash == later.genesis


def test_the_tables_of_the_trail_have_their_columns(ledger, path):
    columns = {
        name for (name,) in select(path, "SELECT name FROM pragma_table_info('thought_records')")
    }
    assert columns >= {
        "content_hash", "chain_hash", "parent_chain_hash", "session_id", "task_id", "type",
        "content",
    }  # fmt: skip
    named = {name for (name,) in select(path, "SELECT name FROM sqlite_schema")}
    assert named >= {"thought_records", "merkle_nodes", "audit_events", "tasks"}


def test_a_sealed_tree_is_kept(ledger, path):
    session_id = start(ledger)
    for _ in range(4):
        reflect(ledger, session_id=session_id)
    seal = ledger.seal_session(session_id)
    top = select(path, "SELECT hash FROM merkle_nodes WHERE tree = ? AND level = 2", seal.index)
    assert top == [(bytes.fromhex(seal.root),)]


def test_the_whole_sequence_of_a_proof_grade_task(ledger):
    task = ledger.create_task(title="prove it")
    session = ledger.start_session(intent="prove it", task_id=task.id, proof_grade=True)
    bound = {"task_id": task.id, "session_id": session.session_id}
    for kind in ("plan", "analysis", "decision"):
        record(ledger, type=kind, **bound)
    assert ledger.verify_chain(session_id=session.session_id).valid
    closing = reflect(ledger, **bound)
    seal = ledger.seal_session(session.session_id)
    assert (seal.record_count, seal.closing_reflection, seal.warnings) == (4, True, ())
    assert seal.last_index == closing.index
    assert ledger.merkle_root(session.session_id).root == seal.root
    end = ledger.end_session(session.session_id)
    assert (end.sealed, end.record_count) == (True, 4)
    assert ledger.update_task(task.id, status="DONE").status == "DONE"


def test_a_proof_grade_session_is_not_sealed_before_its_closing_reflection(ledger):
    session_id = start(ledger, proof_grade=True, task_id="t1")
    record(ledger, session_id=session_id)
    with refused("ERR_CLOSING_REFLECTION_REQUIRED"):
        ledger.seal_session(session_id)
    reflect(ledger, session_id=session_id)
    assert ledger.seal_session(session_id).closing_reflection


def test_nothing_is_added_to_a_session_after_its_seal(ledger):
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    ledger.seal_session(session_id)
    with refused("ERR_SESSION_SEALED"):
        reflect(ledger, session_id=session_id)


def test_a_task_without_proof_still_needs_its_record(ledger):
    task = ledger.create_task(title="x")
    with refused("ERR_WRITEBACK_REQUIRED"):
        ledger.transition_task(ledger.update_task(task.id, status="VERIFY").id, to="DONE")
    reflect(ledger, task_id=task.id)
    assert ledger.transition_task(task.id, to="DONE").status == "DONE"


def test_verifying_a_session_stops_at_the_first_broken_index(path):
    session_id, edited = broken_session(path)
    with affidavit.open(path, readonly=True) as ledger:
        report = ledger.verify_chain(session_id=session_id)
    assert not report.valid
    assert (report.first_broken_index, report.first_broken_at) == (edited.index, edited.id)
    assert report.record_count == 3


def test_a_broken_session_is_not_sealed(path):
    session_id, edited = broken_session(path)
    with affidavit.open(path) as ledger:
        with refused("ERR_CHAIN_BROKEN") as caught:
            ledger.seal_session(session_id)
        assert caught.value.details["index"] == edited.index
        with refused("ERR_NOT_FINALIZED"):
            ledger.merkle_root(session_id)


def test_an_edit_of_the_past_breaks_the_chain_behind_it(path):
    """Whoever edits a record, all its hashes and its log entry is caught at the next record."""
    with affidavit.open(path) as ledger:
        session_id = start(ledger)
        records = [record(ledger, session_id=session_id, content=str(n)) for n in range(4)]
    forge(path, records[1])
    with affidavit.open(path, readonly=True) as ledger:
        report = ledger.verify_chain(session_id=session_id)
        found = [(finding.code, finding.index) for finding in ledger.verify().findings]
    assert report.first_broken_index == records[2].index
    assert ("chain_broken", records[2].index) in found


def forge(path, original):
    """Replace a record's content, and everything that record itself says about it."""
    forged = SimpleNamespace(**{**original.to_dict(), "content": "forged"})
    forged.hash, forged.content_hash = task_hash(forged), content_hash(forged)
    forged.chain_hash = chain_hash(forged.content_hash, original.parent_chain_hash)
    hashes = {name: getattr(forged, name) for name in ("hash", "content_hash", "chain_hash")}
    tamper(
        path,
        "UPDATE thought_records SET content = ?, hash = ?, content_hash = ?, chain_hash = ?"
        " WHERE id = ?",
        "forged",
        *hashes.values(),
        original.id,
    )
    entry = json.loads(log(path)[original.index].raw)
    entry["body"].update(hashes)
    raw = canonical(entry)
    tamper(
        path,
        "UPDATE log SET entry = ?, leaf_hash = ? WHERE log_index = ?",
        raw,
        sha256(b"\x00" + raw).digest(),
        original.index,
    )


def test_a_correction_is_a_new_record(ledger):
    wrong = record(ledger, type="decision", content="B")
    right = record(ledger, type="decision", content=f"A after all; {wrong.id} overlooked the index")
    assert ledger.list_thoughts() == [wrong, right]
    assert right.prev_hash == wrong.hash


@pytest.mark.parametrize("verb", ["update", "edit", "delete", "remove", "rehash"])
def test_no_call_changes_or_removes_a_record(verb):
    names = [name for name in dir(Ledger) if not name.startswith("_")]
    assert not [name for name in names if verb in name and "task" not in name]


def test_verifying_again_later_proves_a_sealed_session_again(open_ledger):
    ledger = open_ledger()
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    seal = ledger.seal_session(session_id)
    ledger.close()
    again = open_ledger(readonly=True)
    assert again.verify_chain(session_id=session_id).valid
    assert again.merkle_root(session_id).root == seal.root
