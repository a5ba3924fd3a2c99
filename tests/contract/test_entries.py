"""The log as a person reads it: in order, with its texts, and readable where it is broken."""

import affidavit
from contract.calls import record, refused, start
from contract.oracle import tamper


def kinds(entries):
    return [entry.kind for entry in entries]


def test_the_log_is_listed_in_order_with_who_said_it(ledger):
    session = start(ledger, intent="choose")
    record(ledger, session_id=session, content="because")
    entries = ledger.list_entries()
    assert [entry.index for entry in entries] == [0, 1, 2]
    assert kinds(entries) == ["ledger.created", "session.started", "thought.recorded"]
    assert [entry.texts for entry in entries] == [{}, {"intent": "choose"}, {"content": "because"}]
    assert {(entry.auth, entry.client, entry.via) for entry in entries} == {
        ("none", None, "python")
    }
    assert entries[2].body["session_id"] == session
    assert entries[1].at <= entries[2].at


def test_pages_go_on_behind_an_index(ledger):
    for number in range(5):
        record(ledger, content=f"c{number}")
    assert [entry.index for entry in ledger.list_entries(after=1, limit=2)] == [2, 3]
    assert ledger.list_entries(after=5) == []


def test_a_session_is_listed_from_its_start_to_its_end_and_nothing_else(ledger):
    first, other = start(ledger), start(ledger)
    record(ledger, session_id=first)
    record(ledger, session_id=other)
    record(ledger, type="reflection", session_id=first)
    ledger.seal_session(first)
    ledger.end_session(first)
    start(ledger, continues=first)
    assert kinds(ledger.list_entries(session_id=first)) == [
        "session.started", "thought.recorded", "thought.recorded", "session.sealed",
        "session.ended",
    ]  # fmt: skip
    assert kinds(ledger.list_entries(session_id=first, after=4, limit=1)) == ["thought.recorded"]
    assert ledger.list_entries(session_id="nobody's") == []


def test_a_task_is_listed_with_its_records_and_sessions(ledger):
    task = ledger.create_task(title="choose", description="an index").id
    start(ledger, task_id=task)
    record(ledger, task_id=task, content="B")
    record(ledger, task_id="another")
    ledger.update_task(task, status="DONE")
    ledger.delete_task(task, reason="a mistake")
    entries = ledger.list_entries(task_id=task)
    assert kinds(entries) == [
        "task.created", "session.started", "thought.recorded", "task.updated", "task.deleted",
    ]  # fmt: skip
    assert entries[0].texts == {"title": "choose", "description": "an index"}
    assert entries[4].texts == {"reason": "a mistake"}


def test_a_session_and_a_task_together_are_refused(ledger):
    with refused("INVALID_PARAMS"):
        ledger.list_entries(session_id="s", task_id="t")


def test_long_texts_are_cut_where_asked_and_say_so(ledger):
    record(ledger, content="\u20ac" * 10)
    [whole] = ledger.newest_thoughts()
    assert (whole.texts, whole.cut) == ({"content": "\u20ac" * 10}, ())
    [exact] = ledger.newest_thoughts(text_bytes_max=30)
    assert (exact.texts, exact.cut) == (whole.texts, ())
    [cut] = ledger.newest_thoughts(text_bytes_max=8)
    assert (cut.texts, cut.cut) == ({"content": "\u20ac" * 2}, ("content",))


def test_the_newest_records_come_first(ledger):
    for number in range(4):
        record(ledger, content=f"c{number}")
        ledger.create_task(title="between")
    assert [entry.texts["content"] for entry in ledger.newest_thoughts(limit=2)] == ["c3", "c2"]


def test_a_damaged_entry_is_listed_with_what_is_wrong(ledger, path, tmp_path):
    session = start(ledger)
    record(ledger, session_id=session, content="before")
    ledger.end_session(session)
    whole = ledger.list_entries(session_id=session)
    copy = tmp_path / "copy.db"
    ledger.close()
    copy.write_bytes((tmp_path / "trail.db").read_bytes())
    tamper(copy, "UPDATE log SET entry = x'7b7d' WHERE log_index = 2")
    with affidavit.open(copy, readonly=True) as broken:
        first, damaged, last = broken.list_entries(session_id=session)
    assert (first, last) == (whole[0], whole[2])
    assert (damaged.index, damaged.kind, damaged.texts) == (2, None, {})
    assert "entry 2 of the log is damaged" in damaged.damage


def test_bytes_that_are_no_text_are_shown_as_such(ledger, tmp_path):
    record(ledger)
    copy = tmp_path / "copy.db"
    ledger.close()
    copy.write_bytes((tmp_path / "trail.db").read_bytes())
    tamper(copy, "UPDATE thought_records SET content = CAST(x'ff41' AS TEXT)")
    with affidavit.open(copy, readonly=True) as broken:
        assert broken.newest_thoughts()[0].texts == {"content": "\ufffdA"}
