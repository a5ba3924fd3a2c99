"""Clocks that jump: `at` never goes back, and a clock behind the newest entry is told of."""

import pytest

import affidavit
from faults.support import audit

NOW_US = 1_790_000_000_000_000
MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
THOUGHT = {"type": "plan", "task_id": "t", "agent_id": "a", "content": "c"}


class Clock:
    def __init__(self):
        self.now = NOW_US

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watched(folder, clock):
    """A ledger on that clock, and everything it says about times afterwards."""
    path = str(folder / "trail.db")
    with affidavit.open(path, clock=clock) as ledger:
        yield ledger
    audit(path)


def record(ledger):
    return ledger.record_thought(**THOUGHT).at


def test_a_clock_set_back_an_hour_does_not_turn_time_back(watched, clock):
    first = record(watched)
    clock.now -= HOUR_US
    later = [record(watched) for _ in range(5)]
    assert later == [first + 1 + step for step in range(5)]
    assert watched.describe()["clock_ahead_us"] == later[-1] - clock.now
    clock.now = later[-1] + MINUTE_US
    assert record(watched) == clock.now
    assert watched.describe()["clock_ahead_us"] == 0


def test_a_clock_that_jumps_forward_a_day_and_back_is_told_of(watched, clock):
    record(watched)
    clock.now += DAY_US
    ahead = record(watched)
    assert ahead == clock.now
    clock.now -= DAY_US
    assert watched.describe()["clock_ahead_us"] == DAY_US
    assert record(watched) == ahead + 1
    clock.now += DAY_US + HOUR_US
    assert record(watched) == clock.now


def test_every_kind_of_fact_keeps_to_the_order(watched, clock):
    times = []
    steps = [
        lambda: watched.start_session(intent="i", session_id="s").at,
        lambda: watched.record_thought(**THOUGHT, session_id="s").at,
        lambda: watched.create_task(title="t").at,
        lambda: watched.set(writeback="reflection") and watched._read(lambda r: r.last_at()),
        lambda: watched.seal_session("s").at,
        lambda: watched.end_session("s") and watched._read(lambda reader: reader.last_at()),
    ]
    for step in steps:
        clock.now -= HOUR_US
        times.append(step())
    assert times == sorted(set(times))


def test_a_clock_that_was_behind_when_it_was_closed_is_behind_when_it_opens(folder, clock):
    path = str(folder / "trail.db")
    with affidavit.open(path, clock=clock) as ledger:
        newest = record(ledger)
    clock.now -= DAY_US
    with affidavit.open(path, clock=clock) as ledger:
        assert ledger.describe()["clock_ahead_us"] == newest - clock.now
        assert record(ledger) == newest + 1
    audit(path)


def test_a_clock_jumping_forward_ends_idle_sessions_as_lost_but_only_at_an_opening(folder, clock):
    path = str(folder / "trail.db")
    with affidavit.open(path, clock=clock) as ledger:
        ledger.start_session(intent="i", session_id="s")
        clock.now += 2 * DAY_US
        assert ledger.record_thought(**THOUGHT, session_id="s").session_seq == 0
        clock.now += 2 * DAY_US
    with affidavit.open(path, clock=clock) as ledger:
        assert ledger.get_session("s").end_reason == "lost"
        assert ledger.get_session("s").root is None
    audit(path)


def test_two_clocks_that_disagree_still_make_one_order(folder):
    path = str(folder / "trail.db")
    clocks = [lambda: NOW_US, lambda: NOW_US - HOUR_US, lambda: NOW_US + MINUTE_US]
    ledgers = [affidavit.open(path, clock=clock) for clock in clocks]
    times = [record(ledgers[step % 3]) for step in range(12)]
    assert times == sorted(set(times))
    for ledger in ledgers:
        ledger.close()
    audit(path)
