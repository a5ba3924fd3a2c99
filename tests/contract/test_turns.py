"""Turns of a conversation: said, said again otherwise, taken back."""

import uuid

import pytest

from contract.calls import refused, start

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


def say_all(ledger, words):
    """So many turns in one unit, and so in one millisecond; their ids."""
    ids = [str(uuid.uuid4()) for _ in words]
    with ledger.transaction() as tx:
        for name, word in zip(ids, words, strict=True):
            tx.upsert_turn(name, name, "user", word, thread_id="t", session_id="s")
    return ids


@pytest.mark.parametrize("wanted", [{}, {"thread_id": "t"}, {"session_id": "s"}], ids=str)
def test_a_turn_that_is_changed_stays_where_it_was(ledger, wanted):
    start(ledger, session_id="s")
    first, *_ = say_all(ledger, ["question", "answer", "more"])
    said = ["question, put better", "answer", "more"]
    ledger.upsert_turn(first, first, "user", said[0], thread_id="t", session_id="s")
    assert [turn.content for turn in ledger.list_turns(**wanted)] == said
    backwards = ledger.list_turns(newest_first=True, **wanted)
    assert [turn.content for turn in backwards] == said[::-1]


@pytest.mark.parametrize("newest_first", [False, True])
def test_no_page_misses_a_turn_that_is_changed_meanwhile(ledger, newest_first):
    start(ledger, session_id="s")
    ids = say_all(ledger, list("abcdef"))
    seen, after = [], None
    while page := ledger.list_turns(limit=2, after=after, newest_first=newest_first):
        seen += [turn.id for turn in page]
        after = page[-1].index
        for number in (0, 5):
            content = f"changed {len(seen)}"
            ledger.upsert_turn(ids[number], ids[number], "user", content, thread_id="t")
    assert seen == (ids[::-1] if newest_first else ids)


def test_a_turn_that_moves_is_listed_once_where_it_is(ledger):
    name = str(uuid.uuid4())
    for thread, time in (("a", 1), ("b", 2), ("a", 1), ("b", 1), ("a", 2)):
        ledger.upsert_turn(name, name, "user", "x", thread_id=thread, occurred_at_ms=time)
    ledger.upsert_turn(uuid.uuid4(), name, "user", "other", thread_id="a", occurred_at_ms=2)
    assert [turn.content for turn in ledger.list_turns(thread_id="a")] == ["x", "other"]
    assert ledger.list_turns(thread_id="b") == []
    assert [turn.content for turn in ledger.list_turns()] == ["x", "other"]
    assert [turn.thread_id for turn in ledger.list_turns(as_of_index=2)] == ["b"]
