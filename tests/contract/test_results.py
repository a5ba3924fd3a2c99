"""What calls answer with: frozen values, the promised fields first and in order, JSON-able."""

import inspect
import json
import subprocess
import sys

import pytest

import affidavit
from affidavit.ledger.ledger import Ledger
from contract.calls import draft, record, reflect, start

THOUGHT = (
    "id", "type", "task_id", "agent_id", "content", "timestamp", "prev_hash", "hash", "session_id",
)  # fmt: skip
TASK = (
    "id", "project_id", "title", "description", "status", "priority", "assignee", "created_at",
    "updated_at", "deleted_at",
)  # fmt: skip


@pytest.fixture
def answers(ledger):
    """One answer of every kind."""
    session = ledger.start_session(intent="x")
    thought = reflect(ledger, session_id=session.session_id)
    task = ledger.create_task(title="x")
    return {
        "session": session,
        "thought": thought,
        "task": task,
        "seal": ledger.seal_session(session.session_id),
        "root": ledger.merkle_root(session.session_id),
        "end": ledger.end_session(session.session_id),
        "tasks": ledger.list_tasks(),
        "next": ledger.next_actions(),
        "chain": ledger.verify_chain(),
        "report": ledger.verify(),
        "rebuild": ledger.rebuild(check=True),
    }


ANSWERS = (
    "session", "thought", "task", "seal", "root", "end", "tasks", "next", "chain", "report",
    "rebuild",
)  # fmt: skip


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_is_frozen(answers, kind):
    name = next(iter(answers[kind].to_dict()))
    before = getattr(answers[kind], name)
    with pytest.raises(AttributeError):
        setattr(answers[kind], name, "changed")
    with pytest.raises((AttributeError, TypeError)):
        answers[kind].something_new = 1
    assert getattr(answers[kind], name) == before


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_turns_into_json(answers, kind):
    shown = answers[kind].to_dict()
    assert json.loads(json.dumps(shown)).keys() == shown.keys()
    for name, value in shown.items():
        if isinstance(value, str | int | None):
            assert getattr(answers[kind], name) == value


def test_an_answer_as_a_dict_holds_nothing_but_what_json_has(answers):
    shown = {kind: answer.to_dict() for kind, answer in answers.items()}
    assert json.loads(json.dumps(shown)) == shown


@pytest.mark.parametrize("kind", ["session", "thought", "task", "seal", "end"])
def test_answers_are_equal_by_value(answers, kind):
    assert answers[kind] in {answers[kind]: 1}


def test_a_record_has_the_promised_fields_then_ours(answers):
    assert tuple(answers["thought"].to_dict())[:15] == (
        *THOUGHT,
        "index",
        "at",
        "content_hash",
        "chain_hash",
        "parent_chain_hash",
        "session_seq",
    )


def test_a_task_has_the_promised_fields_then_ours(answers):
    shown = tuple(answers["task"].to_dict())
    assert shown[:10] == TASK
    assert shown[10] == "attempt"


def test_a_page_has_tasks_and_their_count(answers):
    assert tuple(answers["tasks"].to_dict()) == ("tasks", "total_count")
    assert answers["tasks"].to_dict()["tasks"][0] == answers["task"].to_dict()


def test_a_chain_report_has_the_promised_fields(answers):
    shown = answers["chain"].to_dict()
    assert tuple(shown) == (
        "valid", "record_count", "broken_count", "first_broken_index", "first_broken_at", "reason",
        "by_task", "by_session",
    )  # fmt: skip


def test_a_report_has_the_promised_fields(answers):
    assert {"valid", "findings", "checked", "unchecked"} <= answers["report"].to_dict().keys()


def test_an_answer_is_the_same_whether_written_listed_or_read(ledger):
    batch = ledger.record_thoughts([draft(session_id=start(ledger)), draft()])
    for one in batch:
        assert ledger.get_thought(one.id) == one
        assert one in ledger.list_thoughts()
        assert one in list(ledger.iter_thoughts())


PUBLIC = {
    "record_thought": "",
    "record_thoughts": "records",
    "get_thought": "id",
    "list_thoughts": "",
    "iter_thoughts": "",
    "start_session": "",
    "seal_session": "session_id",
    "merkle_root": "session_id",
    "end_session": "session_id",
    "get_session": "session_id",
    "list_sessions": "",
    "verify_chain": "",
    "verify": "",
    "rebuild": "",
    "create_task": "",
    "get_task": "id",
    "update_task": "id",
    "transition_task": "id",
    "delete_task": "id",
    "list_tasks": "",
    "next_actions": "",
    "set": "",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_calls_are_keyword_only_beyond_the_identifying_argument(name):
    parameters = list(inspect.signature(getattr(Ledger, name)).parameters.values())[1:]
    by_position = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert by_position == PUBLIC[name].split()


def test_importing_loads_neither_the_store_nor_the_schemas():
    code = "import sys, affidavit; print({'msgspec', 'sqlite3'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_public_names_are_sorted_and_all_there():
    assert affidavit.__all__ == sorted(affidavit.__all__)
    assert all(hasattr(affidavit, name) for name in affidavit.__all__)


def test_a_record_is_not_changed_by_what_comes_later(ledger):
    written = record(ledger)
    shown = written.to_dict()
    shown["content"] = "changed"
    for _ in range(3):
        record(ledger)
    assert ledger.get_thought(written.id) == written
