"""Every argument of every call, wrong in every way: refused by name, and nothing is written.

`ARGUMENTS` says for each call what each of its arguments is, and `FAULTS` in which ways such an
argument can be wrong. A call or an argument that does not stand here fails the first test.
"""

import inspect
import os
from datetime import date, datetime
from typing import Any, NamedTuple

import pytest

import affidavit
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.settings import SETTINGS
from contract.calls import draft, reflect, refused, start
from contract.oracle import snapshot

MISSING = object()
KNOWN, APPROVED, APPLIED = (f"00000000-0000-4000-8000-00000000000{n}" for n in range(3))
MIB = 1024 * 1024


class Words(str):
    """A str of another class, as enums of strings are."""

    __slots__ = ()


class Fault(NamedTuple):
    """One way to be wrong; the code it is refused with, and what may be named but the argument."""

    label: str
    value: Any
    code: str = "INVALID_PARAMS"
    fields: tuple[str, ...] = ()


def fault(label, value, code="INVALID_PARAMS", *fields):
    return Fault(label, value, code, fields)


def field_fault(field, label, value):
    return Fault(label, value, "INVALID_PARAMS", (field,))


TYPES = [fault("number", 5), fault("bytes", b"x"), fault("list", ["x"]), fault("bool", True)]
LETTERS = [
    fault("empty", ""),
    fault("nul", "a\x00b"),
    fault("surrogate", "a\ud800b"),
    fault("nul in a str subclass", Words("a\x00b")),
    fault("surrogate in a str subclass", Words("a\ud800b")),
]
NAME = [
    *TYPES,
    *LETTERS,
    fault("513 bytes", "x" * 513, "ERR_TOO_LARGE"),
    fault("514 bytes in 257 characters", "\u00e9" * 257, "ERR_TOO_LARGE"),
    fault("513 bytes in a str subclass", Words("x" * 513), "ERR_TOO_LARGE"),
    fault("newline", "a\nb"),
    fault("delete", "a\x7fb"),
    fault("next line", "a\x85b"),
]
NOTE = [
    *TYPES,
    *LETTERS,
    fault("4,097 bytes", "x" * 4_097, "ERR_TOO_LARGE"),
    fault("4,098 bytes in 2,049 characters", "\u00e9" * 2_049, "ERR_TOO_LARGE"),
]
TEXT = [
    *TYPES,
    *LETTERS,
    fault("17 MiB", "x" * (17 * MIB), "ERR_TOO_LARGE"),
    fault("17 MiB in fewer characters", "\u20ac" * (17 * MIB // 3), "ERR_TOO_LARGE"),
]
ENUM = [*TYPES, *LETTERS, fault("unknown", "observation"), fault("513 bytes", "x" * 513)]
FLAG = [fault("null", None), fault("number", 1), fault("word", "yes"), fault("list", [])]
NUMBERS = [
    fault("bool", True),
    fault("fraction", 2.5),
    fault("whole fraction", 2.0),
    fault("digits", "3"),
    fault("list", [3]),
    fault("minus one", -1),
    fault("beyond 64 bits", 2**63),
    fault("beyond everything", 10**30),
]
LIMIT = [*NUMBERS, fault("zero", 0)]
FUNCTION = [fault("number", 5), fault("word", "now")]
MINTED = (
    ("a number", 5, "INVALID_PARAMS"),
    ("nothing", None, "INVALID_PARAMS"),
    ("an empty id", "", "INVALID_PARAMS"),
    ("513 bytes", "x" * 513, "ERR_TOO_LARGE"),
    ("a nul", "a\x00b", "INVALID_PARAMS"),
    ("a newline", "a\nb", "INVALID_PARAMS"),
    ("a surrogate", "\ud800", "INVALID_PARAMS"),
    ("a nul in a str subclass", Words("a\x00b"), "INVALID_PARAMS"),
)
ID_FUNCTION = [
    *FUNCTION,
    *(
        fault(f"gives {what}", lambda value=value: value, code, "id", "ledger_id")
        for what, value, code in MINTED
    ),
]
NOW_FUNCTION = [
    *FUNCTION,
    *(
        field_fault("timestamp", f"gives {value!a}", lambda value=value: value)
        for value in (
            5, None, "", "yesterday", "2026-04-17", "2026-04-17 00:00:00Z", "2026-04-17T00:00:00",
            "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-04-17T24:00:00Z",
            "2026-04-17T00:00:00Z\n", "\u0662026-04-17T00:00:00Z", "2026-04-17T00:00:00.Z",
        )
    ),
]  # fmt: skip
CHOICE = [
    fault("null", None),
    fault("empty", ""),
    fault("number", 5),
    fault("list", ["any"]),
    fault("unknown", "sideways"),
    fault("surrogate", "\ud800"),
    fault("bool", True),
]
HOURS = [*LIMIT, fault("null", None), fault("too many", 24 * 366)]
DAYS = [*NUMBERS, fault("null", None), fault("too many", 36_501)]


def required(faults):
    return [fault("missing", MISSING), fault("null", None), *faults]


def nested(argument, faults):
    """The faults of one argument of the second record of a batch."""
    field = f"records[1].{argument}"
    good = draft()
    for one in faults:
        bad = {**good, argument: one.value}
        if one.value is MISSING:
            del bad[argument]
        yield fault(f"{argument} {one.label}", [good, bad], one.code, field)


THOUGHT = {
    "type": required(ENUM),
    "task_id": required(NAME),
    "agent_id": required(NAME),
    "content": required(TEXT),
    "session_id": NAME,
}
RECORDS = [
    fault("missing", MISSING),
    fault("null", None),
    fault("number", 5),
    fault("word", "records"),
    fault("bytes", b"records"),
    fault("one record", draft()),
    field_fault("records[1]", "no record in it", [draft(), 5]),
    field_fault("records[0]", "keys that are no words", [{1: 2}]),
    field_fault("records[0].kind", "unknown argument", [draft(kind="plan")]),
    fault("10,001 of them", [draft()] * 10_001, "ERR_TOO_LARGE"),
    *(one for argument, faults in THOUGHT.items() for one in nested(argument, faults)),
]
TASK = {"project_id": NAME, "description": TEXT, "priority": NAME, "assignee": NAME}

UUID = [
    *TYPES,
    *LETTERS,
    fault("no uuid", "request-1"),
    fault("without dashes", "0" * 32),
    fault("a dash too many", "00000000-0000-4000-8000-000000000000-"),
    fault("a newline behind it", "00000000-0000-4000-8000-000000000000\n"),
]
JSON = [
    fault("bytes", b"x"),
    fault("a set", {1}),
    fault("an object", object()),
    fault("not a number", float("nan")),
    fault("an integer too large", 2**53),
    fault("a key that is no string", {1: 2}),
    fault("surrogate", "a\ud800b"),
    fault("17 MiB", "x" * (17 * MIB), "ERR_TOO_LARGE"),
]
MILLIS = [one for one in NUMBERS if one.label != "minus one"]
COUNTS = [
    fault("a number", 5),
    fault("a list", [1]),
    Fault("a word", {"tokens": "x"}, "INVALID_PARAMS", ("usage[...]",)),
    fault("a name in capitals", {"Tokens": 1}),
    field_fault("usage.tokens", "less than nothing", {"tokens": -1}),
]
AS_OF = {
    "as_of": [
        fault("bool", True),
        fault("fraction", 2.5),
        fault("bytes", b"2026-04-17T00:00:00Z"),
        fault("a day", "2026-04-17"),
        fault("no zone", "2026-04-17T00:00:00"),
        fault("no time of any day", "2026-04-17T25:00:00Z"),
        fault("a word", "yesterday"),
        fault("empty", ""),
        fault("a datetime without a zone", datetime(2026, 4, 17)),  # noqa: DTZ001
        fault("a date", date(2026, 4, 17)),
        fault("beyond every clock", 2**60),
    ],
    "as_of_index": NUMBERS,
}
PAGE = {"limit": [*LIMIT, fault("null", None), fault("10,001", 10_001)], "after": NUMBERS}
CALL = {"request_id": required(UUID), "call_id": required(NAME)}
BY_REQUEST = {"request_id": required(UUID)}
OBSERVED: dict[str, dict[str, list[Fault]]] = {
    "upsert_turn": {
        "id": required(UUID),
        "message_id": required(UUID),
        "kind": required(ENUM),
        "content": [one for one in required(TEXT) if one.label != "empty"],
        "parent_id": UUID,
        "thread_id": NAME,
        "occurred_at_ms": MILLIS,
        "session_id": NAME,
        "actor": NAME,
        "model": NAME,
        "usage": COUNTS,
        "attributes": JSON,
    },
    "retract_turn": {"id": required(UUID), "reason": NOTE},
    "get_turn": {"id": required(UUID), **AS_OF},
    "usage": {"by": [fault("null", None), *ENUM], "since_ms": MILLIS, "until_ms": MILLIS},
    "list_turns": {
        "since_ms": MILLIS,
        "thread_id": NAME,
        "message_id": UUID,
        "session_id": NAME,
        **PAGE,
        "newest_first": FLAG,
        **AS_OF,
    },
    "request_tool_call": {
        **CALL,
        "parent_id": UUID,
        "vendor": required(NAME),
        "tool_name": required(NAME),
        "arguments": required(JSON),
        "args_sha256": [fault("number", 5), fault("short", "ab"), fault("another's", "0" * 64)],
        "started_at_ms": MILLIS,
        "session_id": NAME,
        "actor": NAME,
        "model": NAME,
        "attributes": JSON,
    },
    "finish_tool_call": {
        **CALL,
        "status": required(ENUM),
        "outcome": JSON,
        "error_kind": NAME,
        "error_msg": TEXT,
        "ended_at_ms": MILLIS,
        "latency_ms": NUMBERS,
        "usage": COUNTS,
    },
    "get_tool_call": {**CALL, **AS_OF},
    "list_tool_calls": {
        "request_id": UUID,
        "parent_id": UUID,
        "session_id": NAME,
        "status": ENUM,
        "tool_name": NAME,
        "vendor": NAME,
        "since_ms": MILLIS,
        "until_ms": MILLIS,
        **PAGE,
        **AS_OF,
    },
    "tool_call_history": CALL,
    "list_orphans": {"older_than_ms": [*NUMBERS, fault("null", None)], "limit": PAGE["limit"]},
    "mark_orphans": {"older_than_ms": [*NUMBERS, fault("null", None)], "limit": PAGE["limit"]},
    "decide_call": {
        **CALL,
        "decision": required(ENUM),
        "by": required(NAME),
        "reason": NOTE,
    },
    "list_call_decisions": CALL,
    "create_proposal": {
        **BY_REQUEST,
        "diffs": required(JSON),
        "confidence": [fault("word", "0.5"), fault("bool", True), fault("more than one", 1.5)],
        "session_id": NAME,
    },
    "decide_proposal": {
        **BY_REQUEST,
        "decision": required(ENUM),
        "by": required(NAME),
        "reason": NOTE,
        "decided_at_ms": MILLIS,
    },
    "apply_proposal": {**BY_REQUEST, "commit_hash": NAME, "applied_at_ms": MILLIS},
    "revert_proposal": {**BY_REQUEST, "commit_hash": NAME, "reverted_at_ms": MILLIS},
    "get_proposal": {**BY_REQUEST, **AS_OF},
    "list_proposals": {"status": ENUM, "since_ms": MILLIS, **PAGE, **AS_OF},
}

EXTERNAL = {"source": required(NAME), "external_id": required(NAME)}
CHANNEL = {"channel": required(NAME), "source": required(NAME), "version": NAME, "session_id": NAME}
CAPTURED: dict[str, dict[str, list[Fault]]] = {
    "enter_session": {
        **EXTERNAL,
        "intent": required(NOTE),
        "caller": NAME,
        "task_id": NAME,
        "project": NAME,
        "model": NAME,
    },
    "link_session": {"session_id": required(NAME), **EXTERNAL},
    "find_linked": EXTERNAL,
    "list_links": {"session_id": required(NAME)},
    "start_capture": {**CHANNEL, "settings_sha256": [*NAME, fault("no digest", "ab")]},
    "stop_capture": {**CHANNEL, "count": NUMBERS},
    "list_captures": {"session_id": NAME},
    "note_dropped": {
        "channel": required(NAME),
        "count": required(NUMBERS),
        "from_ms": [*required(MILLIS), fault("after the end", 2_000)],
        "to_ms": required(MILLIS),
    },
    "list_dropped": {},
    "has_turn": {"id": required(UUID)},
    "has_unfinished_erasures": {},
    "tell_story": {
        "session_id": required(NAME),
        "after": NUMBERS,
        "limit": LIMIT,
        "text_bytes_max": [*NUMBERS, fault("null", None)],
    },
    "find_tail": {"session_id": required(NAME), "count": [*LIMIT, fault("null", None)]},
    "trace_file": {
        "path": required(NOTE),
        "line": TEXT,
        "limit": [*LIMIT, fault("null", None)],
    },
}

EXPORT = {
    "session_id": NAME,
    "task_id": NAME,
    "record_id": NAME,
    "range": NAME,
    "withhold": [
        fault("null", None),
        fault("number", 5),
        fault("no field", ["nonsense"]),
        fault("a word", "nonsense"),
        fault("numbers", [5], "INVALID_PARAMS", "withhold[0]"),
    ],
}
ARGUMENTS: dict[str, dict[str, list[Fault]]] = {
    **OBSERVED,
    **CAPTURED,
    "close": {},
    "check_writable": {},
    "describe": {},
    "next_actions": {},
    "record_thought": {
        **THOUGHT,
        "idempotency_key": NAME,
        "id_fn": ID_FUNCTION,
        "now_fn": NOW_FUNCTION,
    },
    "record_thoughts": {"records": RECORDS, "idempotency_key": NAME},
    "get_thought": {"id": required(NAME)},
    "list_thoughts": {
        "task_id": NAME,
        "session_id": NAME,
        "type": ENUM,
        "after": NAME,
        "limit": LIMIT,
    },
    "iter_thoughts": {"task_id": NAME, "session_id": NAME, "type": ENUM, "after": NAME},
    "start_session": {
        "intent": required(NOTE),
        "caller": NAME,
        "task_id": NAME,
        "session_id": NAME,
        "proof_grade": FLAG,
        "continues": NAME,
        "project": NAME,
        "model": NAME,
        "idempotency_key": NAME,
    },
    "settled": AS_OF,
    "transaction": {"write": FLAG},
    "subscribe": {
        "kinds": [fault("word", "turn"), fault("number", 5), fault("empty name", [""])],
        "since": NUMBERS,
        "capacity": [*LIMIT, fault("null", None)],
    },
    "on_change": {"kind": required(NAME), "callback": required(FUNCTION)},
    "query": {
        "sql": required([*TYPES, fault("empty", ""), fault("no sql", "selec")]),
        "params": [fault("number", 5), fault("word", "x"), fault("null", None)],
    },
    "get_session": {"session_id": required(NAME), **AS_OF},
    "list_sessions": {
        "task_id": NAME,
        "state": ENUM,
        "continues": NAME,
        "after": NAME,
        "limit": LIMIT,
        **AS_OF,
    },
    "seal_session": {"session_id": required(NAME), "idempotency_key": NAME},
    "merkle_root": {"session_id": required(NAME)},
    "end_session": {
        "session_id": required(NAME),
        "reason": [fault("null", None), *ENUM],
        "idempotency_key": NAME,
    },
    "create_task": {
        "title": required(NOTE),
        "status": [fault("null", None), *ENUM],
        **TASK,
        "idempotency_key": NAME,
    },
    "get_task": {"id": required(NAME), **AS_OF},
    "update_task": {
        "id": required(NAME),
        "title": [fault("null", None), *NOTE],
        "status": [fault("null", None), *ENUM],
        **TASK,
        "idempotency_key": NAME,
    },
    "transition_task": {
        "id": required(NAME),
        "to": required(ENUM),
        "reason": NOTE,
        "idempotency_key": NAME,
    },
    "delete_task": {"id": required(NAME), "reason": NOTE, "idempotency_key": NAME},
    "list_tasks": {
        "status": ENUM,
        "project_id": NAME,
        "limit": [*LIMIT, fault("null", None), fault("501", 501)],
        "offset": [*NUMBERS, fault("null", None)],
        "include_deleted": FLAG,
        **AS_OF,
    },
    "list_entries": {
        "session_id": NAME,
        "task_id": NAME,
        "after": NUMBERS,
        "limit": LIMIT,
        "text_bytes_max": [*LIMIT, fault("null", None)],
    },
    "newest_thoughts": {
        "limit": [*LIMIT, fault("null", None)],
        "text_bytes_max": [*LIMIT, fault("null", None)],
    },
    "verify_chain": {"task_id": NAME, "session_id": NAME, "all": FLAG},
    "verify": {
        "pinned": [
            fault("null", None),
            fault("number", 5),
            fault("no note", "hello"),
            fault("numbers", [5]),
            fault("bytes", [b"x\n1\n"]),
            fault("surrogate", ["\ud800\n\n"]),
        ],
        "new_only": FLAG,
        "progress": FUNCTION,
        "cores": LIMIT,
    },
    "export": EXPORT,
    "iter_export": {**EXPORT, "progress": FUNCTION},
    "iter_jsonl": {},
    "prove": {"record_id": required(NAME)},
    "prove_growth": {"old_size": required(LIMIT), "new_size": LIMIT},
    "publish": {"place": required(NOTE)},
    "set_retention": {
        "kind": required(NAME),
        "days": required([*NUMBERS, fault("too many", 36_501), fault("null", None)]),
        "by": NAME,
    },
    "retain": {},
    "overdue": {},
    "size": {},
    "compare_sessions": {"session_id": required(NAME), "other_id": required(NAME)},
    "search": {
        "query": required(NOTE),
        "kind": NAME,
        "session_id": NAME,
        "task_id": NAME,
        "since_us": NUMBERS,
        "until_us": NUMBERS,
        "limit": [*LIMIT, fault("null", None), fault("501", 501)],
    },
    "plan_erasure": {"session_id": NAME, "record_id": NAME, "turn_id": NAME, "matching": NOTE},
    "erase": {
        "by": required(NAME),
        "session_id": NAME,
        "record_id": NAME,
        "turn_id": NAME,
        "matching": NOTE,
        "reason": NOTE,
    },
    "rebuild": {"check": FLAG},
    "checkpoint": {},
    "last_checkpoint": {},
    "list_keys": {},
    "add_key": {"by": NAME, "reason": NOTE},
    "retire_key": {"vkey": required(NAME), "by": NAME, "reason": NOTE},
    "recover": {"how": required(ENUM), "reason": NOTE},
    "set": {
        "by": NAME,
        "idempotency_key": NAME,
        "payload_paths": [one for one in CHOICE if one.label != "empty"],
        "payloads": CHOICE,
        "audit_reads": FLAG,
        "publish": CHOICE,
        "redaction": CHOICE,
        "retain_proposal_days": DAYS,
        "retain_tool_call_days": DAYS,
        "retain_turn_days": DAYS,
        "session_idle_hours": HOURS,
        "transitions": CHOICE,
        "writeback": CHOICE,
    },
}
OPEN = {
    "path": [
        fault("missing", MISSING),
        fault("null", None),
        fault("number", 5),
        fault("bytes", b"x"),
        fault("empty", ""),
        fault("nul", "a\x00b"),
        fault("surrogate", "a\ud800b"),
        fault("no path", "ftp://example.org/trail"),
    ],
    "readonly": FLAG,
    "create": FLAG,
    "settings": [
        fault("number", 5),
        fault("pairs", [("writeback", "any")]),
        fault("word", "writeback"),
        field_fault("settings.write_back", "unknown", {"write_back": "any"}),
        fault("no name", {1: "any"}, "INVALID_PARAMS", "settings", "settings.1"),
        *(
            field_fault(f"settings.{name}", f"{name} {one.label}", {name: one.value})
            for name, faults in (("writeback", CHOICE), ("session_idle_hours", HOURS))
            for one in faults
        ),
    ],
    "clock": [
        *FUNCTION,
        *(
            fault(f"gives {value!r}", lambda value=value: value)
            for value in (-1, 2**60, True, 1.5, "1", None)
        ),
    ],
    "id_fn": ID_FUNCTION,
    "project_root": [fault("number", 5), fault("bytes", b"x")],
}


def observed_calls():
    call = {"request_id": KNOWN, "call_id": "c1"}
    return {
        "upsert_turn": {"id": KNOWN, "message_id": KNOWN, "kind": "user", "content": ""},
        "retract_turn": {"id": KNOWN},
        "get_turn": {"id": KNOWN},
        "request_tool_call": {**call, "vendor": "v", "tool_name": "t", "arguments": {}},
        "finish_tool_call": {**call, "status": "completed"},
        **dict.fromkeys(("get_tool_call", "tool_call_history", "list_call_decisions"), call),
        "decide_call": {**call, "decision": "approved", "by": "x"},
        "create_proposal": {"request_id": KNOWN, "diffs": []},
        "decide_proposal": {"request_id": KNOWN, "decision": "denied", "by": "x"},
        "apply_proposal": {"request_id": APPROVED},
        "revert_proposal": {"request_id": APPLIED},
        "get_proposal": {"request_id": KNOWN},
    }


def captured_calls():
    external, channel = {"source": "x", "external_id": "x"}, {"channel": "hook", "source": "x"}
    return {
        "enter_session": {**external, "intent": "x"},
        "link_session": {"session_id": "s1", **external},
        "find_linked": external,
        "list_links": {"session_id": "s1"},
        "start_capture": channel,
        "stop_capture": channel,
        "note_dropped": {"channel": "hook", "count": 1, "from_ms": 0, "to_ms": 1_000},
        "has_turn": {"id": KNOWN},
        "tell_story": {"session_id": "s1"},
        "find_tail": {"session_id": "s1"},
        "trace_file": {"path": "x"},
    }


def good_call(ledger, name, task):
    """Arguments with which the call is answered."""
    calls = {
        "record_thought": draft(session_id="s1"),
        "record_thoughts": {"records": [draft(), draft()]},
        "get_thought": {"id": "x"},
        "start_session": {"intent": "x"},
        "get_session": {"session_id": "x"},
        "seal_session": {"session_id": "s1"},
        "merkle_root": {"session_id": "s2"},
        "end_session": {"session_id": "s1"},
        "create_task": {"title": "x"},
        "get_task": {"id": "x"},
        "update_task": {"id": task, "priority": "high"},
        "transition_task": {"id": task, "to": "CANCELLED", "reason": "x"},
        "delete_task": {"id": task},
        "set": {"writeback": "reflection"},
        "recover": {"how": "new-origin"},
        "export": {"session_id": "s1"},
        "iter_export": {"session_id": "s1"},
        "prove_growth": {"old_size": 1},
        **observed_calls(),
        **captured_calls(),
        "query": {"sql": "SELECT 1"},
        "on_change": {"kind": "turn", "callback": print},
        "search": {"query": "x"},
        "compare_sessions": {"session_id": "s1", "other_id": "s2"},
        "set_retention": {"kind": "turn", "days": 1},
        "plan_erasure": {"matching": "x"},
        "erase": {"by": "x", "matching": "never said"},
        "publish": {"place": f"{os.environ['AFFIDAVIT_HOME']}/published"},
    }
    if name == "prove":
        return {"record_id": next(iter(ledger.iter_thoughts())).id}
    if name == "retire_key":
        ledger.add_key()
        return {"vkey": ledger.list_keys()[0].vkey}
    return calls.get(name, {})


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home for keys that is not the user's own."""
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))


@pytest.fixture
def task(ledger):
    """A task id; beside it a session with a record, s1, and a sealed one, s2."""
    for name in ("s1", "s2"):
        start(ledger, session_id=name)
        reflect(ledger, session_id=name)
    ledger.seal_session("s2")
    observe(ledger)
    return ledger.create_task(title="x").id


def observe(ledger):
    """A turn, an open tool call, a pending, an approved and an applied proposal."""
    ledger.upsert_turn(KNOWN, KNOWN, "user", "hello")
    ledger.request_tool_call(KNOWN, "c1", vendor="v", tool_name="t", arguments={})
    for name in (KNOWN, APPROVED, APPLIED):
        ledger.create_proposal(name, [])
    for name in (APPROVED, APPLIED):
        ledger.decide_proposal(name, "approved", "x")
    ledger.apply_proposal(APPLIED)


def public_calls():
    members = inspect.getmembers(Ledger, callable)
    return {name: call for name, call in members if not name.startswith("_")}


def named(call):
    """The arguments of a call; `**changes` stands for the settings."""
    for parameter in inspect.signature(call).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            yield from SETTINGS
        elif parameter.name != "self":
            yield parameter.name


def test_every_argument_of_every_call_stands_in_the_table():
    calls = {name: set(named(call)) for name, call in public_calls().items()}
    assert calls == {name: set(arguments) for name, arguments in ARGUMENTS.items()}
    assert set(named(affidavit.open)) == set(OPEN)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_right_arguments_are_answered(ledger, task, name):
    getattr(ledger, name)(**good_call(ledger, name, task))


def cases(table):
    return [(name, argument) for name, arguments in table.items() for argument in arguments]


def find_problem(call, argument, wrong):
    """What is wrong with how a call was refused; None where all is well."""
    try:
        answer = call()
    except affidavit.AffidavitError as error:
        fields = wrong.fields or (argument, f"settings.{argument}")
        if type(error) is not affidavit.InputError or error.code != wrong.code:
            return f"{type(error).__name__} {error.code}: {error}"
        if error.field not in fields or not str(error).startswith(f"{error.field}: "):
            return f"field {error.field}: {error}"
        return None
    except Exception as error:
        return f"{type(error).__name__} escapes: {error!a:.100}"
    if isinstance(answer, Ledger):
        answer.close()
    return "answered"


def arguments_with(wrong, argument, good):
    given = {**good, argument: wrong.value}
    if wrong.value is MISSING:
        del given[argument]
    return given


@pytest.mark.parametrize(("name", "argument"), cases(ARGUMENTS))
def test_a_wrong_argument_is_refused_and_nothing_is_written(ledger, path, task, name, argument):
    good, problems = good_call(ledger, name, task), {}
    before = snapshot(path)
    for wrong in ARGUMENTS[name][argument]:
        given = arguments_with(wrong, argument, good)
        problem = find_problem(lambda given=given: getattr(ledger, name)(**given), argument, wrong)
        if problem is None and snapshot(path) != before:
            problem = "refused, but something was written"
        if problem is not None:
            problems[wrong.label] = problem
            before = snapshot(path)
    assert problems == {}


class Unshowable:
    """What breaks a message that would quote it."""

    def __repr__(self):
        raise RuntimeError("cannot be shown")


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("name", ARGUMENTS)
def test_nothing_foreign_escapes_where_a_value_cannot_be_shown(ledger, task, name):
    """Too deep, too many digits for a decimal text, or of a class that raises."""
    good, problems = good_call(ledger, name, task), []
    for argument in ARGUMENTS[name]:
        for value in (nested(10_000), 10**5_000, [10**5_000], Unshowable()):
            try:
                answer = getattr(ledger, name)(**{**good, argument: value})
            except affidavit.AffidavitError:
                continue
            except Exception as error:
                problems.append(f"{argument}: {type(error).__name__} escapes")
            else:
                getattr(answer, "close", lambda: None)()
    assert problems == []


def test_a_change_of_no_setting_is_refused(ledger):
    with refused("INVALID_PARAMS", "settings"):
        ledger.set()


def test_an_unknown_setting_is_refused(ledger):
    with refused("INVALID_PARAMS", "settings.write_back"):
        ledger.set(write_back="any")


def test_a_wrong_key_of_an_empty_batch_is_refused(ledger):
    with refused("INVALID_PARAMS", "idempotency_key"):
        ledger.record_thoughts([], idempotency_key="")


@pytest.mark.parametrize("argument", OPEN)
def test_a_wrong_argument_of_open_is_refused_and_leaves_no_file(tmp_path, monkeypatch, argument):
    monkeypatch.chdir(tmp_path)
    problems = {}
    for number, wrong in enumerate(OPEN[argument]):
        place = tmp_path / f"{number}.db"
        given = arguments_with(wrong, argument, {"path": str(place)})
        problem = find_problem(lambda given=given: affidavit.open(**given), argument, wrong)
        if problem is None and list(tmp_path.glob(f"{number}.db*")):
            problem = "refused, but the file is there"
        if problem is not None:
            problems[wrong.label] = problem
    assert problems == {}


@pytest.mark.parametrize("argument", ["readonly", "create", "settings"])
def test_a_wrong_option_of_open_changes_no_ledger(path, argument):
    affidavit.open(path).close()
    before, problems = snapshot(path), {}
    for wrong in OPEN[argument]:
        given = {"path": path, argument: wrong.value}
        problem = find_problem(lambda given=given: affidavit.open(**given), argument, wrong)
        if problem is not None:
            problems[wrong.label] = problem
    assert problems == {}
    assert snapshot(path) == before
