"""Stories: what was said beside what was seen, calls with their ends, and what is marked."""

from __future__ import annotations

import json
import time
import uuid

import pytest

from affidavit.core.entry import Source
from affidavit.ledger.handle import acting_for
from contract.calls import HOUR_US, NOON_US, Clock, record, refused, start


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def told(open_ledger, clock):
    return Told(open_ledger(settings={"payloads": "keep"}, clock=clock), clock)


class Told:
    """A session in which things are said and seen."""

    def __init__(self, ledger, clock):
        self.ledger = ledger
        self.clock = clock
        self.session = start(ledger)
        self.count = 0

    def by(self, via):
        return acting_for(self.ledger, Source(auth="none", client=None, via=via))

    def say(self, text, via="hook", kind="assistant"):
        self.count += 1
        name = str(uuid.UUID(int=self.count))
        self.by(via).upsert_turn(name, name, kind, text, session_id=self.session)

    def call(self, tool="Bash", arguments=None, status="completed", via="hook", **given):
        self.count += 1
        name = {"request_id": str(uuid.UUID(int=self.count)), "call_id": f"c{self.count}"}
        arguments = {"command": arguments} if isinstance(arguments, str) else arguments or {}
        ledger = self.by(via)
        ledger.request_tool_call(
            **name, vendor="v", tool_name=tool, arguments=arguments, session_id=self.session,
            started_at_ms=self.clock() // 1_000, **given,
        )  # fmt: skip
        if status:
            ledger.finish_tool_call(**name, status=status, latency_ms=1_500)
        return name

    def story(self, **given):
        return self.ledger.tell_story(self.session, **given)

    def marks(self):
        return [(mark.code, mark.said) for step in self.story() for mark in step.marks]


def test_said_is_what_an_agent_says_whoever_saw_it_say_so(told):
    told.say("done", via="hook")
    told.say("please", via="hook", kind="user")
    told.say("please", via="import", kind="user")
    told.call(via="proxy")
    told.call(via="mcp")
    record(told.by("hook"), session_id=told.session)
    known = [(step.entry.kind, step.basis) for step in told.story()]
    assert known[1:] == [
        ("turn.asserted", "said"), ("turn.asserted", "seen"), ("turn.asserted", "said"),
        ("tool_call.requested", "seen"), ("tool_call.completed", "seen"),
        ("tool_call.requested", "said"), ("tool_call.completed", "said"),
        ("thought.recorded", "said"),
    ]  # fmt: skip


def test_a_call_is_told_with_how_it_ended(told):
    told.call()
    told.call(status="failed")
    name = told.call(status=None)
    calls = [step.call for step in told.story() if step.call]
    assert [call.state for call in calls] == ["completed", "failed", "open"]
    assert (calls[0].latency_ms, calls[0].end.kind) == (1_500, "tool_call.completed")
    ends = [step.told_at for step in told.story() if step.entry.kind.startswith("tool_call.c")]
    assert ends == [1 + 1]
    told.clock.advance(HOUR_US)
    assert told.marks() == [("dead", "nobody finished this call")]
    told.ledger.mark_orphans()
    assert told.marks() == [("dead", "nobody finished this call")]
    told.ledger.finish_tool_call(**name, status="completed", outcome={"late": True})
    assert told.marks() == []


def test_a_call_left_open_in_a_session_that_ended_is_dead(told):
    told.call(status=None)
    assert told.marks() == []
    told.ledger.end_session(told.session)
    assert [code for code, _ in told.marks()] == ["dead"]


def test_a_claim_holds_only_behind_a_run_that_was_seen_since_the_last_edit(told):
    told.say("All tests pass.")
    assert told.marks() == [("unproven", "says tests pass: no run of tests is recorded before")]
    told.call(arguments="cd x && pytest -q")
    told.say("All tests pass.")
    record(told.ledger, session_id=told.session, content="The tests pass, so I ship it.")
    assert len(told.marks()) == 1
    told.call("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"})
    told.say("All tests pass.")
    assert told.marks()[1:] == [
        ("unproven", "says tests pass: no run of tests is recorded since the edit")
    ]
    told.call(arguments="pytest", status="failed")
    told.say("All tests pass.")
    assert told.marks()[2:] == [("unproven", "says tests pass: the run before failed")]
    told.call(arguments="pytest", status=None)
    told.say("All tests pass.")
    assert told.marks()[3:] == [("unproven", "says tests pass: the run before did not end")]


def test_a_run_counts_for_a_claim_only_once_it_has_ended(told):
    name = told.call(arguments="pytest", status=None)
    told.say("All tests pass.")
    told.by("hook").finish_tool_call(**name, status="completed")
    told.say("The tests pass.")
    assert told.marks() == [("unproven", "says tests pass: the run before did not end")]
    told.call(arguments="ls")
    told.say("All tests pass.")
    assert len(told.marks()) == 1


def test_a_story_full_of_claims_is_told_in_time(open_ledger, clock):
    told = Told(open_ledger(clock=clock), clock)
    told.ledger.record_thoughts(
        {"type": "plan", "task_id": "t", "agent_id": "a", "session_id": told.session,
         "content": f"All tests pass, {number}."}
        for number in range(3_000)
    )  # fmt: skip
    began = time.monotonic()
    page = told.story(after=2_000, limit=1_000)
    assert time.monotonic() - began < 5
    assert sum(len(step.marks) for step in page) == 1_000


@pytest.mark.parametrize("via", ["import", "mcp", "python"])
def test_a_run_that_is_only_told_proves_no_claim(told, via):
    told.call(arguments="pytest", via=via)
    told.say("All tests pass.")
    said = f"says tests pass: the run before is told (by {via}), nobody saw it"
    assert told.marks() == [("unproven", said)]


def test_what_a_user_says_is_no_claim_and_a_claim_at_the_end_of_a_long_text_is_one(told):
    told.say("All tests pass.", kind="user")
    assert told.marks() == []
    told.say("x" * 9_000 + ".\nAll tests pass.")
    assert len([mark for step in told.story(text_bytes_max=100) for mark in step.marks]) == 1


def test_what_is_not_kept_is_not_judged(open_ledger, clock):
    told = Told(open_ledger(settings={"payloads": "hash"}, clock=clock), clock)
    told.call(arguments="pytest")
    told.say("All tests pass.")
    said = "says tests pass: what commands ran before is not kept"
    assert told.marks() == [("unproven", said)]


def test_a_story_is_the_whole_session_page_by_page(told):
    for number in range(20):
        told.call(arguments=f"echo {number}")
    told.say("All tests pass.")
    whole = told.story()
    assert [step.entry for step in whole] == told.ledger.list_entries(session_id=told.session)
    pages, after = [], None
    while page := told.story(after=after, limit=7):
        pages, after = pages + page, page[-1].entry.index
    assert pages == whole
    assert json.dumps([step.to_dict() for step in whole])
    assert told.ledger.tell_story("nobody") == []


def test_an_import_is_told_at_the_time_it_tells_of(told):
    told.clock.advance(HOUR_US)
    told.by("import").upsert_turn(
        str(uuid.UUID(int=77)), str(uuid.UUID(int=77)), "user", "hi", session_id=told.session,
        occurred_at_ms=1_000,
    )  # fmt: skip
    first, second = told.story()
    assert (first.when_us, second.when_us) == (NOON_US + 1, 1_000_000)


def test_odd_input_is_refused_by_name(told):
    with refused("INVALID_PARAMS", "session_id"):
        told.ledger.tell_story("")
    with refused("INVALID_PARAMS", "limit"):
        told.ledger.tell_story("s", limit=0)
    with refused("INVALID_PARAMS", "path"):
        told.ledger.trace_file(7)
    with refused("INVALID_PARAMS", "limit"):
        told.ledger.trace_file("a", limit=0)


class TestWhereAFileComesFrom:
    def test_edits_are_found_by_file_the_newest_first_with_the_decision_before(self, told):
        decided = record(told.ledger, type="decision", session_id=told.session, content="B")
        told.call("Write", {"file_path": "src/a.py", "content": "one\ntwo\n"})
        record(told.ledger, type="reflection", session_id=told.session)
        told.call("Edit", {"file_path": "src/a.py", "old_string": "two", "new_string": "three"})
        told.call("Edit", {"file_path": "src/b.py", "old_string": "a.py", "new_string": "x"})
        told.call("Read", {"file_path": "src/a.py", "content": "three"})
        seal = told.ledger.seal_session(told.session)
        newest, oldest = told.ledger.trace_file("src/a.py")
        assert (newest.tool_name, oldest.tool_name) == ("Edit", "Write")
        assert newest.lines == (("-", "two"), ("+", "three"))
        assert newest.decision.index == oldest.decision.index == decided.index
        assert (newest.seal_index, newest.root, newest.basis) == (seal.index, seal.root, "seen")
        [only] = told.ledger.trace_file("a.py", line="two  ")
        assert only == oldest
        assert told.ledger.trace_file("a.py", line="four") == []
        assert len(told.ledger.trace_file("a.py", limit=1)) == 1
        assert told.ledger.trace_file("other/a.py") == []

    def test_proposals_count_and_an_edit_told_twice_is_one(self, told):
        name = told.call("Edit", {"file_path": 'é "q".py', "old_string": "", "new_string": "n"})
        diffs = [{"file": 'é "q".py', "patch": "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+n\n"}]
        told.ledger.create_proposal(name["request_id"], diffs, session_id=told.session)
        told.ledger.create_proposal(str(uuid.UUID(int=99)), {"p/q.py": diffs[0]["patch"]})
        [one] = told.ledger.trace_file('é "q".py', line="n")
        assert (one.tool_name, one.status, one.decision) == (None, "pending", None)
        assert told.ledger.trace_file("q.py")[0].session_id is None

    def test_an_edit_that_was_not_carried_out_made_no_line(self, told):
        done, denied = (str(uuid.UUID(int=number)) for number in (98, 99))
        diffs = [{"path": "a.py", "diff": "@@ -0,0 +1 @@\n+n\n"}]
        for name, decision in ((done, "approved"), (denied, "denied")):
            told.ledger.create_proposal(name, diffs, session_id=told.session)
            told.ledger.decide_proposal(name, decision, "user")
        told.ledger.apply_proposal(done)
        assert [one.request_id for one in told.ledger.trace_file("a.py")] == [denied, done]
        assert [one.request_id for one in told.ledger.trace_file("a.py", line="n")] == [done]

    def test_a_decision_is_found_in_the_session_it_goes_on_from(self, told):
        decided = record(told.ledger, session_id=told.session)
        told.ledger.end_session(told.session)
        told.session = start(told.ledger, continues=told.session)
        told.call("Write", {"file_path": "a.py", "content": "x"})
        [one] = told.ledger.trace_file("a.py")
        assert one.decision.index == decided.index
