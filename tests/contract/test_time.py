"""The ledger's own time: never back, never set by a caller, one per unit."""

from itertools import pairwise

import pytest

import affidavit
from contract.calls import DAY_US, HOUR_US, NOON_US, Clock, draft, record, reflect, refused, start
from contract.oracle import log


def test_the_time_is_that_of_the_clock(open_ledger, path):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    clock.advance(5_000_000)
    assert record(ledger).at == log(path)[-1].at == NOON_US + 5_000_000


def test_every_unit_is_later_than_the_one_before_though_the_clock_stands_still(open_ledger):
    ledger = open_ledger(clock=Clock())
    assert [record(ledger).at - NOON_US for _ in range(5)] == [1, 2, 3, 4, 5]


def test_within_a_unit_the_time_is_equal(open_ledger, path):
    ledger = open_ledger(clock=Clock())
    first = {one.at for one in ledger.record_thoughts([draft()] * 50)}
    second = {one.at for one in ledger.record_thoughts([draft()] * 50)}
    assert (first, second) == ({NOON_US + 1}, {NOON_US + 2})
    ledger.set(writeback="reflection", transitions="strict")
    assert [entry.at for entry in log(path)[-2:]] == [NOON_US + 3] * 2


def test_the_time_goes_on_when_the_clock_goes_back_an_hour(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    clock.advance(10)
    before = record(ledger)
    clock.advance(-HOUR_US)
    later = [record(ledger) for _ in range(3)]
    assert [one.at - before.at for one in later] == [1, 2, 3]
    assert [one.timestamp for one in later] == ["2026-04-17T11:00:00.000Z"] * 3
    clock.advance(2 * HOUR_US)
    assert record(ledger).at == clock.now_us


def test_the_time_goes_on_when_the_clock_jumps_a_day_ahead_and_comes_back(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    clock.advance(DAY_US)
    ahead = record(ledger)
    assert ahead.at == NOON_US + DAY_US
    clock.advance(-DAY_US)
    back = record(ledger)
    assert back.at == ahead.at + 1
    assert ledger.list_thoughts() == [ahead, back]


def test_the_time_goes_on_over_closing_and_opening(open_ledger):
    ledger = open_ledger(clock=Clock())
    last = record(ledger)
    ledger.close()
    again = open_ledger(clock=Clock(NOON_US - DAY_US))
    assert record(again).at == last.at + 1


def test_every_unit_of_a_ledger_is_later_than_the_one_before(open_ledger, path):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    session_id = start(ledger)
    for step in (-HOUR_US, 3, -1, DAY_US, -DAY_US, 0):
        clock.advance(step)
        record(ledger, session_id=session_id)
        task = ledger.create_task(title="x")
        ledger.update_task(task.id, title="y")
        ledger.delete_task(task.id)
    ledger.seal_session(session_id)
    ledger.end_session(session_id)
    times = [entry.at for entry in log(path)]
    assert all(before < after for before, after in pairwise(times))


@pytest.mark.parametrize("time", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"])
def test_a_caller_cannot_set_the_ledgers_time(open_ledger, time):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    one = record(ledger, now_fn=lambda: time)
    other = record(ledger)
    assert (one.timestamp, one.at, other.at) == (time, NOON_US + 1, NOON_US + 2)


def test_rendered_times_follow_the_ledgers_time_not_the_machines(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    clock.advance(HOUR_US)
    record(ledger)
    clock.advance(-HOUR_US)
    task = ledger.create_task(title="x")
    session = ledger.start_session(intent="x")
    reflect(ledger, session_id=session.session_id)
    seal = ledger.seal_session(session.session_id)
    end = ledger.end_session(session.session_id)
    rendered = (task.created_at, session.started_at, seal.finalized_at, end.ended_at)
    assert rendered == ("2026-04-17T13:00:00.000Z",) * 4


@pytest.mark.parametrize("now", [-1, 2**60, True, 1.5, "1", None])
def test_a_clock_that_gives_no_time_is_refused(open_ledger, now):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    clock.now_us = now
    with refused("INVALID_PARAMS", "clock"):
        ledger.start_session(intent="x")
    with pytest.raises(affidavit.InputError):
        record(ledger)
    clock.now_us = NOON_US
    assert record(ledger).index == 1
