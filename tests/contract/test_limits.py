"""Limits: what is just within one is taken, what is just beyond is refused by name and number."""

import pytest

import affidavit
from contract.calls import record, reflect, refused, start
from contract.oracle import log, snapshot

MIB = 1024 * 1024
# 512 bytes that JSON writes as 1,024; the last four bytes tell names apart.
WORST = '"\\' * 254


def test_content_of_sixteen_mebibytes_is_taken(ledger):
    text = "x" * (16 * MIB)
    assert ledger.get_thought(record(ledger, content=text).id).content == text


@pytest.mark.parametrize("text", ["x" * (16 * MIB + 1), "\u20ac" * (16 * MIB // 3 + 1)])
def test_content_beyond_sixteen_mebibytes_is_refused(ledger, path, text):
    before = snapshot(path)
    with refused("ERR_TOO_LARGE", "content") as caught:
        record(ledger, content=text)
    with refused("ERR_TOO_LARGE", "description"):
        ledger.create_task(title="x", description=text)
    assert "16,777,216" in str(caught.value)
    assert snapshot(path) == before


@pytest.mark.parametrize("name", ["n" * 512, "\u00e9" * 256, "\U0001f512" * 128])
def test_names_of_five_hundred_and_twelve_bytes_are_taken(ledger, name):
    session = ledger.start_session(intent="x", caller=name, task_id=name, session_id=name)
    written = record(ledger, task_id=name, agent_id=name, session_id=name, id_fn=lambda: name)
    assert (session.session_id, written.id, written.task_id) == (name, name, name)
    assert ledger.get_thought(name) == written
    assert ledger.list_thoughts(task_id=name, session_id=name) == [written]
    assert ledger.verify_chain(session_id=name).valid


@pytest.mark.parametrize("name", ["n" * 513, "\u00e9" * 257, "\U0001f512" * 129])
def test_names_beyond_five_hundred_and_twelve_bytes_are_refused_by_number(ledger, path, name):
    before = snapshot(path)
    for field in ("task_id", "agent_id", "session_id"):
        with refused("ERR_TOO_LARGE", field) as caught:
            record(ledger, **{field: name})
        assert "512" in str(caught.value)
        assert "bytes" in str(caught.value)
    assert snapshot(path) == before


@pytest.mark.parametrize("text", ["n" * 4_096, "\u00e9" * 2_048])
def test_notes_of_four_thousand_and_ninety_six_bytes_are_taken(ledger, text):
    task = ledger.create_task(title=text)
    assert task.title == text
    assert ledger.start_session(intent=text).intent == text
    assert ledger.transition_task(task.id, to="CANCELLED", reason=text).status == "CANCELLED"
    assert ledger.delete_task(task.id, reason=text).title == text


@pytest.mark.parametrize("text", ["n" * 4_097, "\u00e9" * 2_049])
def test_notes_beyond_four_thousand_and_ninety_six_bytes_are_refused_by_number(ledger, text):
    task = ledger.create_task(title="x")
    for field, call in (
        ("title", lambda: ledger.create_task(title=text)),
        ("title", lambda: ledger.update_task(task.id, title=text)),
        ("intent", lambda: ledger.start_session(intent=text)),
        ("reason", lambda: ledger.transition_task(task.id, to="CANCELLED", reason=text)),
        ("reason", lambda: ledger.delete_task(task.id, reason=text)),
    ):
        with refused("ERR_TOO_LARGE", field) as caught:
            call()
        assert "4,096" in str(caught.value)
        assert "bytes" in str(caught.value)
    assert ledger.get_task(task.id) == task


def test_the_largest_valid_calls_fit_into_their_entries(open_ledger, path):
    """Every name as long as it may be, and of what JSON writes longest."""
    ledger = open_ledger()
    ledger.close()
    count = iter(range(10_000))

    def name():
        return f"{WORST}{next(count):04d}"

    ledger = open_ledger(id_fn=name)
    earlier = start(ledger, session_id=name())
    ledger.end_session(earlier)
    session = ledger.start_session(
        intent='"' * 4_096,
        caller=name(),
        task_id=name(),
        session_id=name(),
        continues=earlier,
        project=name(),
        model=name(),
        proof_grade=True,
        idempotency_key=name(),
    )
    reflect(
        ledger, task_id=session.task_id, agent_id=name(), session_id=session.session_id,
        idempotency_key=name(),
    )  # fmt: skip
    assert ledger.seal_session(session.session_id).closing_reflection
    given = {"project_id": name(), "priority": name(), "assignee": name()}
    task = ledger.create_task(title='"' * 4_096, description="\x01" * 5_000, **given)
    ledger.update_task(task.id, title="\\" * 4_096, description='"', **given)
    ledger.set(writeback="reflection", by=name())
    assert all(len(entry.raw) <= 65_535 for entry in log(path))
    assert [one.session_id for one in ledger.list_sessions(after=session.session_id)] == [earlier]


@pytest.mark.parametrize("ledger_id", ["n" * 512, WORST + "0000", "\u00e9" * 256])
def test_a_ledger_whose_id_is_as_long_as_a_name_may_be_opens_again(path, ledger_id):
    with affidavit.open(path, id_fn=lambda: ledger_id) as ledger:
        assert ledger.ledger_id == ledger_id
    with affidavit.open(path) as ledger:
        assert ledger.ledger_id == ledger_id
        assert ledger.verify().valid
