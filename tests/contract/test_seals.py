"""Seals: the check before, the closing reflection, both trees, and asking for the root."""

import pytest

import affidavit
from contract.calls import Clock, record, reflect, refused, start
from contract.oracle import log, root, select, session_entries, tamper


def sealed_trees(path, seal):
    """Both roots and counts of a seal, computed from the log alone."""
    entries = session_entries(path, seal.session_id, seal.index)
    own = [entry.raw for entry in entries if entry.kind == "thought.recorded"]
    every = [entry.raw for entry in entries]
    return root(own), len(own), root(every), len(every)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 31])
def test_both_trees_follow_from_the_log(ledger, path, count):
    session_id, other = start(ledger), start(ledger)
    for n in range(count):
        last = record(ledger, session_id=session_id, content=str(n), task_id=f"t{n % 3}")
        record(ledger, session_id=other)
        record(ledger)
    seal = ledger.seal_session(session_id)
    assert sealed_trees(path, seal) == (
        seal.root, seal.record_count, seal.entries_root, seal.entry_count,
    )  # fmt: skip
    assert (seal.record_count, seal.entry_count) == (count, count + 1)
    assert (seal.chain_hash, seal.last_index) == (last.chain_hash, last.index)
    assert seal.first_index == ledger.list_thoughts(session_id=session_id, limit=1)[0].index


def test_the_end_of_a_session_is_covered_by_a_later_seal(ledger, path):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    ledger.end_session(session_id)
    seal = ledger.seal_session(session_id)
    kinds = [entry.kind for entry in session_entries(path, session_id, seal.index)]
    assert kinds == ["session.started", "thought.recorded", "session.ended"]
    assert sealed_trees(path, seal)[2:] == (seal.entries_root, 3)


def test_a_continued_session_is_in_its_own_trees_only(ledger, path):
    earlier = start(ledger)
    record(ledger, session_id=earlier)
    first = ledger.seal_session(earlier)
    later = start(ledger, continues=earlier)
    record(ledger, session_id=later)
    second = ledger.seal_session(later)
    for seal in (first, second):
        assert sealed_trees(path, seal)[2:] == (seal.entries_root, 2)


def test_the_seal_is_an_entry_that_says_what_was_answered(ledger, path):
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    seal = ledger.seal_session(session_id)
    (sealed,) = log(path, "session.sealed")
    shown = seal.to_dict()
    assert (sealed.index, sealed.at) == (seal.index, seal.at)
    assert sealed.body == {name: shown[name] for name in sealed.body}
    assert sealed.body.keys() == {
        "session_id", "root", "record_count", "chain_hash", "closing_reflection", "entries_root",
        "entry_count", "finalized_at", "first_index", "last_index",
    }  # fmt: skip


def test_the_time_of_a_seal_is_rendered_from_its_entry(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    clock.advance(1_234_000)
    assert ledger.seal_session(session_id).finalized_at == "2026-04-17T12:00:01.234Z"


def test_a_second_seal_is_the_same_answer(ledger):
    session_id = start(ledger)
    record(ledger, session_id=session_id)
    first = ledger.seal_session(session_id).to_dict()
    size = len(ledger)
    again = ledger.seal_session(session_id).to_dict()
    assert (first.pop("already_finalized"), again.pop("already_finalized")) == (False, True)
    assert first == again
    assert len(ledger) == size


def test_the_root_is_not_there_before_the_seal(ledger):
    session_id = start(ledger)
    for _ in range(2):
        with refused("ERR_NOT_FINALIZED"):
            ledger.merkle_root(session_id)
        record(ledger, session_id=session_id)
    seal = ledger.seal_session(session_id)
    found = ledger.merkle_root(session_id)
    assert (found.root, found.record_count) == (seal.root, seal.record_count)
    assert found.finalized_at == seal.finalized_at


def test_a_session_without_records_cannot_be_sealed(ledger):
    session_id = start(ledger)
    with refused("ERR_NO_RECORDS"):
        ledger.seal_session(session_id)
    ledger.end_session(session_id)
    with refused("ERR_NO_RECORDS"):
        ledger.seal_session(session_id)
    assert ledger.get_session(session_id).root is None


def test_a_seal_without_a_closing_reflection_warns(ledger):
    session_id = start(ledger)
    reflect(ledger, session_id=session_id)
    record(ledger, session_id=session_id)
    seal = ledger.seal_session(session_id)
    assert not seal.closing_reflection
    assert len(seal.warnings) == 1
    assert "reflection" in seal.warnings[0]
    assert ledger.seal_session(session_id).warnings == seal.warnings


def test_a_seal_with_a_closing_reflection_does_not_warn(ledger):
    session_id = start(ledger, task_id="t1")
    reflect(ledger, session_id=session_id, task_id="another")
    seal = ledger.seal_session(session_id)
    assert (seal.closing_reflection, seal.warnings) == (True, ())


def test_proof_grade_needs_a_reflection_as_the_newest_record(ledger):
    session_id = start(ledger, proof_grade=True)
    reflect(ledger, session_id=session_id)
    record(ledger, session_id=session_id)
    with refused("ERR_CLOSING_REFLECTION_REQUIRED"):
        ledger.seal_session(session_id)
    reflect(ledger, session_id=session_id, task_id="any task")
    assert ledger.seal_session(session_id).closing_reflection


def test_proof_grade_with_a_task_needs_a_reflection_of_that_task(ledger):
    session_id = start(ledger, proof_grade=True, task_id="t1")
    reflect(ledger, session_id=session_id, task_id="another")
    with refused("ERR_CLOSING_REFLECTION_REQUIRED"):
        ledger.seal_session(session_id)
    reflect(ledger, session_id=session_id, task_id="t1")
    assert ledger.seal_session(session_id).closing_reflection


def test_a_reflection_outside_the_session_does_not_close_it(ledger):
    session_id = start(ledger, proof_grade=True)
    record(ledger, session_id=session_id)
    reflect(ledger)
    reflect(ledger, session_id=start(ledger))
    with refused("ERR_CLOSING_REFLECTION_REQUIRED"):
        ledger.seal_session(session_id)


TAMPERED = {
    "content": "UPDATE thought_records SET content = 'x' WHERE log_index = ?",
    "agent": "UPDATE thought_records SET agent_id = 'x' WHERE log_index = ?",
    "type": "UPDATE thought_records SET type = 'reflection' WHERE log_index = ?",
    "chain hash": "UPDATE thought_records SET chain_hash = hash WHERE log_index = ?",
    "parent": "UPDATE thought_records SET parent_chain_hash = hash WHERE log_index = ?",
    "place": "UPDATE thought_records SET session_seq = 7 WHERE log_index = ?",
    "task hash": "UPDATE thought_records SET hash = chain_hash WHERE log_index = ?",
    "entry": "UPDATE log SET entry = replace(entry, 'a1', 'a2') WHERE log_index = ?",
}


@pytest.mark.parametrize("what", TAMPERED)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_broken_session_is_not_sealed_and_the_place_is_named(path, what, place):
    with affidavit.open(path) as ledger:
        session_id = start(ledger)
        records = [record(ledger, session_id=session_id, content=str(n)) for n in range(5)]
    sql = TAMPERED[what]
    if what == "entry":
        sql = sql.replace("replace(entry,", "CAST(replace(CAST(entry AS TEXT),").replace(
            "'a2')", "'a2') AS BLOB)"
        )
    tamper(path, sql, records[place].index)
    size = select(path, "SELECT count(*) FROM log")
    with affidavit.open(path) as ledger:
        for _ in range(2):
            with refused("ERR_CHAIN_BROKEN") as caught:
                ledger.seal_session(session_id)
            assert caught.value.details["index"] == records[place].index
            assert caught.value.details["id"] == records[place].id
            assert str(records[place].index) in str(caught.value)
        assert ledger.get_session(session_id).state == "open"
    assert select(path, "SELECT count(*) FROM log") == size


def test_a_missing_record_is_named_by_the_one_behind_it(path):
    with affidavit.open(path) as ledger:
        session_id = start(ledger)
        records = [record(ledger, session_id=session_id, content=str(n)) for n in range(4)]
    tamper(path, "DELETE FROM thought_records WHERE id = ?", records[1].id)
    with affidavit.open(path) as ledger, refused("ERR_CHAIN_BROKEN") as caught:
        ledger.seal_session(session_id)
    assert caught.value.details["index"] == records[2].index


def test_a_missing_last_record_keeps_a_session_from_being_sealed(path):
    with affidavit.open(path) as ledger:
        session_id = start(ledger)
        records = [record(ledger, session_id=session_id, content=str(n)) for n in range(4)]
    tamper(path, "DELETE FROM thought_records WHERE id = ?", records[3].id)
    with affidavit.open(path) as ledger, refused("ERR_CHAIN_BROKEN"):
        ledger.seal_session(session_id)


def test_a_forged_genesis_keeps_a_session_from_being_sealed(path):
    with affidavit.open(path) as ledger:
        session = ledger.start_session(intent="x", session_id="s1")
        first = record(ledger, session_id="s1")
    tamper(path, "UPDATE sessions SET genesis = ? WHERE session_id = 's1'", first.hash)
    with affidavit.open(path) as ledger, refused("ERR_CHAIN_BROKEN") as caught:
        ledger.seal_session("s1")
    assert caught.value.details["index"] in (session.index, first.index)


def test_a_session_that_was_made_ordinary_behind_the_ledgers_back_is_not_sealed(path):
    """Proof grade is part of what the genesis binds: the row alone cannot take it away."""
    with affidavit.open(path) as ledger:
        session_id = start(ledger, proof_grade=True)
        record(ledger, session_id=session_id)
    tamper(path, "UPDATE sessions SET proof_grade = 0 WHERE session_id = ?", session_id)
    with affidavit.open(path) as ledger:
        with pytest.raises(affidavit.AffidavitError):
            ledger.seal_session(session_id)
        assert ledger.get_session(session_id).root is None


def test_another_broken_session_does_not_stand_in_the_way(path):
    with affidavit.open(path) as ledger:
        broken, sound = start(ledger), start(ledger)
        edited = record(ledger, session_id=broken)
        record(ledger, session_id=sound, task_id="t2")
    tamper(path, "UPDATE thought_records SET content = 'x' WHERE id = ?", edited.id)
    with affidavit.open(path) as ledger:
        assert ledger.seal_session(sound).record_count == 1


def test_a_large_session_is_sealed(ledger, path):
    session_id = start(ledger)
    for batch in range(3):
        one = {"type": "plan", "task_id": "t", "agent_id": "a", "session_id": session_id}
        ledger.record_thoughts({**one, "content": f"{batch} {n}"} for n in range(1_000))
    seal = ledger.seal_session(session_id)
    assert seal.record_count == 3_000
    assert sealed_trees(path, seal)[0] == seal.root
