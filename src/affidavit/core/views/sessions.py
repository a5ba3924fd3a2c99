"""Rows of `sessions` and `seals`."""

from __future__ import annotations

from typing import NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.views.payload import Payload


class SessionRow(NamedTuple):
    """A row of `sessions`: how it started, and the three links set when it ended."""

    log_index: int
    session_id: str
    task_id: str | None
    caller: str | None
    intent: str | None
    intent_salt: bytes | None
    started_at: str
    genesis: str
    continues_session_id: str | None
    continues_chain_hash: str | None
    proof_grade: int
    project: str | None
    model: str | None
    at: int
    ended_index: int | None = None
    ended_at: str | None = None
    end_reason: str | None = None


class SealRow(NamedTuple):
    """A row of `seals`."""

    log_index: int
    session_id: str
    root: str
    record_count: int
    chain_hash: str
    closing_reflection: int
    entries_root: str
    entry_count: int
    finalized_at: str
    first_index: int
    last_index: int
    at: int


def session_row(index: int, entry: Entry, intent: Payload) -> SessionRow:
    """The row of `session.started`, before anything ended it."""
    body = entry.body
    continues = body["continues"] or {"session_id": None, "chain_hash": None}
    return SessionRow(
        log_index=index,
        session_id=body["session_id"],
        task_id=body["task_id"],
        caller=body["caller"],
        intent=intent.text,
        intent_salt=intent.salt,
        started_at=body["started_at"],
        genesis=body["genesis"],
        continues_session_id=continues["session_id"],
        continues_chain_hash=continues["chain_hash"],
        proof_grade=int(body["proof_grade"]),
        project=body["project"],
        model=body["model"],
        at=entry.at,
    )


def seal_row(index: int, entry: Entry) -> SealRow:
    """The row of `session.sealed`."""
    claims = {key: entry.body[key] for key in SealRow._fields[1:-1]}
    claims["closing_reflection"] = int(claims["closing_reflection"])
    return SealRow(log_index=index, at=entry.at, **claims)
