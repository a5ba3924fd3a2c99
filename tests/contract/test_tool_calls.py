"""Tool calls: asked for once, ended once, whatever is retried and whoever is late."""

import hashlib
import json
import threading
import uuid
from pathlib import Path

import pytest

import affidavit
from contract.calls import Clock, record, refused, start

ID = "0b0e8c1a-0000-4000-8000-000000000001"
OTHER = "0b0e8c1a-0000-4000-8000-000000000002"
ARGS = Path(__file__).parents[1] / "vectors/data/affidavit-v1/args.json"


@pytest.fixture
def kept(open_ledger):
    return open_ledger(settings={"payloads": "keep"}, project_root="/project")


def ask(ledger, call_id="c1", **given):
    asked = {"vendor": "openai", "tool_name": "grep", "arguments": {"a": 1}, **given}
    return ledger.request_tool_call(given.pop("request_id", ID), call_id, **asked)


def finish(ledger, call_id="c1", status="completed", **given):
    return ledger.finish_tool_call(ID, call_id, status, **given)


def test_the_pair_of_a_call_has_what_was_given(kept):
    start(kept, session_id="s")
    asked = ask(
        kept, parent_id=uuid.UUID(OTHER), started_at_ms=1_000, session_id="s", actor="a", model="m",
        attributes={"x": [1]},
    )  # fmt: skip
    usage = {"input_tokens": 3, "cost_microusd": 12}
    done = finish(kept, outcome={"ok": True}, ended_at_ms=1_250, usage=usage)
    assert kept.get_tool_call(ID.upper(), "c1") == (asked, done)
    assert (asked.request_id, asked.parent_id, asked.arguments) == (ID, OTHER, {"a": 1})
    assert (asked.started_at_ms, asked.attributes, asked.args_form) == (1_000, {"x": [1]}, "jcs")
    assert (done.status, done.outcome, done.latency_ms) == ("completed", {"ok": True}, 250)
    assert done.usage == usage
    assert kept.get_tool_call(OTHER, "c1") is None


@pytest.mark.parametrize("case", json.loads(ARGS.read_text()), ids=lambda case: case["jcs"][:12])
def test_digests_are_those_of_the_vectors(kept, case):
    asked = ask(kept, arguments=case["arguments"])
    assert (asked.arguments_json, asked.args_sha256) == (case["jcs"], case["args_sha256"])
    again = json.dumps(case["arguments"], indent=2)
    size = len(kept)
    assert ask(kept, arguments=again) == asked
    assert len(kept) == size


@pytest.mark.parametrize("text", ['{"n": 9007199254740992}', '{"a":1,"a":2}', "[" * 65 + "]" * 65])
def test_json_text_that_cannot_be_canonical_is_kept_as_it_came(kept, text):
    asked = ask(kept, arguments=text)
    assert (asked.args_form, asked.arguments_json) == ("raw", text)
    assert asked.args_sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_a_digest_alone_is_enough_and_another_one_is_refused(kept):
    digest = hashlib.sha256(b'{"a":1}').hexdigest()
    asked = ask(kept, arguments=None, args_sha256=digest)
    assert (asked.args_form, asked.args_sha256, asked.arguments_json) == ("given", digest, None)
    assert ask(kept, "c2", args_sha256=digest).args_form == "jcs"
    with refused("INVALID_PARAMS", "args_sha256"):
        ask(kept, "c3", args_sha256="0" * 64)
    with refused("INVALID_PARAMS", "arguments"):
        ask(kept, "c3", arguments=None)


def test_by_default_only_digests_are_stored(ledger):
    ask(ledger, arguments={"secret": "plain words"})
    finish(ledger, outcome={"answer": "plain words"})
    asked, done = ledger.get_tool_call(ID, "c1")
    assert (asked.arguments_json, done.outcome_json) == (None, None)
    assert asked.args_sha256
    assert done.outcome_sha256
    ledger.close()
    assert b"plain words" not in Path(ledger._name.rsplit(" ", 1)[0]).read_bytes()


def test_asking_again_adds_a_version_only_while_it_is_open_and_differs(kept):
    first = ask(kept, started_at_ms=5)
    size = len(kept)
    assert ask(kept) == first
    assert len(kept) == size
    changed = ask(kept, model="m2")
    assert (changed.started_at_ms, len(kept)) == (5, size + 1)
    finish(kept)
    assert ask(kept, model="m2").index == changed.index
    with refused("ERR_INVALID_LIFECYCLE") as caught:
        ask(kept, model="m3")
    assert caught.value.details["status"] == "completed"
    assert [one.status for one in kept.tool_call_history(ID, "c1")] == [
        "requested", "requested", "completed",
    ]  # fmt: skip


def test_the_same_result_again_is_nothing_and_another_is_refused(kept):
    ask(kept)
    done = finish(kept, outcome='{"b": 1.0, "a": [1, 2]}', ended_at_ms=10)
    size = len(kept)
    assert finish(kept, outcome={"a": [1, 2], "b": 1}, ended_at_ms=99) == done
    assert len(kept) == size
    for wrong in ({"outcome": {"a": 1}}, {"status": "failed", "error_kind": "late"}, {}):
        with refused("ERR_INVALID_LIFECYCLE") as caught:
            finish(kept, **wrong)
        assert caught.value.details["allowed"] == []
    assert len(kept) == size


def test_a_finish_without_a_request_names_what_is_allowed(kept):
    with refused("ERR_INVALID_LIFECYCLE") as caught:
        finish(kept)
    assert caught.value.details["allowed"] == ["requested"]
    with refused("ERR_INVALID_LIFECYCLE"):
        kept.decide_call(ID, "c1", "approved", "owner")


def test_an_outcome_belongs_to_success_and_an_error_to_failure(kept):
    ask(kept)
    with refused("INVALID_PARAMS", "outcome"):
        finish(kept, status="failed", outcome=1)
    for name in ("error_kind", "error_msg"):
        with refused("INVALID_PARAMS", name):
            finish(kept, **{name: "x"})
    done = finish(kept, status="failed", error_kind="timeout", error_msg="no answer")
    assert finish(kept, status="failed", error_kind="timeout", error_msg="no answer") == done


def test_latency_is_computed_and_never_negative(kept):
    ask(kept, started_at_ms=1_000)
    assert finish(kept, ended_at_ms=900).latency_ms == 0
    ask(kept, "c2", started_at_ms=1_000)
    assert finish(kept, "c2", ended_at_ms=1_900, latency_ms=7).latency_ms == 7


def test_two_writers_finishing_at_once_make_one_result(open_ledger):
    ledgers = [open_ledger() for _ in range(2)]
    for number in range(20):
        ask(ledgers[0], f"c{number}")
        outcomes = []

        def run(ledger, outcome, number=number, outcomes=outcomes):
            try:
                outcomes.append(finish(ledger, f"c{number}", outcome=outcome).index)
            except affidavit.ConflictError as error:
                outcomes.append(error.code)

        said = (1, 1) if number % 2 else (1, 2)
        threads = [
            threading.Thread(target=run, args=one) for one in zip(ledgers, said, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledgers[0].tool_call_history(ID, f"c{number}")) == 2
        refusals = outcomes.count("ERR_INVALID_LIFECYCLE")
        assert refusals == (0 if number % 2 else 1)


def test_orphans_are_marked_and_a_real_result_is_kept_as_late(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock, settings={"payloads": "keep"})
    ask(ledger, "old")
    clock.advance(3_600_000_000)
    ask(ledger, "new")
    assert [asked.call_id for asked, _ in ledger.list_orphans()] == ["old"]
    assert [asked.call_id for asked, _ in ledger.mark_orphans()] == ["old"]
    assert ledger.list_orphans() == []
    real = finish(ledger, "old", outcome="after all")
    _, done = ledger.get_tool_call(ID, "old")
    assert (done.status, done.error_kind, done.late.index) == ("failed", "orphaned", real.index)
    assert finish(ledger, "old", outcome="after all") == real
    with refused("ERR_INVALID_LIFECYCLE"):
        finish(ledger, "old", outcome="something else")
    assert [v.late for v in ledger.tool_call_history(ID, "old")] == [False, False, True]
    assert ledger.rebuild(check=True).valid


def test_a_sealed_session_takes_only_the_end_of_what_was_asked_before(kept):
    start(kept, session_id="s")
    ask(kept, session_id="s")
    ask(kept, "orphan", session_id="s")
    record(kept, session_id="s")
    seal = kept.seal_session("s")
    assert seal.entry_count == 4
    with refused("ERR_SESSION_SEALED"):
        ask(kept, "c2", session_id="s")
    with refused("ERR_SESSION_SEALED"):
        kept.upsert_turn(ID, ID, "user", "x", session_id="s")
    finish(kept, outcome=1)
    assert kept.decide_call(ID, "c1", "approved", "owner").session_id is None
    kept.mark_orphans(0)
    assert kept.verify().valid


def test_lists_are_newest_first_and_page_by_index(kept):
    for number in range(5):
        ask(kept, f"c{number}", started_at_ms=100 + number // 2, tool_name=f"t{number % 2}")
    finish(kept, "c1")

    def names(**wanted):
        return [asked.call_id for asked, _ in kept.list_tool_calls(**wanted)]

    assert names() == ["c4", "c3", "c2", "c1", "c0"]
    assert names(since_ms=101, until_ms=102) == ["c3", "c2"]
    assert names(tool_name="t1") == ["c3", "c1"]
    assert names(status="completed") == ["c1"]
    assert names(request_id=OTHER) == []
    page = kept.list_tool_calls(limit=2)
    assert names(after=page[-1][0].index, limit=2) == ["c2", "c1"]
    with refused("ERR_NOT_FOUND", "after"):
        names(after=0)


def test_paths_are_stored_relative_to_the_project(kept):
    asked = ask(
        kept, arguments={"path": "/project/src/a.py", "inner": {"cwd": "/elsewhere"}, "uri": "x:y"}
    )
    assert asked.arguments == {"path": "src/a.py", "inner": {"cwd": "/elsewhere"}, "uri": "x:y"}
    assert asked.paths_outside == 1
    plain = ask(kept, "c2", arguments={"path": "/project"})
    assert (plain.arguments, plain.paths_outside) == ({"path": "."}, 0)


def test_a_payload_too_large_is_refused_with_the_limits_name(kept):
    with refused("ERR_TOO_LARGE") as caught:
        ask(kept, arguments=["x" * (17 * 1024 * 1024)])
    assert caught.value.details["limit"] == "payload_bytes_max"
    assert caught.value.details["size_bytes"] > caught.value.details["limit_bytes"]


def test_who_allowed_a_call_is_kept(kept):
    ask(kept)
    first = kept.decide_call(ID, "c1", "denied", "owner", "too wide")
    assert kept.decide_call(ID, "c1", "denied", "owner", "too wide") == first
    second = kept.decide_call(ID, "c1", "approved", "owner")
    assert kept.list_call_decisions(ID, "c1") == [first, second]


def test_usage_counts_what_was_used_whenever_it_was_told(kept):
    ask(kept, model="m")
    finish(kept, status="failed", error_kind="orphaned")
    finish(kept, outcome={}, usage={"input_tokens": 5})
    assert [(one.key, one.counts) for one in kept.usage()] == [("m", {"input_tokens": 5})]


def test_usage_is_added_up_beyond_what_a_database_can_add(kept):
    most, count = 2**53 - 1, 1_100
    with kept.transaction() as tx:
        for number in range(count):
            ask(tx, f"c{number}")
            finish(tx, f"c{number}", usage={"input_tokens": most})
    assert kept.usage()[0].counts == {"input_tokens": most * count}


def test_a_result_cleaned_by_other_rules_is_still_the_same(kept, monkeypatch):
    ask(kept)
    said = {"status": "failed", "error_kind": "e", "error_msg": "password=hunter22"}
    with monkeypatch.context() as older:
        older.setattr("affidavit.ledger.redaction.RULES", "0")
        older.setattr("affidavit.ledger.payloads.redact_text", lambda text: (text[:8], 1))
        done = finish(kept, **said)
    assert done.error_msg == "password"
    assert finish(kept, **said) == done
    with refused("ERR_INVALID_LIFECYCLE"):
        finish(kept, **{**said, "error_msg": None})
