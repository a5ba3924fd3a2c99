"""The observability store: turns, tool calls and proposals, by the names of what is required."""

import sqlite3
from contextlib import closing

import pytest

import affidavit
from contract.calls import Clock, refused

ID = "0b0e8c1a-0000-4000-8000-000000000001"
OTHER = "0b0e8c1a-0000-4000-8000-000000000002"

COLUMNS = {
    "conversation_turns": "id parent_id message_id kind content at created_at_ms thread_id",
    "tool_calls": "request_id call_id parent_id vendor tool_name args_sha256 arguments_json status"
    " started_at_ms ended_at_ms latency_ms outcome_json error_kind error_msg at",
    "code_edit_proposals": "request_id diffs_json confidence status created_at_ms decided_at_ms"
    " applied_at_ms commit_hash at",
}
# The first columns of an index of each table.
INDEXES = {
    "conversation_turns": [("message_id",), ("created_at_ms",), ("thread_id", "created_at_ms")],
    "tool_calls": [("request_id", "call_id"), ("parent_id", "started_at_ms"), ("status",)],
    "code_edit_proposals": [("status",), ("created_at_ms",)],
}


def ask(ledger, **given):
    asked = {"vendor": "openai", "tool_name": "grep", "arguments": {"a": 1}, **given}
    return ledger.request_tool_call(ID, "c1", **asked)


def test_the_tables_have_every_column_and_index(ledger):
    with closing(sqlite3.connect(ledger.location)) as connection:
        for table, columns in COLUMNS.items():
            found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            assert set(columns.split()) <= found
            starts = [
                tuple(row[2] for row in connection.execute(f"PRAGMA index_info({name})"))
                for _, name, *_ in connection.execute(f"PRAGMA index_list({table})")
            ]
            for wanted in INDEXES[table]:
                assert any(one[: len(wanted)] == wanted for one in starts), (table, wanted)


def test_turns_are_kept_and_found_by_message_and_thread(ledger):
    turn = ledger.upsert_turn(ID, OTHER, "user", "hello", thread_id="t")
    assert ledger.list_turns(message_id=OTHER) == ledger.list_turns(thread_id="t") == [turn]
    assert ledger.list_turns(thread_id="u") == []


def test_a_request_again_adds_no_row(ledger):
    ask(ledger)
    ask(ledger)
    ask(ledger, tool_name="grep")
    assert len(ledger.tool_call_history(ID, "c1")) == 1


def test_the_same_result_twice_is_one(ledger):
    ask(ledger)
    assert ledger.finish_tool_call(ID, "c1", "completed", [1]) == ledger.finish_tool_call(
        ID, "c1", "completed", "[ 1 ]"
    )
    assert len(ledger.tool_call_history(ID, "c1")) == 2


def test_completed_cannot_become_failed(ledger):
    ask(ledger)
    ledger.finish_tool_call(ID, "c1", "completed")
    with refused("ERR_INVALID_LIFECYCLE"):
        ledger.finish_tool_call(ID, "c1", "failed", error_kind="x")


def test_calls_are_found_by_everything_they_are_indexed_by(ledger):
    ask(ledger, parent_id=OTHER, started_at_ms=5)
    pair = ledger.get_tool_call(ID, "c1")
    for wanted in (
        {"request_id": ID}, {"parent_id": OTHER}, {"tool_name": "grep"}, {"vendor": "openai"},
        {"status": "requested"}, {"since_ms": 5, "until_ms": 6},
    ):  # fmt: skip
        assert ledger.list_tool_calls(**wanted) == [pair], wanted


def test_a_proposal_goes_from_pending_to_reverted(ledger):
    ledger.create_proposal(ID, [], 0.5)
    ledger.decide_proposal(ID, "approved", "owner")
    ledger.apply_proposal(ID, "abc")
    assert ledger.revert_proposal(ID).status == "reverted"
    with refused("ERR_INVALID_LIFECYCLE"):
        ledger.apply_proposal(ID)


def test_at_one_instant_an_assertion_beats_a_retraction(open_ledger):
    clock = Clock()
    ledger = open_ledger(clock=clock)
    with ledger.transaction() as tx:
        tx.upsert_turn(ID, ID, "user", "both at once")
        tx.retract_turn(ID)
    assert ledger.get_turn(ID).content == "both at once"
    clock.advance(10)
    ledger.retract_turn(ID)
    assert ledger.get_turn(ID) is None
    assert ledger.get_turn(ID, as_of=clock.now_us - 1).content == "both at once"


def test_only_digests_are_stored_unless_payloads_are_kept(open_ledger):
    ledger = open_ledger()
    assert ask(ledger).arguments_json is None
    assert ledger.get_tool_call(ID, "c1")[0].args_sha256
    ledger.set(payloads="keep")
    assert ask(ledger, model="m").arguments == {"a": 1}


def test_paths_are_relative_to_the_project(open_ledger):
    ledger = open_ledger(project_root="/project", settings={"payloads": "keep"})
    assert ask(ledger, arguments={"file_path": "/project/a/b.py"}).arguments == {
        "file_path": "a/b.py"
    }


def test_callbacks_transactions_and_raw_queries(ledger):
    feed = ledger.subscribe(["turn"])
    with pytest.raises(KeyError), ledger.transaction() as tx:
        tx.upsert_turn(OTHER, OTHER, "user", "undone")
        raise KeyError
    ledger.upsert_turn(ID, ID, "user", "hello")
    change = feed.take(timeout_s=10)
    assert (change.kind, change.op, change.new["content"]) == ("turn.asserted", "assert", "hello")
    found = ledger.query("SELECT kind, format_timestamp(at) AS at FROM conversation_turns")
    assert [row["kind"] for row in found] == ["user"]


def test_migrations_run_again_without_harm(path):
    for _ in range(2):
        with affidavit.open(path) as ledger:
            ledger.upsert_turn(ID, ID, "user", "hello")
    from affidavit.stores.sqlite.queries import load_migrations

    with closing(sqlite3.connect(path)) as connection:
        for script in load_migrations():
            connection.executescript(script)
    with affidavit.open(path) as ledger:
        assert ledger.get_turn(ID).content == "hello"
        assert ledger.verify().valid
