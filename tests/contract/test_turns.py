"""Turns of a conversation: said, said again otherwise, taken back."""

import uuid

import pytest

from contract.calls import refused

ID = "0b0e8c1a-0000-4000-8000-000000000001"
MESSAGE = "0b0e8c1a-0000-4000-8000-000000000002"


def say(ledger, content="hello", **given):
    return ledger.upsert_turn(
        given.pop("id", ID), given.pop("message_id", MESSAGE), "user", content, **given
    )


def test_a_turn_comes_back_as_it_was_given(ledger):
    given = {
        "parent_id": str(uuid.uuid4()),
        "thread_id": "t",
        "occurred_at_ms": 5,
        "actor": "a",
        "model": "m",
        "usage": {"input_tokens": 1},
    }
    turn = say(ledger, attributes={"k": 1.5}, **given)
    assert ledger.get_turn(uuid.UUID(ID)) == turn
    assert turn.attributes == {"k": 1.5}
    assert {name: getattr(turn, name) for name in given} == given
    assert (turn.kind, turn.content, turn.created_at_ms) == ("user", "hello", 5)


def test_the_same_turn_again_is_nothing_and_another_content_a_version(ledger):
    first = say(ledger)
    assert say(ledger) == first
    second = say(ledger, "other")
    assert second.index == first.index + 1
    assert second.created_at_ms == first.created_at_ms
    assert ledger.get_turn(ID).content == "other"
    assert len(ledger) == 3


def test_an_empty_content_is_a_content(ledger):
    assert say(ledger, "").content == ""
    assert ledger.get_turn(ID).content == ""


def test_a_turn_taken_back_is_gone_until_it_is_said_again(ledger):
    with refused("ERR_NOT_FOUND", "id"):
        ledger.retract_turn(ID)
    say(ledger)
    index = ledger.retract_turn(ID, "a slip")
    assert ledger.retract_turn(ID) == index
    assert ledger.get_turn(ID) is None
    assert ledger.list_turns() == []
    assert say(ledger).index == index + 1
    assert ledger.get_turn(ID).content == "hello"


def test_lists_are_oldest_first_by_the_callers_time(ledger):
    for number, at_ms in enumerate((30, 10, 20, 20)):
        say(
            ledger,
            str(number),
            id=str(uuid.UUID(int=number)),
            message_id=str(uuid.UUID(int=number % 2)),
            occurred_at_ms=at_ms,
            thread_id=f"t{number % 2}",
        )

    def contents(**wanted):
        return [turn.content for turn in ledger.list_turns(**wanted)]

    assert contents() == ["1", "2", "3", "0"]
    assert contents(newest_first=True) == ["0", "3", "2", "1"]
    assert contents(since_ms=20) == ["2", "3", "0"]
    assert contents(thread_id="t1") == ["1", "3"]
    assert contents(message_id=str(uuid.UUID(int=0))) == ["2", "0"]
    page = ledger.list_turns(limit=2)
    assert contents(after=page[-1].index) == ["3", "0"]


@pytest.mark.parametrize("kind", ["user", "assistant", "system", "sysinfo", "tool"])
def test_every_kind_of_turn(ledger, kind):
    assert ledger.upsert_turn(ID, MESSAGE, kind, "x").kind == kind
