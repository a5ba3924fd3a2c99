"""As of a moment: what every entry up to it made, whole units only; a settled answer stays."""

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contract.calls import Clock, refused

VECTOR = Path(__file__).parents[1] / "vectors/data/affidavit-v1/timeline.json"
IDS = {"a": str(uuid.UUID(int=1)), "b": str(uuid.UUID(int=2))}


@pytest.fixture
def told(open_ledger):
    """A ledger that went through the units of the vector, and the vector."""
    vector = json.loads(VECTOR.read_text())
    clock = Clock(1)
    ledger = open_ledger(clock=clock)
    for unit in vector["units"]:
        clock.now_us = unit["at"]
        with ledger.transaction() as tx:
            for verb, key, *content in unit["ops"]:
                if verb == "assert":
                    tx.upsert_turn(IDS[key], IDS[key], "user", *content)
                else:
                    tx.retract_turn(IDS[key])
    clock.now_us = 100
    return ledger, vector


def test_the_vector_holds_by_key_and_in_lists(told):
    ledger, vector = told
    assert len(ledger) == vector["first_index"] + sum(len(u["ops"]) for u in vector["units"])
    for read in vector["reads"]:
        moment = {name: value for name, value in read.items() if name.startswith("as_of")}
        for key, turn_id in IDS.items():
            turn = ledger.get_turn(turn_id, **moment)
            assert (turn and turn.content) == read[key], (moment, key)
        listed = {turn.id: turn.content for turn in ledger.list_turns(**moment)}
        assert listed == {IDS[k]: read[k] for k in IDS if read[k] is not None}, moment


def test_now_and_the_end_are_the_head(told):
    ledger, _ = told
    for as_of in (None, "NOW", "END"):
        assert ledger.get_turn(IDS["a"], as_of=as_of) is None
        assert ledger.get_turn(IDS["b"], as_of=as_of).content == "only"


@pytest.mark.parametrize(
    "as_of",
    [
        20,
        "1970-01-01T00:00:00.00002Z",
        "1970-01-01T01:00:00.000020999+01:00",
        datetime(1970, 1, 1, 0, 0, 0, 20, tzinfo=UTC),
    ],
)
def test_every_way_to_name_a_moment(told, as_of):
    ledger, _ = told
    assert ledger.get_turn(IDS["b"], as_of=as_of).content == "first"
    assert ledger.get_turn(IDS["a"], as_of=as_of).content == "y"


def test_settled_means_that_a_later_entry_is_there(told):
    ledger, _ = told
    assert [ledger.settled(moment) for moment in (9, 59, 60, 99)] == [True, True, False, False]
    assert not ledger.settled()
    assert not ledger.settled("END")
    assert ledger.settled(as_of_index=11)
    assert not ledger.settled(as_of_index=13)
    with refused("INVALID_PARAMS", "as_of"):
        ledger.settled("1970-01-01")


def test_tasks_and_sessions_are_read_as_they_were(open_ledger):
    times = iter(range(10, 10_000, 10))
    ledger = open_ledger(clock=lambda: next(times), id_fn=iter(map(str, range(99))).__next__)
    task = ledger.create_task(title="first", project_id="p")
    ledger.update_task(task.id, title="second", status="PLAN")
    session = ledger.start_session(intent="i", session_id="s")
    ledger.record_thought(type="reflection", task_id="t", agent_id="a", content="c", session_id="s")
    before_seal = len(ledger) - 1
    ledger.seal_session("s")
    ledger.end_session("s")
    ledger.delete_task(task.id)
    assert ledger.get_task(task.id) is None
    was = ledger.get_task(task.id, as_of=task.at)
    assert (was.title, was.status) == ("first", "INIT")
    assert ledger.get_task(task.id, as_of=task.at - 1) is None
    assert [t.title for t in ledger.list_tasks(as_of=session.at).tasks] == ["second"]
    assert ledger.list_tasks(status="INIT", as_of=session.at).total_count == 0
    assert ledger.list_tasks().total_count == 0
    old = ledger.get_session("s", as_of_index=before_seal)
    assert (old.state, old.record_count, old.root, old.ended_at) == ("open", 1, None, None)
    assert ledger.get_session("s", as_of=session.at).record_count == 0
    assert ledger.get_session("s", as_of=session.at - 1) is None
    assert ledger.get_session("s", as_of_index=before_seal + 1).state == "sealed"
    assert [one.state for one in ledger.list_sessions(as_of_index=before_seal)] == ["open"]
    assert ledger.list_sessions(as_of=session.at - 1) == []
