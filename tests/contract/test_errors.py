"""Refusals: a stable code of the right class, words, a hint, and no payload in any of them."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

import affidavit
from affidavit.errors import CODES, AffidavitError
from contract.calls import draft, record, reflect, start
from contract.oracle import tamper

SECRET = "correct horse battery staple"


def _sealed(ledger):
    session_id = start(ledger)
    reflect(ledger, session_id=session_id, content=SECRET)
    ledger.seal_session(session_id)
    return session_id


def _ended(ledger):
    session_id = start(ledger, intent=SECRET)
    ledger.end_session(session_id)
    return session_id


def _readonly(ledger):
    with affidavit.open(ledger.location, readonly=True) as reader:
        record(reader, content=SECRET)


def _proof_grade(ledger):
    session_id = start(ledger, proof_grade=True)
    record(ledger, session_id=session_id, content=SECRET)
    ledger.seal_session(session_id)


def _repeated_key(ledger):
    record(ledger, content=SECRET, idempotency_key="k1")
    record(ledger, content=f"{SECRET}!", idempotency_key="k1")


def _repeated_id(ledger):
    for _ in range(2):
        record(ledger, content=SECRET, id_fn=lambda: "r1")


def _not_a_ledger(ledger):
    place = Path(ledger.location).with_suffix(".txt")
    place.write_text(SECRET * 100, encoding="utf-8")
    affidavit.open(place)


def _beside_a_transaction(ledger):
    with ledger.transaction():
        record(ledger, content=SECRET)


def _after_an_abort(ledger):
    with ledger.transaction() as tx:
        tx.abort()
        record(tx, content=SECRET)


SITUATIONS = {
    "INVALID_PARAMS": lambda ledger: record(ledger, type="observation", content=SECRET),
    "ERR_NOT_FOUND": lambda ledger: ledger.update_task("no such task", title=SECRET),
    "ERR_SESSION_NOT_FOUND": lambda ledger: record(ledger, session_id="typo", content=SECRET),
    "ERR_TOO_LARGE": lambda ledger: record(ledger, content=SECRET * 700_000),
    "ERR_READONLY": _readonly,
    "ERR_DUPLICATE_RECORD": _repeated_id,
    "ERR_SESSION_EXISTS": lambda ledger: [start(ledger, session_id="s1") for _ in range(2)],
    "ERR_SESSION_OPEN": lambda ledger: start(ledger, continues=start(ledger, intent=SECRET)),
    "ERR_SESSION_ENDED": lambda ledger: record(ledger, session_id=_ended(ledger), content=SECRET),
    "ERR_SESSION_SEALED": lambda ledger: record(ledger, session_id=_sealed(ledger), content=SECRET),
    "ERR_CLOSING_REFLECTION_REQUIRED": _proof_grade,
    "ERR_NOT_FINALIZED": lambda ledger: ledger.merkle_root(start(ledger, intent=SECRET)),
    "ERR_NO_RECORDS": lambda ledger: ledger.seal_session(start(ledger, intent=SECRET)),
    "ERR_INVALID_TRANSITION": lambda ledger: ledger.transition_task(
        ledger.create_task(title=SECRET).id, to="DONE"
    ),
    "ERR_INVALID_LIFECYCLE": lambda ledger: ledger.finish_tool_call(
        str(uuid4()), "c1", "failed", error_msg=SECRET
    ),
    "ERR_TRANSACTION_OPEN": _beside_a_transaction,
    "ERR_TRANSACTION_ENDED": _after_an_abort,
    "ERR_WRITEBACK_REQUIRED": lambda ledger: ledger.update_task(
        ledger.create_task(title=SECRET).id, status="DONE"
    ),
    "ERR_IDEMPOTENCY_MISMATCH": _repeated_key,
    "ERR_STORE_UNAVAILABLE": lambda ledger: affidavit.open(
        Path(ledger.location).with_name("absent.db"), create=False
    ),
    "ERR_NOT_A_LEDGER": _not_a_ledger,
}


@pytest.mark.parametrize("code", SITUATIONS)
def test_a_refusal_has_its_code_its_class_words_and_a_hint(ledger, code):
    with pytest.raises(AffidavitError) as caught:
        SITUATIONS[code](ledger)
    error = caught.value
    assert error.code == code
    assert type(error) is CODES[code].error
    assert error.message
    assert error.hint
    shown = error.to_dict()
    assert tuple(shown) == ("code", "message", "hint", "details")
    assert SECRET not in json.dumps(shown)


def test_a_refused_seal_of_a_broken_session_has_words_and_evidence(path):
    with affidavit.open(path) as ledger:
        session_id = start(ledger)
        written = record(ledger, session_id=session_id)
    tamper(path, "UPDATE thought_records SET content = ?", SECRET)
    with affidavit.open(path) as ledger, pytest.raises(affidavit.IntegrityViolation) as caught:
        ledger.seal_session(session_id)
    error = caught.value
    assert (error.code, error.details["index"]) == ("ERR_CHAIN_BROKEN", written.index)
    assert error.hint
    assert SECRET not in json.dumps(error.to_dict())


REPEATED = {
    "record": lambda ledger: [record(ledger, id_fn=lambda: "r1") for _ in range(2)],
    "task": lambda ledger: [ledger.create_task(title="x") for _ in range(2)],
    "session": lambda ledger: [start(ledger) for _ in range(2)],
}


@pytest.mark.parametrize("what", REPEATED)
def test_a_repeated_minted_id_is_refused_with_a_hint(open_ledger, what):
    ledger = open_ledger(id_fn=lambda: "always the same")
    with pytest.raises(affidavit.ConflictError) as caught:
        REPEATED[what](ledger)
    assert caught.value.code in ("ERR_DUPLICATE_RECORD", "ERR_SESSION_EXISTS")
    assert caught.value.hint


BAD_INPUT = {
    "an empty name": lambda ledger: record(ledger, task_id=""),
    "a number for a text": lambda ledger: record(ledger, content=5),
    "an empty content": lambda ledger: record(ledger, content=""),
    "a lone surrogate": lambda ledger: record(ledger, content="a\ud800b"),
    "a control character": lambda ledger: record(ledger, agent_id="a\nb"),
    "a name too long": lambda ledger: record(ledger, task_id="x" * 513),
    "a page too long": lambda ledger: ledger.list_tasks(limit=501),
    "a setting of no such value": lambda ledger: ledger.set(writeback="none"),
    "no list of records": lambda ledger: ledger.record_thoughts(5),
    "an empty id": lambda ledger: ledger.get_thought(""),
    "two chains at once": lambda ledger: ledger.verify_chain(task_id="t", session_id="s"),
    "an unknown place": lambda ledger: ledger.list_thoughts(after="no such record"),
}


def test_bad_input_gets_a_hint(ledger):
    without = {}
    for what, call in BAD_INPUT.items():
        with pytest.raises(affidavit.InputError) as caught:
            call(ledger)
        if not caught.value.hint:
            without[what] = str(caught.value)
    assert without == {}


def test_an_input_error_is_a_value_error(ledger):
    with pytest.raises(ValueError, match=r"^type: ") as caught:
        record(ledger, type="observation")
    assert caught.value.field == "type"


def test_a_wrong_word_is_answered_with_the_right_ones(ledger):
    with pytest.raises(affidavit.InputError) as caught:
        record(ledger, type="observation")
    assert caught.value.hint == "One of plan, analysis, decision, reflection."
    with pytest.raises(affidavit.InputError) as caught:
        ledger.record_thoughts([draft(task="t1")])
    assert caught.value.hint == "It takes type, task_id, agent_id, content, session_id."


def test_conflicts_say_that_a_retry_does_not_help(ledger):
    with pytest.raises(affidavit.ConflictError) as caught:
        ledger.merkle_root(start(ledger))
    assert caught.value.retryable is False


def test_a_refusal_leaves_the_handle_usable(ledger):
    for situation in ("ERR_DUPLICATE_RECORD", "ERR_SESSION_NOT_FOUND", "ERR_TOO_LARGE"):
        with pytest.raises(AffidavitError):
            SITUATIONS[situation](ledger)
        assert record(ledger).content == "a thought"


def test_an_error_inside_a_callers_function_is_the_callers_and_writes_nothing(ledger):
    def broken():
        raise LookupError("mine")

    for given in ({"id_fn": broken}, {"now_fn": broken}):
        with pytest.raises(LookupError, match="mine"):
            record(ledger, **given)
    assert len(ledger) == 1


def test_a_message_stays_short_however_long_the_mistake(ledger):
    with pytest.raises(affidavit.InputError) as caught:
        ledger.record_thought(type="x" * 5_000_000, task_id="t", agent_id="a", content="c")
    assert len(str(caught.value)) < 300
