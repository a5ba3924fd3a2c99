"""Entries read strictly: what is written is read back, and every deviation is refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.core.canonical import encode_string
from affidavit.core.entry import (
    ENTRY_BYTES_MAX,
    Entry,
    Source,
    commitment,
    decode_entry,
    encode_call,
    encode_entry,
    encode_thought,
    is_commitment_to,
    read_at,
    source_json,
)
from affidavit.core.kinds import BODIES, PAYLOAD_FIELDS, check_body
from affidavit.errors import InputError

DIGEST = "ab" * 32
SALT = bytes(range(32))
DEFAULT_SOURCE = Source()
PAYLOAD = {"bytes": 5, "commit": DIGEST}
TEXT = "2026-04-17T00:00:00Z"
VKEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
COSIGNING = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2"

# A good value of every shape, and values that are not of it.
NOT_STRINGS = [1, True, [], {}]
BAD_NAMES = [*NOT_STRINGS, "", "a\nb", "\x7f", "\u00e9" * 257]
BAD_DIGESTS = [*NOT_STRINGS, "", "a" * 63, "a" * 65, "A" * 64, "g" * 64]
BAD_COUNTS = ["1", -1, True, False, [], {}]
BAD_PAYLOADS = [
    *(1, True, [], {}, "x", {"bytes": 5}, {"commit": DIGEST}, {"bytes": None, "commit": DIGEST}),
    *({"bytes": -1, "commit": DIGEST}, {"bytes": True, "commit": DIGEST}),
    *({"bytes": "5", "commit": DIGEST}, {"bytes": 5, "commit": "A" * 64}, [5, DIGEST]),
]
BAD_CONTINUES = [
    *("s0", 1, [], {}, {"session_id": "s0"}, {"chain_hash": DIGEST}),
    *({"chain_hash": "x", "session_id": "s0"}, {"chain_hash": DIGEST, "session_id": ""}),
    {"chain_hash": DIGEST, "session_id": "s0", "more": 1},
]
GOOD_CHANGES = {"status": "DONE", "priority": None, "description": None}
GOOD_CHANGES |= {"project_id": "p1", "assignee": "agent-1"}
BAD_CHANGES = [
    *([], "x", 1, {"status": "READY"}, {"status": None}, {"status": []}, {"priority": 1}),
    *({"project_id": ""}, {"assignee": []}, {"description": "text"}, {"title": "text"}),
    {"title": None},
]
SHAPES = {
    "name": ("a", BAD_NAMES),
    "digest": (DIGEST, BAD_DIGESTS),
    "count": (0, BAD_COUNTS),
    "bool": (True, [0, 1, "true", [], {}]),
    "text": (TEXT, NOT_STRINGS),
    "payload": (PAYLOAD, BAD_PAYLOADS),
    "scalar": ("any", [[], {}]),
    "settings": ({"payloads": "keep", "n": 1, "on": True}, ["x", 1, [], {"a": None}, {"a": []}]),
    "continues": ({"chain_hash": DIGEST, "session_id": "s0"}, BAD_CONTINUES),
    "changes": (GOOD_CHANGES, BAD_CHANGES),
    "origin": ("example.com/log", ["a b", "a+b", *BAD_NAMES]),
    "key": (VKEY, [VKEY.upper(), VKEY[:-1], COSIGNING, *NOT_STRINGS]),
    "state": ("INIT", ["init", "", "READY", *NOT_STRINGS]),
    "thought type": ("plan", ["PLAN", "", "note", *NOT_STRINGS]),
    "end reason": ("done", ["over", "", *NOT_STRINGS]),
}
_CALL = {
    "tool": "name",
    "caller": "name?",
    "duration_us": "count",
    "outcome": "name",
    "args_sha256": "payload?",
    "first_index": "count?",
    "last_index": "count?",
}
# As in the formats document: key, shape, and "?" where it may be null.
KINDS = {
    "ledger.created": {"ledger_id": "name", "origin": "name", "settings": "settings"},
    "setting.changed": {"name": "name", "old": "scalar?", "new": "scalar", "by": "name?"},
    "origin.changed": {
        "old_origin": "origin",
        "old_size": "count",
        "old_root": "digest",
        "origin": "origin",
        "reason": "payload?",
    },
    "key.added": {"vkey": "key", "by": "name?", "reason": "payload?"},
    "key.retired": {"vkey": "key", "by": "name?", "reason": "payload?"},
    "call.finished": _CALL,
    "call.failed": _CALL,
    "session.started": {
        "caller": "name?",
        "continues": "continues?",
        "ledger_id": "name",
        "proof_grade": "bool",
        "session_id": "name",
        "started_at": "text",
        "task_id": "name?",
        "genesis": "digest",
        "intent": "payload",
        "project": "name?",
        "model": "name?",
    },
    "session.sealed": {
        "session_id": "name",
        "root": "digest",
        "record_count": "count",
        "chain_hash": "digest",
        "closing_reflection": "bool",
        "entries_root": "digest",
        "entry_count": "count",
        "finalized_at": "text",
        "first_index": "count",
        "last_index": "count",
    },
    "session.ended": {"session_id": "name", "ended_at": "text", "reason": "end reason"},
    "thought.recorded": {
        "id": "name",
        "type": "thought type",
        "task_id": "name",
        "agent_id": "name",
        "timestamp": "text",
        "prev_hash": "digest",
        "hash": "digest",
        "session_id": "name?",
        "session_seq": "count?",
        "content_hash": "digest?",
        "chain_hash": "digest?",
        "parent_chain_hash": "digest?",
    },
    "task.created": {
        "task_id": "name",
        "title": "payload",
        "description": "payload?",
        "status": "state",
        "project_id": "name?",
        "priority": "name?",
        "assignee": "name?",
    },
    "task.updated": {
        "task_id": "name",
        "changed": "changes",
        "title": "payload?",
        "description": "payload?",
        "reason": "payload?",
        "attempt": "count",
    },
    "task.deleted": {"task_id": "name", "reason": "payload?"},
}
KEYS = [(kind, key) for kind, keys in KINDS.items() for key in keys]
NULLABLE = [(kind, key) for kind, key in KEYS if KINDS[kind][key].endswith("?")]
WRONG = [
    (kind, key, value)
    for kind, key in KEYS
    for value in SHAPES[KINDS[kind][key].rstrip("?")][1]
    + ([] if KINDS[kind][key].endswith("?") else [None])
]


def body_of(kind):
    return {key: SHAPES[shape.rstrip("?")][0] for key, shape in KINDS[kind].items()}


def value_of(**changes):
    """A good entry of a kind nobody knows, as a value, with some of its members replaced."""
    src = {"auth": "none", "client": None, "via": "python"}
    return {"at": 1, "body": {"x": 1}, "kind": "weather.observed", "src": src, "v": 1} | changes


def bytes_of(value):
    """Sorted and compact like an entry, but of any value at all."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def refusal_of(data):
    with pytest.raises(InputError) as caught:
        decode_entry(data)
    return caught.value


def test_the_kinds_tried_here_are_known():
    assert KINDS.keys() <= BODIES.keys()
    for kind, keys in KINDS.items():
        assert BODIES[kind].keys() == keys.keys()


@pytest.mark.parametrize("kind", [*KINDS, "weather.observed"])
def test_an_entry_is_read_as_it_was_written(kind):
    body = body_of(kind) if kind in KINDS else {"x": [1, None, {"y": "\u00e9"}]}
    src = Source("token", "editor/1.0", "mcp")
    data = encode_entry(1_776_384_000_000_001, kind, body, src)
    assert data == bytes_of(
        value_of(at=1_776_384_000_000_001, kind=kind, body=body, src=src._asdict())
    )
    assert decode_entry(data) == (1_776_384_000_000_001, kind, body, src)


def test_a_source_is_a_local_library_unless_said_otherwise():
    assert Source() == ("none", None, "python")


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_a_missing_key_of_a_body_is_refused(kind, key):
    body = body_of(kind)
    del body[key]
    assert refusal_of(bytes_of(value_of(kind=kind, body=body))).field == key


@pytest.mark.parametrize(("kind", "key"), NULLABLE)
def test_a_key_that_may_be_null_is_taken_as_null(kind, key):
    body = {**body_of(kind), key: None}
    assert decode_entry(bytes_of(value_of(kind=kind, body=body))).body == body


@pytest.mark.parametrize(("kind", "key", "value"), WRONG)
def test_a_wrong_value_in_a_body_is_refused(kind, key, value):
    body = {**body_of(kind), key: value}
    assert refusal_of(bytes_of(value_of(kind=kind, body=body))).field == key


@pytest.mark.parametrize("kind", KINDS)
def test_further_keys_of_a_body_are_kept(kind):
    body = {**body_of(kind), "redaction": {"count": 1, "rules": "1"}, "at": "x", "zz": [None]}
    assert decode_entry(bytes_of(value_of(kind=kind, body=body))).body == body


@pytest.mark.parametrize("kind", ["weather.observed", "thought.recorded2", "x", "a b"])
@pytest.mark.parametrize("body", [{}, {"x": None}, {"session_id": 1}])
def test_an_unknown_kind_is_kept_whatever_its_body(kind, body):
    assert decode_entry(bytes_of(value_of(kind=kind, body=body))) == (1, kind, body, Source())


@pytest.mark.parametrize("key", ["at", "body", "kind", "src", "v"])
def test_a_missing_key_is_refused(key):
    value = value_of()
    del value[key]
    refusal_of(bytes_of(value))


@pytest.mark.parametrize("key", ["a", "index", "salt", "w", "at_"])
def test_a_key_too_many_is_refused(key):
    refusal_of(bytes_of(value_of(**{key: 1})))


@pytest.mark.parametrize("value", [None, True, 1, "x", [], ["at", "body", "kind", "src", "v"], {}])
def test_what_is_not_an_object_of_five_keys_is_refused(value):
    refusal_of(bytes_of(value))


@pytest.mark.parametrize("version", [0, 2, -1, True, False, 1.0, "1", None, [1], {"v": 1}])
def test_every_version_but_the_integer_one_is_refused(version):
    refusal_of(bytes_of(value_of(v=version)))


@pytest.mark.parametrize("at", [0, 1, 2**53 - 1])
def test_a_time_may_be_any_count_of_microseconds(at):
    assert decode_entry(bytes_of(value_of(at=at))).at == at


@pytest.mark.parametrize(
    "at", [-1, 2**53, 10**30, -(2**53), True, False, 1.0, 0.5, "1", None, [], {}]
)
def test_a_time_that_is_no_such_count_is_refused(at):
    refusal_of(bytes_of(value_of(at=at)))


@pytest.mark.parametrize("kind", [None, 1, True, "", "a\nb", "a" * 513, [], {}])
def test_a_kind_that_is_no_name_is_refused(kind):
    refusal_of(bytes_of(value_of(kind=kind)))


@pytest.mark.parametrize("body", [None, 1, True, "", [], [{}]])
def test_a_body_that_is_no_object_is_refused(body):
    refusal_of(bytes_of(value_of(body=body)))


@pytest.mark.parametrize(
    "src",
    [
        *(None, 1, "python", [], {}, ["auth", "client", "via"]),
        {"auth": "none", "client": None},
        {"auth": "none", "via": "cli"},
        {"client": None, "via": "cli"},
        {"auth": "none", "client": None, "more": 1, "via": "cli"},
        *({"auth": auth, "client": None, "via": "cli"} for auth in (None, "", 1, True, [])),
        *({"auth": "none", "client": client, "via": "cli"} for client in ("", 1, True, [], "\n")),
        *({"auth": "none", "client": None, "via": via} for via in (None, "", 1, {}, "a" * 513)),
    ],
)
def test_a_wrong_source_is_refused(src):
    refusal_of(bytes_of(value_of(src=src)))


GOOD = encode_entry(1, "weather.observed", {"a": 1, "b": "/\u00e9"}, Source()).decode()
RESPELLED = {
    "space_first": f" {GOOD}",
    "space_last": f"{GOOD} ",
    "line_end": f"{GOOD}\n",
    "space_inside": GOOD.replace(":", ": ", 1),
    "escaped_slash": GOOD.replace("/", "\\/"),
    "escaped_letter": GOOD.replace("\u00e9", "\\u00e9"),
    "keys_reordered": GOOD.replace('"a":1,"b":"/\u00e9"', '"b":"/\u00e9","a":1'),
    "key_repeated": GOOD.replace('"v":1', '"v":1,"v":1'),
    "key_repeated_in_body": GOOD.replace('"a":1', '"a":1,"a":1'),
    "float": GOOD.replace('"a":1', '"a":1.0'),
    "exponent": GOOD.replace('"a":1', '"a":1e0'),
    "minus_zero": GOOD.replace('"a":1', '"a":-0'),
    "capital_key": GOOD.replace('"a":1', '"A":1'),
    "nul": GOOD.replace("/", "\\u0000"),
    "lone_surrogate": GOOD.replace("/", "\\ud800"),
    "byte_order_mark": f"\ufeff{GOOD}",
    "two_values": GOOD + GOOD,
    "cut": GOOD[:-1],
    "nothing": "",
}


def test_the_text_that_is_respelled_here_is_good():
    assert decode_entry(GOOD.encode()).body == {"a": 1, "b": "/\u00e9"}
    assert all(text != GOOD for text in RESPELLED.values())


@pytest.mark.parametrize("text", RESPELLED.values(), ids=RESPELLED)
def test_an_entry_that_is_not_canonical_is_refused(text):
    refusal_of(text.encode())


@pytest.mark.parametrize("data", [b"\xff", GOOD.encode("utf-16"), GOOD.encode()[:-3] + b"\xc3"])
def test_an_entry_that_is_not_utf_8_is_refused(data):
    refusal_of(data)


def body_for_size(size, *, encode):
    """A body whose entry has exactly this many bytes."""
    return {"x": "a" * (size - len(encode({"x": ""})))}


def encode_weather(body):
    return encode_entry(1, "weather.observed", body, Source())


def test_the_largest_entry_is_written_and_read():
    data = encode_weather(body_for_size(ENTRY_BYTES_MAX, encode=encode_weather))
    assert len(data) == ENTRY_BYTES_MAX == 65_535
    assert len(decode_entry(data).body["x"]) > 65_000


def test_a_larger_entry_is_not_written():
    with pytest.raises(InputError) as caught:
        encode_weather(body_for_size(ENTRY_BYTES_MAX + 1, encode=encode_weather))
    assert (caught.value.code, caught.value.field) == ("ERR_TOO_LARGE", "entry")


def test_a_larger_entry_is_not_read():
    body = body_for_size(ENTRY_BYTES_MAX + 1, encode=encode_weather)
    data = bytes_of(value_of(body=body))
    assert len(data) == ENTRY_BYTES_MAX + 1
    assert refusal_of(data).code == "ERR_TOO_LARGE"


def encode_parts(at=1, src=DEFAULT_SOURCE, **changes):
    """A thought bound to no session, from parts in JSON or as plain hex."""
    quoted = {"agent": "g1", "id_": "r1", "task": "t1", "timestamp": TEXT}
    parts = {key: encode_string(text) for key, text in quoted.items()}
    parts |= dict.fromkeys(("chain", "content_hash", "parent", "session", "seq"), "null")
    parts |= {"hash_": DIGEST, "prev_hash": "0" * 64, "type_": "plan"}
    return encode_thought(at=at, src=src, **(parts | changes))


def test_a_larger_thought_is_not_written():
    with pytest.raises(InputError) as caught:
        encode_parts(id_=encode_string("a" * 65_535))
    assert caught.value.code == "ERR_TOO_LARGE"


def test_a_thought_with_a_lone_surrogate_is_not_written():
    with pytest.raises(InputError):
        encode_parts(id_='"\ud800"')


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


names = st.fixed_dictionaries(dict.fromkeys(("agent_id", "id", "session_id", "timestamp"), words))


@given(names, st.none() | words, st.integers(0, 2**53 - 1))
@settings(deadline=None, max_examples=200)
def test_a_thought_has_the_bytes_of_any_other_entry(said, client, number):
    src = Source("claimed", client, "hook")
    found = encode_parts(
        number,
        src,
        agent=encode_string(said["agent_id"]),
        id_=encode_string(said["id"]),
        session=encode_string(said["session_id"]),
        timestamp=encode_string(said["timestamp"]),
        seq=str(number),
        **dict.fromkeys(("chain", "content_hash", "parent"), f'"{DIGEST}"'),
    )
    body = said | dict.fromkeys(("chain_hash", "content_hash", "hash", "parent_chain_hash"), DIGEST)
    body |= {"prev_hash": "0" * 64, "session_seq": number, "task_id": "t1", "type": "plan"}
    expected = encode_entry(number, "thought.recorded", body, src)
    assert found == expected
    assert expected.decode().endswith("," + source_json(src))


def test_a_thought_bound_to_no_session_is_read_back():
    entry = decode_entry(encode_parts(7))
    assert (entry.at, entry.kind, entry.body["session_id"]) == (7, "thought.recorded", None)


@pytest.mark.parametrize("at", [0, 1, 1_776_384_000_000_001, 2**53 - 1])
def test_the_time_of_an_entry_is_read_without_the_rest(at):
    assert read_at(encode_entry(at, "weather.observed", {}, Source())) == at


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"at":,"body":{}}', b'{"at":-1,"body":', b' {"at":1,"body":', b'{"at":1}'],
)
def test_bytes_that_do_not_begin_with_a_time_are_refused(data):
    with pytest.raises(InputError):
        read_at(data)


def test_a_commitment_holds_the_size_in_bytes_and_no_text():
    assert commitment(SALT, "\u20ac!") == {
        "bytes": 4,
        "commit": "88e5ae20f7a41e18e096e60420b1a9e1b91e498ca14bf81c5c6fe9ae46512852",
    }


def test_the_text_and_salt_committed_to_are_recognised():
    committed = commitment(SALT, "because")
    assert is_commitment_to(committed, SALT, "because")
    assert is_commitment_to({**committed, "more": 1}, SALT, "because")


@pytest.mark.parametrize(
    ("salt", "text"),
    [
        *((SALT, "Because"), (SALT, "because "), (SALT, ""), (SALT, "because\ud800")),
        *((None, "because"), (b"", "because"), (SALT[:31], "because"), (SALT + b"b", "ecause")),
        (bytes(32), "because"),
    ],
)
def test_another_text_or_salt_is_not_the_one_committed_to(salt, text):
    assert not is_commitment_to(commitment(SALT, "because"), salt, text)


@pytest.mark.parametrize("change", [{"bytes": 6}, {"bytes": 0}, {"commit": DIGEST}])
def test_another_size_or_digest_is_not_the_commitment_to_a_text(change):
    assert not is_commitment_to(commitment(SALT, "because") | change, SALT, "because")


def test_the_payload_fields_are_those_of_the_formats():
    expected = {
        "call.failed": {"args_sha256"},
        "call.finished": {"args_sha256"},
        "key.added": {"reason"},
        "key.retired": {"reason"},
        "origin.changed": {"reason"},
        "session.started": {"intent"},
        "task.created": {"title", "description"},
        "task.updated": {"title", "description", "reason"},
        "task.deleted": {"reason"},
    }
    found = {kind: set(PAYLOAD_FIELDS[kind]) for kind in KINDS if PAYLOAD_FIELDS[kind]}
    assert found == expected


def test_a_task_may_change_in_ways_a_reader_does_not_know():
    body = {**body_of("task.updated"), "changed": {"status": "PLAN", "colour": 7}}
    check_body("task.updated", body)


@pytest.mark.parametrize("kind", ["call.finished", "call.failed"])
@pytest.mark.parametrize("args", [None, commitment(SALT, "0" * 64)])
@pytest.mark.parametrize("caller", [None, "client/1", 'a "quoted" émile'])
@pytest.mark.parametrize("span", [(None, None), (0, 7)])
def test_a_call_is_encoded_as_any_entry_is(kind, args, caller, span):
    body = {"tool": "task_get", "caller": caller, "duration_us": 70, "outcome": "ok"}
    body |= {"args_sha256": args, "first_index": span[0], "last_index": span[1]}
    entry = Entry(5, kind, body, Source("claimed", caller, "mcp"))
    assert encode_call(entry) == encode_entry(*entry)
    assert decode_entry(encode_call(entry)) == entry
