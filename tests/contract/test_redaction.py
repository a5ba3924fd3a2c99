"""Secrets never reach the file: every text a call takes is cleaned before it is stored."""

from pathlib import Path

import pytest

from affidavit.core.redact import RULES

SECRET = "hunter2secret99"
TEXT = f"We log in with password={SECRET} for now."
KEPT = "We log in with password=[redacted:named] for now."


def thought(**more):
    return {"type": "plan", "task_id": "t", "agent_id": "a", "content": TEXT, **more}


def record_everywhere(ledger):
    session = ledger.start_session(intent=TEXT).session_id
    ledger.record_thought(**thought(session_id=session))
    ledger.record_thoughts([thought(), thought(content="nothing here")])
    task = ledger.create_task(title=TEXT, description=TEXT)
    ledger.update_task(task.id, title=TEXT, description=TEXT)
    ledger.transition_task(task.id, to="CANCELLED", reason=TEXT)
    ledger.delete_task(task.id, reason=TEXT)
    ledger.checkpoint()
    ledger.add_key(reason=TEXT)
    ledger.recover("new-origin", reason=TEXT)


def notes_of(ledger):
    return {entry.kind: entry.body.get("redaction") for entry in ledger.list_entries()}


def test_no_secret_is_in_the_file(ledger, path):
    record_everywhere(ledger)
    for name in (path, f"{path}-wal"):
        assert SECRET.encode() not in Path(name).read_bytes()


def test_every_entry_says_what_was_removed_from_it(ledger):
    record_everywhere(ledger)
    one, two = ({"count": count, "rules": RULES} for count in (1, 2))
    assert notes_of(ledger) | {"key.added": one} == {
        "ledger.created": None,
        "session.started": one,
        "thought.recorded": None,
        "task.created": two,
        "task.updated": one,
        "task.deleted": one,
        "key.added": one,
        "origin.changed": one,
    }
    assert [
        e.body.get("redaction") for e in ledger.list_entries() if e.kind == "thought.recorded"
    ] == [
        one,
        one,
        None,
    ]


def test_answers_are_what_is_stored(ledger):
    assert ledger.record_thought(**thought()).content == KEPT
    assert ledger.start_session(intent=TEXT).intent == KEPT
    task = ledger.create_task(title=TEXT, description=TEXT)
    assert (task.title, task.description) == (KEPT, KEPT)
    assert [one.content for one in ledger.list_thoughts()] == [KEPT]


def test_chains_are_over_the_text_as_stored(ledger):
    session = ledger.start_session(intent="i").session_id
    ledger.record_thought(**thought(session_id=session))
    ledger.record_thought(**thought(session_id=session, content="So be it."))
    assert ledger.verify_chain(session_id=session).valid
    ledger.seal_session(session)
    assert ledger.verify().valid
    assert ledger.rebuild(check=True).valid


def test_a_retry_with_its_key_gives_the_first_answer(ledger):
    first = ledger.record_thought(**thought(), idempotency_key="k")
    assert ledger.record_thought(**thought(), idempotency_key="k") == first


def test_switching_it_off_is_on_the_record(ledger):
    ledger.set(redaction="off", by="owner")
    assert ledger.record_thought(**thought()).content == TEXT
    assert ledger.create_task(title=TEXT).title == TEXT
    ledger.set(redaction="on", by="owner")
    assert ledger.record_thought(**thought()).content == KEPT
    changes = [entry.body for entry in ledger.list_entries() if entry.kind == "setting.changed"]
    assert [(one["name"], one["new"]) for one in changes] == [
        ("redaction", "off"),
        ("redaction", "on"),
    ]


@pytest.mark.parametrize("text", ["plain", "the password is a secret", "token: 7"])
def test_other_texts_are_stored_as_they_are(ledger, text):
    assert ledger.record_thought(**thought(content=text)).content == text
