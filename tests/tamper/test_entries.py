"""Attacks on entries: their form, their time, their kind, and what they say of themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from affidavit.core.entry import SALT_BYTES, commitment
from affidavit.core.merkle import leaf_hash
from affidavit.core.moment import AT_US_MAX
from tamper.attack import (
    append,
    append_raw,
    audit,
    canonical,
    entry_at,
    last_at,
    log_size,
    replace_entry,
    tampering,
    told,
    value_at,
)
from tamper.forge import (
    forge_end,
    forge_seal,
    forge_thought,
    rewrite,
    rewrite_thought,
    thought_at,
    thought_body,
)

# A record behind the last kept node of the log, not the last of its task.
TAIL = 770


def dumped(value: Any, **options: Any) -> bytes:
    options = {"separators": (",", ":"), "ensure_ascii": False, "sort_keys": True, **options}
    return json.dumps(value, **options).encode()


def put_key(value: dict[str, Any], key: str, item: Any) -> dict[str, Any]:
    return {**value, key: item}


def put_body(value: dict[str, Any], key: str, item: Any) -> dict[str, Any]:
    return {**value, "body": {**value["body"], key: item}}


MALFORMED: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "a space behind it": lambda value: dumped(value) + b" ",
    "a line feed behind it": lambda value: dumped(value) + b"\n",
    "spaces inside": lambda value: dumped(value, separators=(", ", ": ")),
    "a byte order mark": lambda value: b"\xef\xbb\xbf" + dumped(value),
    "keys in another order": lambda value: dumped(dict(reversed(value.items())), sort_keys=False),
    "an escape where none is needed": lambda value: dumped(value).replace(
        b'"kind"', b'"\\u006bind"'
    ),
    "an escaped slash": lambda value: dumped(put_body(value, "agent_id", "a/b")).replace(
        b"a/b", b"a\\/b"
    ),
    "a key twice": lambda value: dumped(value).replace(b'"v":1', b'"v":1,"v":1'),
    "a key too many": lambda value: dumped(put_key(value, "extra", 1)),
    "a key too few": lambda value: dumped({key: value[key] for key in ("at", "body", "kind", "v")}),
    "version 2": lambda value: dumped(put_key(value, "v", 2)),
    "version true": lambda value: dumped(put_key(value, "v", True)),
    "version 1.0": lambda value: dumped(put_key(value, "v", 1.0)),
    "a version in words": lambda value: dumped(put_key(value, "v", "1")),
    "a time that is a fraction": lambda value: dumped(put_key(value, "at", value["at"] + 0.5)),
    "a time with an exponent": lambda value: dumped(value).replace(
        b'"at":%d' % value["at"], b'"at":1e15'
    ),
    "a time below zero": lambda value: dumped(put_key(value, "at", -1)),
    "a time behind the calendar": lambda value: dumped(put_key(value, "at", AT_US_MAX + 1)),
    "a time beyond 2^53": lambda value: dumped(put_key(value, "at", 2**53)),
    "a time of a thousand digits": lambda value: dumped(value).replace(
        b'"at":%d' % value["at"], b'"at":' + b"9" * 1_000
    ),
    "no time": lambda value: dumped(put_key(value, "at", None)),
    "a count beyond 2^53": lambda value: dumped(put_body(value, "session_seq", 2**53)),
    "a float in the body": lambda value: dumped(put_body(value, "session_seq", 0.5)),
    "NaN in the body": lambda value: dumped(put_body(value, "session_seq", float("nan"))),
    "a key in capitals": lambda value: dumped(put_body(value, "Extra", 1)),
    "a lone surrogate": lambda value: dumped(put_body(value, "agent_id", "x")).replace(
        b'"agent_id":"x"', b'"agent_id":"\\ud800"'
    ),
    "a NUL": lambda value: dumped(put_body(value, "agent_id", "a\0b")),
    "a control character in a name": lambda value: dumped(put_body(value, "agent_id", "a\x7fb")),
    "a name that is too long": lambda value: dumped(put_body(value, "agent_id", "a" * 513)),
    "a name that is empty": lambda value: dumped(put_body(value, "agent_id", "")),
    "a name that is a number": lambda value: dumped(put_body(value, "agent_id", 7)),
    "a hash in capitals": lambda value: dumped(put_body(value, "hash", "AB" * 32)),
    "a hash cut short": lambda value: dumped(put_body(value, "hash", "ab")),
    "a type that there is not": lambda value: dumped(put_body(value, "type", "guess")),
    "deeper than 64": lambda value: dumped(put_body(value, "x", json.loads("[" * 70 + "]" * 70))),
    "ten thousand deep": lambda value: b"[" * 10_000 + b"]" * 10_000,
    "a body that is a list": lambda value: dumped(put_key(value, "body", [])),
    "a kind that is null": lambda value: dumped(put_key(value, "kind", None)),
    "an empty kind": lambda value: dumped(put_key(value, "kind", "")),
    "no source": lambda value: dumped(put_key(value, "src", {})),
    "a source with more": lambda value: dumped(put_key(value, "src", {**value["src"], "x": 1})),
    "longer than an entry may be": lambda value: dumped(put_body(value, "x", "x" * 65_535)),
    "nothing": lambda value: b"",
    "no JSON": lambda value: b"\x00\xff\xfe",
    "no UTF-8": lambda value: dumped(value).replace(b"alone", b"al\xffne"),
    "JSON, but no object": lambda value: b"null",
}


@pytest.mark.parametrize("form", MALFORMED)
def test_a_malformed_entry_with_its_leaf_hash_put_right(victim: Path, form: str) -> None:
    with tampering(victim) as connection:
        replace_entry(connection, TAIL, MALFORMED[form](value_at(connection, TAIL)))
    assert told(audit(victim)) == [("entry_not_canonical", TAIL, "log.entry")]


@pytest.mark.parametrize("form", MALFORMED)
def test_a_malformed_entry_behind_the_last_one(victim: Path, form: str) -> None:
    with tampering(victim) as connection:
        index = append_raw(connection, MALFORMED[form](value_at(connection, TAIL)))
    assert told(audit(victim)) == [("entry_not_canonical", index, "log.entry")]


@pytest.mark.parametrize("form", MALFORMED)
def test_a_malformed_entry_with_its_leaf_hash_left(victim: Path, form: str) -> None:
    with tampering(victim) as connection:
        entry = MALFORMED[form](value_at(connection, TAIL))
        replace_entry(connection, TAIL, entry, rehash=False)
    found = told(audit(victim))
    assert len(found) == 1
    assert found[0][:2] == ("entry_changed", TAIL)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "guess"),
        ("id", "x" * 513),
        ("id", "a\x7fb"),
        ("id", "a\x85b"),
        ("id", "a\nb"),
        ("agent_id", "y" * 513),
        ("agent_id", ""),
        ("task_id", "z" * 513),
        ("task_id", "a\x1bb"),
    ],
)
@pytest.mark.parametrize("session_id", [None, "c-open"], ids=["alone", "in a session"])
def test_a_record_nobody_could_have_written_though_its_hashes_hold(
    victim: Path, field: str, value: str, session_id: str | None
) -> None:
    """Entry, leaf hash, row and both chains agree, but no call takes such a value."""
    with tampering(victim) as connection:
        body = thought_body(connection, "text", session_id, {field: value})
        entry = {"at": last_at(connection) + 1, "body": body, "kind": "thought.recorded"}
        index = append_raw(connection, dumped({**entry, "src": SRC, "v": 1}))
        put_thought(connection, index, entry["at"], body, "text")
    found = told(audit(victim))
    assert found[0] == ("entry_not_canonical", index, "log.entry")
    assert len(found) == 1


SRC = {"auth": "none", "client": None, "via": "python"}


def put_thought(
    connection: sqlite3.Connection, index: int, at: int, body: dict[str, Any], content: str
) -> None:
    table = connection.execute("SELECT name FROM pragma_table_info('thought_records')")
    names = [name for (name,) in table.fetchall()]
    row = {**body, "log_index": index, "at": at, "content": content}
    row |= {"created_at": body["timestamp"], "erased_at": None}
    marks = ", ".join("?" * len(names))
    values = [row[name] for name in names]
    connection.execute(f"INSERT INTO thought_records VALUES ({marks})", values)


@pytest.mark.parametrize("session_id", [None, "c-open"], ids=["alone", "in a session"])
def test_a_key_smuggled_in_through_the_type(victim: Path, session_id: str | None) -> None:
    """The row's type closes its own quotes; hashed as it stands, it gives the entry's bytes."""
    smuggled = 'plan","zzz":"1'
    with tampering(victim) as connection:
        body = thought_body(connection, "text", session_id, {"type": smuggled})
        at = last_at(connection) + 1
        said = {**body, "type": "plan", "zzz": "1"}
        entry = {"at": at, "body": said, "kind": "thought.recorded", "src": SRC, "v": 1}
        index = append_raw(connection, dumped(entry))
        put_thought(connection, index, at, body, "text")
    assert told(audit(victim)) == [("view_differs", index, "thought_records.type")]


def test_a_record_in_the_year_ten_thousand(victim: Path) -> None:
    with tampering(victim) as connection:
        body = thought_body(connection, "text", None, {})
        entry = {"at": AT_US_MAX + 1, "body": body, "kind": "thought.recorded", "src": SRC, "v": 1}
        index = append_raw(connection, dumped(entry))
        put_thought(connection, index, AT_US_MAX + 1, body, "text")
    assert told(audit(victim)) == [("entry_not_canonical", index, "log.entry")]


# What a newer version may write


def test_an_unknown_kind_is_counted_and_no_finding(victim: Path) -> None:
    with tampering(victim) as connection:
        append(connection, "weather.forecast", {"id": "m1", "session_id": None})
        append(connection, "weather.observed", {})
    report = audit(victim)
    assert told(report) == []
    assert [said for said in report.unchecked if said.startswith("2 ")]
    assert report.checked["entries"] == 786


def test_an_unknown_kind_in_a_session_counts_for_its_seal(victim: Path) -> None:
    with tampering(victim) as connection:
        append(connection, "weather.forecast", {"id": "m1", "session_id": "c-open"})
        forge_seal(connection, "c-open")
        forge_end(connection, "c-open")
    assert told(audit(victim)) == []


def test_a_body_key_no_check_knows_is_no_finding(victim: Path) -> None:
    """`redaction` is one: it is added where secrets were removed."""
    with tampering(victim) as connection:
        redaction = {"count": 1, "rules": "2026-04"}
        forge_thought(connection, "a [redacted] word", redaction=redaction)
        forge_thought(connection, "another", "c-open", redaction=redaction)
        forge_thought(connection, "and another", "c-open")
    assert told(audit(victim)) == []


def test_another_ledger_created_behind_the_last_entry(victim: Path) -> None:
    with tampering(victim) as connection:
        body = value_at(connection, 0)["body"]
        index = append(connection, "ledger.created", body)
    assert told(audit(victim)) == [("entry_changed", index, "log.entry")]


# Time


def test_an_entry_older_than_the_one_before_it(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_thought(connection, "backdated", at=last_at(connection) - 1)
        forge_thought(connection, "the next one", at=last_at(connection) + 5)
    assert told(audit(victim)) == [("time_backwards", index, "log.entry at")]


def test_a_time_moved_back_in_entry_and_row(victim: Path) -> None:
    with tampering(victim) as connection:
        at = value_at(connection, TAIL)["at"] - 3_600_000_000
        rewrite(connection, TAIL, at=at)
    assert told(audit(victim)) == [("time_backwards", TAIL, "log.entry at")]


def test_a_time_moved_ahead_in_entry_and_row_is_told_once(victim: Path) -> None:
    with tampering(victim) as connection:
        at = value_at(connection, TAIL)["at"] + 3_600_000_000
        rewrite(connection, TAIL, at=at)
    assert told(audit(victim)) == [("time_backwards", TAIL + 1, "log.entry at")]


# One entry changed with all its own hashes


def next_of_task(connection: sqlite3.Connection, index: int) -> int:
    task_id = value_at(connection, index)["body"]["task_id"]
    sql = "SELECT min(log_index) FROM thought_records WHERE task_id = ? AND log_index > ?"
    return connection.execute(sql, (task_id, index)).fetchone()[0]


def test_a_record_rewritten_with_its_own_hashes_breaks_the_chain_behind_it(victim: Path) -> None:
    with tampering(victim) as connection:
        rewrite_thought(connection, TAIL, "what was never said")
        after = next_of_task(connection, TAIL)
    assert told(audit(victim)) == [("chain_broken", after, "thought_records.prev_hash")]


def test_a_record_rewritten_under_a_kept_node_is_found_there_too(victim: Path) -> None:
    with tampering(victim) as connection:
        rewrite_thought(connection, 200, "what was never said")
        after = next_of_task(connection, 200)
    assert told(audit(victim)) == [
        ("chain_broken", after, "thought_records.prev_hash"),
        ("tree_node_bad", 255, "merkle_nodes"),
    ]


def test_a_sealed_record_rewritten_with_its_own_hashes(victim: Path) -> None:
    with tampering(victim) as connection:
        sql = "SELECT log_index FROM thought_records WHERE session_id = 'c-sealed'"
        indices = [index for (index,) in connection.execute(sql).fetchall()]
        sql = "SELECT log_index FROM seals WHERE session_id = 'c-sealed'"
        seal = connection.execute(sql).fetchone()[0]
        rewrite_thought(connection, indices[2], "what was never said")
    found = told(audit(victim))
    assert len(found) <= 4, found
    assert found[0][0] == "chain_broken"
    assert indices[2] < found[0][1] <= indices[3] + 4
    assert ("seal_mismatch", seal, "seals.root") in found


@pytest.mark.parametrize(
    ("field", "value"),
    [("agent_id", "somebody else"), ("timestamp", "2020-01-01T00:00:00Z"), ("type", "plan")],
)
def test_a_field_of_an_unbound_record_changed_in_entry_and_row(
    victim: Path, field: str, value: str
) -> None:
    """Under a kept node. What its own hash does not cover, the log's tree does."""
    with tampering(victim) as connection:
        rewrite(connection, 201, body={field: value})
        assert thought_at(connection, 201)._asdict()[field] == value
    found = told(audit(victim))
    assert ("tree_node_bad", 255, "merkle_nodes") in found
    own = [one for one in found if one[1] == 201]
    hashed = [("payload_mismatch", 201, "thought_records.content")]
    assert own == ([] if field == "agent_id" else hashed)


def test_a_setting_changed_in_entry_and_row_under_a_kept_node(victim: Path) -> None:
    with tampering(victim) as connection:
        index = next(n for n in range(9) if value_at(connection, n)["kind"] == "setting.changed")
        rewrite(connection, index, body={"new": 1})
    assert told(audit(victim)) == [("tree_node_bad", 255, "merkle_nodes")]


def test_a_payload_put_in_with_a_commitment_of_its_own(victim: Path) -> None:
    """Row, salt and entry agree; the leaf hash, left as it was, does not."""
    with tampering(victim) as connection:
        sql = "SELECT max(log_index) FROM sessions"
        index = connection.execute(sql).fetchone()[0]
        value = value_at(connection, index)
        value["body"]["intent"] = commitment(b"n" * SALT_BYTES, "another intent")
        replace_entry(connection, index, canonical(value), rehash=False)
        connection.execute(
            "UPDATE sessions SET intent = ?, intent_salt = ? WHERE log_index = ?",
            ("another intent", b"n" * SALT_BYTES, index),
        )
        assert leaf_hash(entry_at(connection, index)) != b""
        assert index < log_size(connection)
    found = told(audit(victim))
    assert [(code, place) for code, place, _ in found] == [("entry_changed", index)]
