"""Periods of retention: what is older loses its texts, only when a person says so."""

import itertools

import pytest

import affidavit
from affidavit.apps.cli.keeping_arguments import RETAINED as WORDS
from affidavit.apps.kept_retained import KeptRetained
from affidavit.ledger.retaining import RETAINED

DAY_US = 86_400_000_000
START_US = 1_776_384_000_000_000


@pytest.fixture
def clock():
    """Hours, one with every look; `ahead` moves it."""

    class Clock:
        ahead_us = 0
        ticks = itertools.count()

        def __call__(self):
            return START_US + self.ahead_us + next(self.ticks)

    return Clock()


@pytest.fixture
def ledger(open_ledger, clock):
    return open_ledger(clock=clock, settings={"payloads": "keep"})


def uuid(number):
    return f"7f000000-0000-4000-8000-{number:012}"


def fill(ledger, first=0):
    for number in range(first, first + 3):
        one = uuid(number)
        ledger.upsert_turn(one, one, "user", f"turn {number}")
        ledger.request_tool_call(one, "c", None, "v", "read", arguments={"n": number})
        ledger.finish_tool_call(one, "c", "failed", error_kind="io", error_msg=f"call {number}")
        ledger.create_proposal(one, [{"path": "a", "diff": f"proposal {number}"}])
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content=f"thought {number}")


def kept(ledger):
    return {
        "turn": sum(one.content is not None for one in ledger.list_turns()),
        "tool_call": sum(request.arguments is not None for request, _ in ledger.list_tool_calls()),
        "proposal": sum(one.diffs is not None for one in ledger.list_proposals()),
        "thought": sum(one.content is not None for one in ledger.list_thoughts()),
    }


def test_nothing_goes_unless_a_person_sets_a_period(ledger, clock):
    fill(ledger)
    clock.ahead_us = 10_000 * DAY_US
    assert ledger.retain().erased == {}
    assert ledger.overdue() == ()
    assert kept(ledger) == {"turn": 3, "tool_call": 3, "proposal": 3, "thought": 3}


@pytest.mark.parametrize("kind", RETAINED)
def test_what_is_older_loses_its_texts_and_nothing_else_does(ledger, clock, kind):
    fill(ledger)
    clock.ahead_us = 91 * DAY_US
    fill(ledger, first=3)
    done = ledger.set_retention(kind, 90, by="owner")
    assert done.erased[kind] >= 3
    assert list(done.erased) == [kind]
    assert kept(ledger) == {
        "turn": 6, "tool_call": 6, "proposal": 6, "thought": 6, kind: 3,
    }  # fmt: skip
    assert ledger.verify().valid
    assert ledger.overdue() == ()
    assert ledger.retain().erased == {}


def test_the_log_says_that_it_was_the_period(ledger, clock):
    fill(ledger)
    clock.ahead_us = 2 * DAY_US
    ledger.set_retention("turn", 1, by="owner")
    kinds = [(one.kind, one.body.get("by")) for one in ledger.list_entries()[-2:]]
    assert kinds == [("setting.changed", "owner"), ("payload.erased", "retention")]


def test_how_overdue_it_is_can_be_told(ledger, clock):
    fill(ledger)
    ledger.set(retain_turn_days=1)
    assert ledger.overdue() == ()
    clock.ahead_us = 3 * DAY_US
    [found] = ledger.overdue()
    assert found.kind == "turn"
    assert 1.9 * DAY_US < found.overdue_us < 2.1 * DAY_US


def test_a_server_applies_it_by_itself(ledger, clock):
    fill(ledger)
    ledger.set(retain_turn_days=1)
    clock.ahead_us = 3 * DAY_US
    said = []
    with KeptRetained(ledger, said.append, every_s=60):
        pass
    assert said == []
    assert kept(ledger)["turn"] == 0


def test_decisions_have_no_period(ledger):
    with pytest.raises(affidavit.InputError, match="thought"):
        ledger.set_retention("thought", 1)


def test_the_command_line_knows_the_same_words():
    assert tuple(RETAINED) == WORDS
