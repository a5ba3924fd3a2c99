"""Thought records: written, read one by one, and listed."""

import re
import sqlite3
from contextlib import closing

import pytest

import affidavit
from affidavit.errors import ConflictError, InputError
from contract.calls import draft, record, refused, start
from contract.oracle import ZEROS, select, task_hash

UUID_4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
PINNED = "6a2f9597f563d5515cfa69891a51806d0f93bfbe222997d3ba37c365ceee3f1a"


def test_the_first_record_of_a_task_links_to_zeros(ledger):
    assert record(ledger).prev_hash == ZEROS


def test_the_second_record_of_a_task_links_to_the_first(ledger):
    first, second = record(ledger), record(ledger)
    assert second.prev_hash == first.hash


def test_tasks_have_chains_of_their_own(ledger):
    first, other = record(ledger, task_id="t1"), record(ledger, task_id="t2")
    assert first.prev_hash == other.prev_hash == ZEROS


def test_an_id_is_minted_as_a_uuid_version_4_unless_injected(ledger):
    assert UUID_4.fullmatch(record(ledger).id)
    assert record(ledger, id_fn=lambda: "mine").id == "mine"


def test_a_timestamp_is_minted_as_utc_milliseconds_unless_injected(ledger):
    minted = record(ledger).timestamp
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", minted)
    given = "2026-04-17T00:00:00Z"
    assert record(ledger, now_fn=lambda: given).timestamp == given


@pytest.mark.parametrize("kind", ["plan", "analysis", "decision", "reflection"])
def test_every_type_survives_the_round_trip(ledger, kind):
    written = record(ledger, type=kind)
    assert written.type == ledger.get_thought(written.id).type == kind


def test_the_agent_is_stored_and_returned(ledger):
    written = record(ledger, agent_id="agent-7")
    assert written.agent_id == ledger.get_thought(written.id).agent_id == "agent-7"


def test_empty_content_is_refused(ledger):
    with refused("INVALID_PARAMS", "content") as caught:
        record(ledger, content="")
    assert "thought content must be non-empty" in str(caught.value)
    assert ledger.list_thoughts() == []


def test_the_pinned_record_has_the_pinned_hash(ledger):
    written = ledger.record_thought(
        type="plan",
        task_id="t1",
        agent_id="a1",
        content="hello",
        id_fn=lambda: "r1",
        now_fn=lambda: "2026-04-17T00:00:00Z",
    )
    assert written.hash == PINNED


def test_the_hash_follows_from_the_six_fields(ledger):
    record(ledger)
    written = record(ledger, content='two\nlines, "quoted", \u00e9 and \U0001f512')
    assert written.hash == task_hash(written)


def test_a_missing_type_is_refused(ledger):
    with refused("INVALID_PARAMS", "type"):
        ledger.record_thought(task_id="t1", agent_id="a1", content="x")


def test_an_empty_task_id_is_refused(ledger):
    with refused("INVALID_PARAMS", "task_id"):
        record(ledger, task_id="")


def test_an_empty_agent_id_is_refused(ledger):
    with refused("INVALID_PARAMS", "agent_id"):
        record(ledger, agent_id="")


def test_a_type_that_is_not_one_of_the_four_is_refused(ledger):
    with refused("INVALID_PARAMS", "type"):
        record(ledger, type="observation")
    assert len(ledger) == 1


def test_an_absent_id_gives_none(ledger):
    record(ledger)
    assert ledger.get_thought("no-such-id") is None


def test_a_record_is_read_back_whole(ledger):
    written = record(ledger, session_id=start(ledger))
    assert ledger.get_thought(written.id) == written


def test_a_record_is_found_whatever_its_task(ledger):
    first, other = record(ledger, task_id="t1"), record(ledger, task_id="t2")
    assert ledger.get_thought(first.id) == first
    assert ledger.get_thought(other.id) == other


def test_an_empty_ledger_lists_nothing(ledger):
    assert ledger.list_thoughts() == []


def test_a_list_without_filters_has_every_record(ledger):
    written = [record(ledger, task_id=task) for task in ("t1", "t2", "t1")]
    assert ledger.list_thoughts() == written


def test_a_list_can_be_of_one_task(ledger):
    written = [record(ledger, task_id=task) for task in ("t1", "t2", "t1")]
    assert ledger.list_thoughts(task_id="t1") == [written[0], written[2]]


def test_a_list_is_in_the_order_of_writing(ledger):
    times = iter(["2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])
    written = [record(ledger, content=str(n), now_fn=lambda: next(times)) for n in range(3)]
    assert ledger.list_thoughts(task_id="t1") == written


def test_a_limit_cuts_a_list(ledger):
    written = [record(ledger) for _ in range(5)]
    assert ledger.list_thoughts(limit=2) == written[:2]


def test_a_limit_counts_records_of_the_wanted_task_only(ledger):
    written = [record(ledger, task_id=task) for task in ("t2", "t1") * 3]
    assert ledger.list_thoughts(task_id="t1", limit=2) == [written[1], written[3]]


def test_a_listed_chain_is_linked_record_by_record(ledger):
    for n in range(3):
        record(ledger, content=str(n))
        record(ledger, task_id="other", content=str(n))
    chain = ledger.list_thoughts(task_id="t1")
    assert [one.prev_hash for one in chain] == [ZEROS, chain[0].hash, chain[1].hash]


def test_the_same_record_twice_is_refused(ledger):
    record(ledger, id_fn=lambda: "r1", now_fn=lambda: "2026-04-17T00:00:00Z")
    with pytest.raises(ConflictError) as caught:
        record(ledger, id_fn=lambda: "r1", now_fn=lambda: "2026-04-17T00:00:00Z")
    assert caught.value.code == "ERR_DUPLICATE_RECORD"
    assert len(ledger.list_thoughts()) == 1


def test_the_same_input_with_the_same_ids_and_times_gives_the_same_hashes(tmp_path):
    hashes = []
    for place in ("one.db", "two.db"):
        ids, times = iter("ab"), iter(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])
        with affidavit.open(tmp_path / place) as ledger:
            for _ in range(2):
                record(ledger, id_fn=lambda ids=ids: next(ids), now_fn=lambda t=times: next(t))
            hashes.append([one.hash for one in ledger.list_thoughts()])
            assert ledger.verify().valid
    assert hashes[0] == hashes[1]


def test_the_table_has_the_promised_columns_none_of_them_null(ledger, path):
    columns = select(
        path, "SELECT name, type, \"notnull\" FROM pragma_table_info('thought_records')"
    )
    promised = (
        "id", "type", "task_id", "agent_id", "content", "timestamp", "prev_hash", "hash",
        "created_at",
    )  # fmt: skip
    assert set(columns) >= {(name, "TEXT", 1) for name in promised}
    assert ("session_id", "TEXT", 0) in columns


def test_the_table_has_both_indexes_and_unique_ids_and_hashes(ledger, path):
    indexes = {}
    for name, unique in select(
        path, "SELECT name, \"unique\" FROM pragma_index_list('thought_records')"
    ):
        columns = select(path, "SELECT name FROM pragma_index_info(?) ORDER BY seqno", name)
        indexes[name] = (unique, [column for (column,) in columns])
    assert indexes["idx_trail_task"] == (0, ["task_id", "created_at"])
    assert indexes["idx_trail_prev"] == (0, ["prev_hash"])
    assert (1, ["id"]) in indexes.values()
    assert (1, ["hash"]) in indexes.values()


def test_created_at_is_the_timestamp(ledger, path):
    written = record(ledger, now_fn=lambda: "2020-02-29T23:59:59.999Z")
    assert select(path, "SELECT created_at FROM thought_records") == [(written.timestamp,)]


@pytest.mark.parametrize(
    "sql", ["UPDATE thought_records SET content = 'y'", "DELETE FROM thought_records"]
)
def test_the_table_refuses_changes_and_deletions(ledger, path, sql):
    record(ledger)
    ledger.close()
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(sql)


def test_a_refused_record_leaves_nothing_behind(ledger, path):
    with pytest.raises(InputError):
        ledger.record_thought(**draft(type="bad"))
    assert select(path, "SELECT count(*) FROM thought_records") == [(0,)]
    assert len(ledger) == 1
