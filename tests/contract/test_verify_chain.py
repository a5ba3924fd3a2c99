"""Verifying chains: one task's, one session's, every one; where it stops and what it counts."""

import pytest

import affidavit
from contract.calls import record, refused, start
from contract.oracle import tamper

FIELDS = ("content", "agent_id", "timestamp", "prev_hash", "hash", "created_at")


@pytest.fixture
def trail(path):
    """Two tasks and two sessions, six records each way, in a closed ledger."""
    with affidavit.open(path) as ledger:
        sessions = [start(ledger, session_id=f"s{n}") for n in range(2)]
        return [
            record(ledger, task_id=f"t{n % 2}", session_id=sessions[n // 6], content=f"c{n}")
            for n in range(12)
        ]


def edit(path, *records):
    for one in records:
        tamper(path, "UPDATE thought_records SET content = 'edited' WHERE id = ?", one.id)


def verify(path, **wanted):
    with affidavit.open(path, readonly=True) as ledger:
        return ledger.verify_chain(**wanted)


def test_nothing_verifies_as_nothing(ledger):
    for wanted in ({}, {"task_id": "no such"}, {"session_id": "no such"}, {"all": True}):
        report = ledger.verify_chain(**wanted)
        assert (report.valid, report.record_count, report.broken_count) == (True, 0, 0)
        assert (report.first_broken_index, report.first_broken_at, report.reason) == (None,) * 3


def test_a_task_id_walks_that_chain(path, trail):
    report = verify(path, task_id="t0")
    assert (report.valid, report.record_count) == (True, 6)
    assert (tuple(report.by_task), tuple(report.by_session)) == (("t0",), ())


def test_a_session_id_walks_that_chain(path, trail):
    report = verify(path, session_id="s1")
    assert (report.valid, report.record_count) == (True, 6)
    assert (tuple(report.by_task), tuple(report.by_session)) == ((), ("s1",))


def test_both_at_once_is_refused(ledger):
    with refused("INVALID_PARAMS"):
        ledger.verify_chain(task_id="t1", session_id="s1")


def test_neither_walks_every_chain(path, trail):
    report = verify(path)
    assert (report.valid, report.record_count) == (True, 12)
    assert report.by_task == {"t0": (True, 6, 0), "t1": (True, 6, 0)}
    assert report.by_session == {"s0": (True, 6, 0), "s1": (True, 6, 0)}


@pytest.mark.parametrize("wanted", [{"task_id": "t0"}, {"session_id": "s0"}, {}])
def test_it_stops_at_the_first_break_and_names_it(path, trail, wanted):
    edit(path, trail[2], trail[4])
    report = verify(path, **wanted)
    assert not report.valid
    assert report.broken_count == 1
    assert (report.first_broken_index, report.first_broken_at) == (trail[2].index, trail[2].id)
    assert report.reason


def test_it_counts_only_up_to_the_break(path, trail):
    edit(path, trail[2])
    assert verify(path, task_id="t0").record_count == 2
    assert verify(path, session_id="s0").record_count == 3


@pytest.mark.parametrize(
    ("wanted", "walked"), [({"task_id": "t0"}, 6), ({"session_id": "s0"}, 6), ({}, 12)]
)
def test_all_counts_every_break(path, trail, wanted, walked):
    edit(path, trail[2], trail[4])
    report = verify(path, all=True, **wanted)
    assert (report.valid, report.record_count) == (False, walked)
    assert (report.first_broken_index, report.first_broken_at) == (trail[2].index, trail[2].id)
    counts = [*report.by_task.values(), *report.by_session.values()]
    assert report.broken_count == sum(one.broken_count for one in counts)
    assert max(one.broken_count for one in counts) == 2


def test_all_says_which_chains_hold(path, trail):
    edit(path, trail[2])
    report = verify(path, all=True)
    assert {name: one.valid for name, one in report.by_task.items()} == {"t0": False, "t1": True}
    assert {name: one.valid for name, one in report.by_session.items()} == {
        "s0": False,
        "s1": True,
    }


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("wanted", [{"task_id": "t1"}, {"session_id": "s0"}])
def test_a_change_of_any_field_is_a_break(path, trail, field, wanted):
    tamper(path, f"UPDATE thought_records SET {field} = ? WHERE id = ?", "f" * 64, trail[3].id)
    report = verify(path, **wanted)
    assert (report.valid, report.first_broken_index) == (False, trail[3].index)


def test_a_missing_record_breaks_the_chain_at_the_next_one(path, trail):
    tamper(path, "DELETE FROM thought_records WHERE id = ?", trail[2].id)
    assert verify(path, task_id="t0").first_broken_index == trail[4].index
    assert verify(path, session_id="s0").first_broken_index == trail[3].index


def test_a_record_without_its_entry_is_a_break(path, trail):
    tamper(path, "DELETE FROM log WHERE log_index = ?", trail[2].index)
    report = verify(path, task_id="t0")
    assert (report.valid, report.first_broken_index) == (False, trail[2].index)
    assert "missing" in report.reason


def test_a_session_that_was_never_started_breaks_its_chain(path, trail):
    tamper(path, "DELETE FROM sessions WHERE session_id = 's0'")
    report = verify(path, session_id="s0")
    assert (report.valid, report.first_broken_index) == (False, trail[0].index)


def test_a_break_in_one_chain_is_none_in_another(path, trail):
    edit(path, trail[2])
    assert verify(path, task_id="t1").valid
    assert verify(path, session_id="s1").valid
