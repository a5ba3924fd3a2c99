"""Erasing: the text, its salt and its digests leave every file; the fact stays, and says so."""

import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

import affidavit
from affidavit.errors import InputError
from affidavit.ledger.ports import WordQuery
from affidavit.stores.sqlite.connection import open_connection
from affidavit.stores.sqlite.reading import SqliteReader
from affidavit.stores.sqlite.search import SearchIndex

WORDS = "the unmistakable pineapple"


def thought(**more):
    return {"type": "plan", "task_id": "t", "agent_id": "a", "content": WORDS, **more}


def fill(ledger, session_id="s"):
    ledger.start_session(intent=f"About {WORDS}", session_id=session_id)
    first = ledger.record_thought(
        **thought(session_id=session_id), idempotency_key=f"{session_id}-k"
    )
    ledger.record_thoughts([thought(content=f"padding {n} " * 40) for n in range(300)])
    ledger.record_thought(**thought(session_id=session_id, content="Nothing of it here."))
    ledger.record_thought(**thought(session_id=session_id, type="reflection", content=WORDS * 2000))
    task = ledger.create_task(title=f"Buy {WORDS}", description=WORDS)
    ledger.update_task(task.id, title="Something else")
    return first


def bytes_of(path):
    return b"".join(
        Path(name).read_bytes()
        for name in (path, f"{path}-wal", f"{path}-shm")
        if Path(name).exists()
    )


def test_erased_words_are_in_no_file_any_more(ledger, path):
    fill(ledger)
    assert WORDS.encode() in bytes_of(path)
    done = ledger.erase(matching=WORDS, by="owner", reason="A person asked for it.")
    assert (done.field_count, done.scrub) == (5, "done")
    assert WORDS.encode() not in bytes_of(path)
    assert ledger.verify().valid


def test_a_record_is_erased_and_its_chains_still_hold(ledger):
    first = fill(ledger)
    ledger.erase(record_id=first.id, by="owner")
    found = ledger.get_thought(first.id)
    assert (found.content, found.erased) == (None, True)
    assert (found.hash, found.chain_hash) == (first.hash, first.chain_hash)
    assert ledger.verify_chain(session_id="s").valid
    assert ledger.verify_chain(task_id="t").valid
    assert ledger.verify_chain().valid
    assert ledger.seal_session("s").record_count == 3
    ledger.record_thought(**thought())
    assert ledger.verify().valid


def test_a_session_is_erased_whole_and_stays_sealed(ledger):
    fill(ledger)
    root = ledger.seal_session("s").root
    plan = ledger.plan_erasure(session_id="s")
    assert plan.kinds == {"session.started": 1, "thought.recorded": 3}
    assert ledger.erase(session_id="s", by="owner").field_count == plan.field_count == 4
    assert ledger.get_session("s").intent is None
    assert [one.content for one in ledger.list_thoughts(session_id="s")] == [None] * 3
    assert ledger.merkle_root("s").root == root


def test_verify_is_clean_and_says_what_is_erased(ledger):
    fill(ledger)
    ledger.erase(matching=WORDS, by="owner")
    report = ledger.verify()
    assert report.valid
    assert report.checked["erased"] == 5
    assert "5 erased texts, each named by its erasure" in report.unchecked
    assert ledger.rebuild(check=True).valid


def test_the_log_says_who_erased_what_and_why(ledger):
    first = fill(ledger)
    ledger.erase(record_id=first.id, by="owner", reason="A person asked.")
    entry = ledger.list_entries()[-1]
    assert entry.kind == "payload.erased"
    assert entry.body["fields"] == [[first.index, "content"]]
    assert (entry.body["field_count"], entry.body["by"]) == (1, "owner")
    assert entry.texts == {"reason": "A person asked."}


def test_a_rebuild_makes_the_rows_of_erased_texts_again(ledger, path):
    first = fill(ledger)
    ledger.erase(matching=WORDS, by="owner")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER thought_records_refuses_delete")
        connection.execute("DELETE FROM thought_records WHERE log_index = ?", [first.index])
    connection.close()
    assert not ledger.verify().valid
    ledger.rebuild()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TRIGGER thought_records_refuses_delete BEFORE DELETE ON thought_records\n"
            "BEGIN SELECT RAISE(ABORT, 'thought records are append-only'); END"
        )
    connection.close()
    assert ledger.get_thought(first.id).erased


def test_a_retry_does_not_bring_erased_words_back(ledger):
    fill(ledger)
    ledger.erase(matching=WORDS, by="owner")
    with pytest.raises(affidavit.ConflictError, match="idempotency_key"):
        ledger.record_thought(**thought(session_id="s"), idempotency_key="s-k")


def test_what_is_erased_already_is_not_erased_again(ledger):
    fill(ledger)
    ledger.erase(matching=WORDS, by="owner")
    size = len(ledger)
    assert ledger.erase(matching=WORDS, by="owner").field_count == 0
    assert ledger.plan_erasure(session_id="s").field_count == 1
    assert len(ledger) == size


def test_tool_calls_and_turns_go_with_their_digests(ledger, path):
    ledger.set(payloads="keep")
    turn, call = "7f000000-0000-4000-8000-000000000001", "7f000000-0000-4000-8000-000000000002"
    ledger.upsert_turn(turn, turn, "user", WORDS, attributes={"said": WORDS})
    ledger.upsert_turn(turn, turn, "user", f"{WORDS} again")
    ledger.request_tool_call(call, "c1", None, "v", "read", arguments={"q": WORDS})
    ledger.finish_tool_call(call, "c1", "completed", outcome={"found": WORDS})
    assert ledger.erase(turn_id=turn, by="owner").field_count == 3
    assert ledger.get_turn(turn).content is None
    assert ledger.erase(matching=WORDS, by="owner").field_count == 4
    assert WORDS.encode() not in bytes_of(path)
    assert ledger.verify().checked["erased"] == 7
    assert ledger.rebuild(check=True).valid


def test_nothing_is_erased_inside_a_transaction(ledger):
    first = fill(ledger)
    with pytest.raises(affidavit.ConflictError, match="transaction"), ledger.transaction() as tx:
        tx.erase(record_id=first.id, by="owner")
    assert ledger.get_thought(first.id).content == WORDS


def test_many_fields_are_several_entries_of_one_moment(ledger):
    ledger.record_thoughts([thought() for _ in range(1_100)])
    done = ledger.erase(matching=WORDS, by="owner")
    assert done.field_count == 1_100
    entries = ledger.list_entries()[-3:]
    assert [entry.index for entry in entries] == list(done.indices)
    assert [entry.body["field_count"] for entry in entries] == [500, 500, 100]
    assert len({entry.at for entry in entries}) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE thought_records SET content = '', erased_at = 'now' WHERE log_index = 2",
        "UPDATE thought_records SET content = 'other' WHERE log_index = 2",
        "UPDATE sessions SET intent = NULL, intent_salt = NULL",
        "UPDATE task_versions SET title = NULL, title_salt = NULL",
        "UPDATE erasures SET fields = '[]'",
        "DELETE FROM erasures",
    ],
)
def test_nothing_is_erased_without_its_entry(ledger, path, sql):
    fill(ledger)
    ledger.erase(record_id=ledger.list_thoughts(session_id="s")[1].id, by="owner")
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(sql)
    connection.close()


def test_names_cannot_be_erased_and_the_plan_says_so(ledger):
    ledger.record_thought(**thought(task_id="pineapple", content="about a pineapple"))
    plan = ledger.plan_erasure(matching="pineapple")
    assert (plan.field_count, plan.named_in) == (1, 1)


def test_a_restored_backup_forgets_again(open_ledger, path, tmp_path):
    ledger = open_ledger()
    first = fill(ledger)
    ledger.close()
    shutil.copy(path, tmp_path / "backup")
    ledger = open_ledger()
    ledger.erase(matching=WORDS, by="owner")
    ledger.close()
    shutil.copy(tmp_path / "backup", path)
    ledger = open_ledger()
    assert ledger.get_thought(first.id).erased
    assert WORDS.encode() not in bytes_of(path)
    assert ledger.list_entries()[-1].kind == "payload.erased"
    size = len(ledger)
    ledger.close()
    assert len(open_ledger()) == size


def test_another_history_of_the_same_name_is_left_alone(open_ledger, path):
    ledger = open_ledger(id_fn=iter([f"id{n}" for n in range(9)]).__next__)
    ledger.record_thought(**thought(), id_fn=lambda: "one")
    ledger.erase(record_id="one", by="owner")
    ledger.close()
    Path(path).unlink()
    ledger = open_ledger(id_fn=iter([f"id{n}" for n in range(9)]).__next__)
    ledger.record_thought(**thought(content="not the same"), id_fn=lambda: "one")
    ledger.close()
    assert open_ledger().get_thought("one").content == "not the same"


def test_while_somebody_reads_the_cleaning_waits_for_a_later_opener(open_ledger, path, monkeypatch):
    monkeypatch.setattr("affidavit.stores.sqlite.store._SCRUB_WAIT_MS", 10)
    ledger = open_ledger()
    fill(ledger)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM log LIMIT 1").fetchone()
    assert ledger.erase(matching=WORDS, by="owner").scrub == "pending"
    reader.close()
    ledger.close()
    open_ledger()
    assert WORDS.encode() not in bytes_of(path)


def test_a_process_that_died_before_the_cleaning_is_finished_by_the_next(
    open_ledger, path, monkeypatch
):
    ledger = open_ledger()
    fill(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(
            "affidavit.ledger.erasing._scrub",
            lambda context, notes: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(KeyboardInterrupt):
            ledger.erase(matching=WORDS, by="owner")
    ledger.close()
    open_ledger()
    assert WORDS.encode() not in bytes_of(path)


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({}, "INVALID_PARAMS"),
        ({"record_id": "x", "matching": "y"}, "INVALID_PARAMS"),
        ({"record_id": "x"}, "ERR_NOT_FOUND"),
        ({"session_id": "x"}, "ERR_SESSION_NOT_FOUND"),
    ],
)
def test_a_wish_names_one_thing_that_is_there(ledger, wish, code):
    for call in (ledger.plan_erasure, lambda **named: ledger.erase(by="owner", **named)):
        with pytest.raises(InputError) as caught:
            call(**wish)
        assert caught.value.code == code


def test_an_erased_row_without_an_entry_is_told_of(path):
    with affidavit.open(path) as ledger:
        found = fill(ledger)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER thought_records_erased_with_entry")
        connection.execute(
            "UPDATE thought_records SET content = '', erased_at = 'x' WHERE log_index = ?",
            [found.index],
        )
    connection.close()
    with affidavit.open(path, readonly=True) as ledger:
        codes = {(one.code, one.index) for one in ledger.verify().findings}
    assert ("erasure_unexplained", found.index) in codes
    Path(path).unlink()


def test_a_reader_is_told_that_erased_texts_are_back(open_ledger, path, tmp_path):
    ledger = open_ledger()
    fill(ledger)
    ledger.close()
    shutil.copy(path, tmp_path / "backup")
    ledger = open_ledger()
    ledger.erase(matching=WORDS, by="owner")
    ledger.close()
    with affidavit.open(path, readonly=True) as reader:
        assert not reader.has_unfinished_erasures()
    shutil.copy(tmp_path / "backup", path)
    with (
        pytest.warns(RuntimeWarning, match="erased texts are in this file"),
        affidavit.open(path, readonly=True) as reader,
    ):
        assert reader.has_unfinished_erasures()
    assert not open_ledger().has_unfinished_erasures()


def test_something_else_may_be_said_where_something_was_erased(ledger):
    name = "0b0e8c1a-0000-4000-8000-000000000001"
    ledger.upsert_turn(name, name, "user", WORDS)
    ledger.erase(turn_id=name, by="owner")
    size = len(ledger)
    assert ledger.upsert_turn(name, name, "user", WORDS).content is None  # as a retry says it
    assert len(ledger) == size
    assert ledger.upsert_turn(name, name, "user", "something else").content == "something else"
    assert ledger.get_turn(name).content == "something else"


@pytest.mark.parametrize("again", ["erase", "retain"])
def test_what_is_pending_stays_pending_until_it_is_done(open_ledger, path, monkeypatch, again):
    monkeypatch.setattr("affidavit.stores.sqlite.store._SCRUB_WAIT_MS", 10)
    ledger = open_ledger()
    fill(ledger)

    def once_more():
        return ledger.retain() if again == "retain" else ledger.erase(matching=WORDS, by="owner")

    with ledger.transaction(write=False) as reader:
        assert reader.list_thoughts()
        assert ledger.erase(matching=WORDS, by="owner").scrub == "pending"
        assert once_more().scrub == "pending"
        assert ledger.has_unfinished_erasures()
    assert once_more().scrub == "done"
    assert not ledger.has_unfinished_erasures()
    ledger.close()
    assert WORDS.encode() not in bytes_of(path)


def test_who_searches_meanwhile_does_not_put_erased_words_back(ledger, path):
    """Another process fills the index from a snapshot of before, after the erasure is committed."""
    ledger.record_thought(**thought(content="padding"))
    ledger.search("padding")
    ledger.record_thought(**thought())
    words = WordQuery(("pineapple",), None, None, None, 0, 2**62, 10)
    with closing(open_connection(path, readonly=True)) as connection:
        connection.execute("BEGIN")
        reader, index, size = SqliteReader(connection), SearchIndex(path), len(ledger)
        assert reader.size() == size

        def search_late():
            while len(ledger) == size:
                time.sleep(0.001)
            time.sleep(0.5)
            assert len(index.find(reader, words)) == 1
            index.close()
            connection.execute("ROLLBACK")

        late = threading.Thread(target=search_late)
        late.start()
        done = ledger.erase(matching=WORDS, by="owner")
        late.join()
    assert done.scrub == "done"
    files = Path(path).parent.glob("trail.db*")
    assert [file.name for file in files if b"pineapple" in file.read_bytes()] == []


def test_a_held_index_makes_the_cleaning_wait_and_does_not_refuse(open_ledger, path, monkeypatch):
    """The erasure itself is committed by then: to say that nothing was recorded would be wrong."""
    monkeypatch.setattr("affidavit.stores.sqlite.search._WAIT_S", 0.05)
    ledger = open_ledger()
    ledger.record_thought(**thought())
    ledger.search("pineapple")
    with closing(sqlite3.connect(f"{path}.search", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ledger.erase(matching=WORDS, by="owner").scrub == "pending"
        other.execute("ROLLBACK")
    ledger.close()
    open_ledger()
    assert b"pineapple" not in Path(f"{path}.search").read_bytes()
