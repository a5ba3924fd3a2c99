"""Facts forged as well as the format allows: entry, leaf hash, row and nodes agree."""

from __future__ import annotations

import sqlite3
from typing import Any

from affidavit.core.canonical import encode_string as quote
from affidavit.core.entry import Entry, commitment, encode_entry
from affidavit.core.merkle import Digest, complete_levels, leaf_hash, tree_root
from affidavit.core.session import METADATA_KEYS, chain_hash, content_hash, genesis
from affidavit.core.thought import ZERO_HASH, task_hash
from affidavit.core.views.payload import Payload
from affidavit.core.views.sessions import seal_row, session_row
from affidavit.core.views.settings import setting_row
from affidavit.core.views.thoughts import ThoughtRow, thought_row
from tamper.attack import (
    SOURCE,
    append_raw,
    as_entry,
    entry_at,
    last_at,
    log_size,
    put_row,
    replace_entry,
    value_at,
)

SALT = b"s" * 32
TIME = "2026-04-17T01:00:00.000Z"


def forge(connection: sqlite3.Connection, kind: str, body: dict[str, Any], at: int = 0) -> Entry:
    """An entry behind the last one; its row is the caller's business."""
    entry = Entry(at or last_at(connection) + 1, kind, body, SOURCE)
    append_raw(connection, encode_entry(*entry))
    return entry


def rehash_thought(body: dict[str, Any], content: str) -> None:
    """Give a record's body the hashes that follow from what it says."""
    own_id, task = quote(body["id"]), quote(body["task_id"])
    time, text = quote(body["timestamp"]), quote(content)
    body["hash"] = task_hash(text, own_id, body["prev_hash"], task, time, body["type"])
    if body["session_id"] is not None:
        agent, session = quote(body["agent_id"]), quote(body["session_id"])
        body["content_hash"] = content_hash(agent, text, own_id, session, task, time, body["type"])
        body["chain_hash"] = chain_hash(body["content_hash"], body["parent_chain_hash"])


def thought_body(
    connection: sqlite3.Connection, content: str, session_id: str | None, changes: dict[str, Any]
) -> dict[str, Any]:
    """The body of a record that continues its chains, but for what is changed on purpose."""
    task_id = changes.get("task_id", "t-1")
    sql = "SELECT hash FROM thought_records WHERE task_id = ? ORDER BY log_index DESC LIMIT 1"
    prev = connection.execute(sql, (task_id,)).fetchone()
    body: dict[str, Any] = {
        "id": f"forged-{log_size(connection)}",
        "type": "decision",
        "task_id": task_id,
        "agent_id": "agent-1",
        "timestamp": TIME,
        "prev_hash": prev[0] if prev else ZERO_HASH,
        "hash": None,
        "session_id": session_id,
        "session_seq": None,
        "content_hash": None,
        "chain_hash": None,
        "parent_chain_hash": None,
    }
    if session_id is not None:
        tip = session_tip(connection, session_id)
        body["parent_chain_hash"], body["session_seq"] = tip
    body.update(changes)
    rehash_thought(body, content)
    return body


def session_tip(connection: sqlite3.Connection, session_id: str) -> tuple[str, int]:
    """The last chain hash of a session, and the next place in it."""
    sql = (
        "SELECT chain_hash, session_seq + 1 FROM thought_records WHERE session_id = ?"
        " ORDER BY log_index DESC LIMIT 1"
    )
    found = connection.execute(sql, (session_id,)).fetchone()
    if found is None:
        sql = "SELECT genesis, 0 FROM sessions WHERE session_id = ?"
        found = connection.execute(sql, (session_id,)).fetchone() or ("0" * 64, 0)
    return found


def forge_thought(
    connection: sqlite3.Connection,
    content: str,
    session_id: str | None = None,
    *,
    at: int = 0,
    **changes: Any,
) -> int:
    """A record behind the last entry, with its row."""
    body = thought_body(connection, content, session_id, changes)
    entry = forge(connection, "thought.recorded", body, at)
    index = log_size(connection) - 1
    put_row(connection, thought_row(index, entry, content))
    return index


def forge_session(connection: sqlite3.Connection, session_id: str, **changes: Any) -> int:
    """A session behind the last entry, with its row."""
    body: dict[str, Any] = {
        "caller": None,
        "continues": None,
        "ledger_id": value_at(connection, 0)["body"]["ledger_id"],
        "proof_grade": False,
        "session_id": session_id,
        "started_at": TIME,
        "task_id": None,
        "intent": commitment(SALT, "forged"),
        "project": None,
        "model": None,
    }
    body.update({key: value for key, value in changes.items() if key != "genesis"})
    real = genesis({key: body[key] for key in METADATA_KEYS})
    body["genesis"] = changes.get("genesis", real)
    entry = forge(connection, "session.started", body)
    index = log_size(connection) - 1
    put_row(connection, session_row(index, entry, Payload("forged", SALT)))
    return index


def forge_end(connection: sqlite3.Connection, session_id: str) -> int:
    """The end of a session behind the last entry, with the links to it."""
    body = {"session_id": session_id, "ended_at": TIME, "reason": "done"}
    forge(connection, "session.ended", body)
    index = log_size(connection) - 1
    connection.execute(
        "UPDATE sessions SET ended_index = ?, ended_at = ?, end_reason = ? WHERE session_id = ?"
        " AND ended_index IS NULL",
        (index, TIME, "done", session_id),
    )
    return index


def seal_claims(connection: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    """What a true seal would say of a session now."""
    own, others = session_indices(connection, session_id)
    sql = "SELECT type FROM thought_records WHERE session_id = ? ORDER BY log_index"
    types = connection.execute(sql, (session_id,)).fetchall()
    every = sorted(own + others)
    return {
        "session_id": session_id,
        "root": tree_root(leaves_at(connection, own)).hex(),
        "record_count": len(own),
        "chain_hash": session_tip(connection, session_id)[0],
        "closing_reflection": bool(types) and types[-1] == ("reflection",),
        "entries_root": tree_root(leaves_at(connection, every)).hex(),
        "entry_count": len(every),
        "finalized_at": TIME,
        "first_index": own[0] if own else 0,
        "last_index": own[-1] if own else 0,
    }


def forge_seal(connection: sqlite3.Connection, session_id: str, /, **claims: Any) -> int:
    """A seal behind the last entry, true but for what is claimed on purpose; row and nodes too."""
    own, _ = session_indices(connection, session_id)
    body = seal_claims(connection, session_id) | claims
    entry = forge(connection, "session.sealed", body)
    index = log_size(connection) - 1
    put_row(connection, seal_row(index, entry))
    for level, digests in enumerate(complete_levels(leaves_at(connection, own))[1:], start=1):
        for position, digest in enumerate(digests):
            row = (index, level, position, digest)
            connection.execute("INSERT INTO merkle_nodes VALUES (?, ?, ?, ?)", row)
    return index


def session_indices(connection: sqlite3.Connection, session_id: str) -> tuple[list[int], list[int]]:
    """Where a session's records are, and its other entries."""
    own, others = [], []
    for index in range(log_size(connection)):
        value = value_at(connection, index)
        if value["body"].get("session_id") == session_id:
            (own if value["kind"] == "thought.recorded" else others).append(index)
    return own, others


def leaves_at(connection: sqlite3.Connection, indices: list[int]) -> list[Digest]:
    return [leaf_hash(entry_at(connection, index)) for index in indices]


def rewrite(connection: sqlite3.Connection, index: int, **changes: Any) -> None:
    """Change an entry that has no chain, with its leaf hash and its row."""
    value = value_at(connection, index)
    value["body"].update(changes.pop("body", {}))
    value.update(changes)
    entry = as_entry(value)
    replace_entry(connection, index, encode_entry(*entry))
    if entry.kind == "thought.recorded":
        content = thought_at(connection, index).content
        put_row(connection, thought_row(index, entry, content))
    elif entry.kind == "session.sealed":
        put_row(connection, seal_row(index, entry))
    elif entry.kind == "setting.changed":
        put_row(connection, setting_row(index, entry))


def rewrite_thought(connection: sqlite3.Connection, index: int, content: str) -> None:
    """Change what a record says, with all its own hashes, its entry and its row."""
    value = value_at(connection, index)
    rehash_thought(value["body"], content)
    entry = as_entry(value)
    replace_entry(connection, index, encode_entry(*entry))
    put_row(connection, thought_row(index, entry, content))


def thought_at(connection: sqlite3.Connection, index: int) -> ThoughtRow:
    sql = "SELECT * FROM thought_records WHERE log_index = ?"
    return ThoughtRow._make(connection.execute(sql, (index,)).fetchone())
