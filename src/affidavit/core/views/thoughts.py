"""Rows of `thought_records`."""

from __future__ import annotations

from typing import NamedTuple

from affidavit.core.entry import Entry


class ThoughtRow(NamedTuple):
    """A row of `thought_records`; the session columns are null for a record bound to no session."""

    log_index: int
    id: str
    type: str
    task_id: str
    agent_id: str
    content: str
    timestamp: str
    prev_hash: str
    hash: str
    created_at: str
    session_id: str | None
    session_seq: int | None
    content_hash: str | None
    chain_hash: str | None
    parent_chain_hash: str | None
    at: int
    erased_at: str | None = None


def thought_row(index: int, entry: Entry, content: str) -> ThoughtRow:
    """The row of `thought.recorded`."""
    body = entry.body
    return ThoughtRow(
        log_index=index,
        content=content,
        created_at=body["timestamp"],
        at=entry.at,
        **{key: body[key] for key in _THOUGHT_KEYS},
    )


_THOUGHT_KEYS = [
    "id",
    "type",
    "task_id",
    "agent_id",
    "timestamp",
    "prev_hash",
    "hash",
    "session_id",
    "session_seq",
    "content_hash",
    "chain_hash",
    "parent_chain_hash",
]
