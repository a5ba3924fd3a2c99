"""What the formats demand, computed from hashlib and json alone, and the file as sqlite3 shows it.

Nothing here asks the package: a hash or a root that agrees was reached on two ways.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from typing import Any, NamedTuple

ZEROS = "0" * 64
METADATA = (
    "caller", "continues", "ledger_id", "proof_grade", "session_id", "started_at", "task_id",
)  # fmt: skip


class LogEntry(NamedTuple):
    """An entry of the log, read."""

    index: int
    raw: bytes
    at: int
    kind: str
    body: dict[str, Any]
    src: dict[str, Any]


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _chosen(source: Any, *names: str) -> bytes:
    return canonical({name: getattr(source, name) for name in names})


def task_hash(record: Any) -> str:
    return digest(_chosen(record, "id", "type", "task_id", "content", "timestamp", "prev_hash"))


def content_hash(record: Any) -> str:
    names = ("id", "type", "task_id", "agent_id", "content", "timestamp", "session_id")
    return digest(_chosen(record, *names))


def chain_hash(content_hash_hex: str, parent_hex: str) -> str:
    return digest(bytes.fromhex(content_hash_hex) + bytes.fromhex(parent_hex))


def genesis(body: dict[str, Any]) -> str:
    return digest(canonical({name: body[name] for name in METADATA}))


def root(entries: list[bytes]) -> str:
    """The RFC 6962 tree hash, as its definition reads."""
    return _subtree(entries).hex()


def _subtree(entries: list[bytes]) -> bytes:
    if not entries:
        return sha256(b"").digest()
    if len(entries) == 1:
        return sha256(b"\x00" + entries[0]).digest()
    split = 1
    while split * 2 < len(entries):
        split *= 2
    return sha256(b"\x01" + _subtree(entries[:split]) + _subtree(entries[split:])).digest()


def select(path: str, sql: str, *values: Any) -> list[Any]:
    """Rows of the file as anybody with sqlite3 reads them."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql, values).fetchall()


def log(path: str, kind: str | None = None) -> list[LogEntry]:
    """The log, or its entries of one kind."""
    found = []
    for index, raw in select(path, "SELECT log_index, entry FROM log ORDER BY log_index"):
        value = json.loads(raw)
        found.append(LogEntry(index, raw, value["at"], value["kind"], value["body"], value["src"]))
    return [entry for entry in found if kind in (None, entry.kind)]


def session_entries(path: str, session_id: str, end: int) -> list[LogEntry]:
    """The entries below an index that name a session."""
    return [entry for entry in log(path)[:end] if entry.body.get("session_id") == session_id]


def snapshot(path: str) -> dict[str, list[Any]]:
    """Every row of every table."""
    tables = select(path, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    return {name: select(path, f'SELECT * FROM "{name}"') for (name,) in tables}


def tamper(path: str, sql: str, *values: Any) -> None:
    """Change the file behind the ledger's back: guards off, one statement, guards on again."""
    with closing(sqlite3.connect(path)) as connection:
        guards = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in guards:
            connection.execute(f'DROP TRIGGER "{name}"')
        changed = connection.execute(sql, values).rowcount
        for _, again in guards:
            connection.execute(again)
        connection.commit()
    assert changed > 0
