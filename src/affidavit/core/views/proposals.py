"""Rows of `code_edit_proposals`: every state a proposal was ever in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.lifecycle import PROPOSAL_MOVES
from affidavit.core.views.payload import Payload, payload_values
from affidavit.core.views.turns import US_PER_MS


class ProposalRow(NamedTuple):
    """A row of `code_edit_proposals`: the state after one entry.

    `created_index` says where the diffs are, `decided_index` where the reason of the decision is.
    """

    log_index: int
    request_id: str
    session_id: str | None
    diffs_json: str | None
    diffs_json_salt: bytes | None
    confidence: str | None
    status: str
    created_at_ms: int
    decided_at_ms: int | None
    decided_by: str | None
    reason: str | None
    reason_salt: bytes | None
    applied_at_ms: int | None
    commit_hash: str | None
    reverted_at_ms: int | None
    revert_commit_hash: str | None
    paths_outside: int
    created_index: int
    decided_index: int | None
    at: int
    superseded_by: int | None = None


def proposal_row(
    index: int, entry: Entry, payloads: Mapping[str, Payload], before: ProposalRow | None
) -> ProposalRow:
    """The row of a `proposal.*` entry, given the version before it."""
    texts: dict[str, Any] = payload_values(("diffs", "reason"), payloads)
    if before is None or entry.kind == "proposal.created":
        return _created(index, entry, texts)
    return before._replace(
        **texts,
        **_moved(index, entry),
        log_index=index,
        session_id=entry.body["session_id"],
        at=entry.at,
        superseded_by=None,
    )


def _created(index: int, entry: Entry, texts: dict[str, Any]) -> ProposalRow:
    body = entry.body
    return ProposalRow(
        **texts,
        log_index=index,
        request_id=body["request_id"],
        session_id=body["session_id"],
        confidence=body.get("confidence"),
        status="pending",
        created_at_ms=entry.at // US_PER_MS,
        decided_at_ms=None,
        decided_by=None,
        applied_at_ms=None,
        commit_hash=None,
        reverted_at_ms=None,
        revert_commit_hash=None,
        paths_outside=body.get("paths_outside", 0),
        created_index=index,
        decided_index=None,
        at=entry.at,
    )


def _moved(index: int, entry: Entry) -> dict[str, Any]:
    body = entry.body
    if entry.kind == "proposal.decided":
        return {
            "status": body["decision"],
            "decided_at_ms": body["at_ms"],
            "decided_by": body["by"],
            "decided_index": index,
        }
    if entry.kind == "proposal.applied":
        changes = ("applied", body["at_ms"], body["commit_hash"])
        return dict(zip(("status", "applied_at_ms", "commit_hash"), changes, strict=True))
    return {
        "status": "reverted",
        "reverted_at_ms": body["at_ms"],
        "revert_commit_hash": body["commit_hash"],
    }


def find_proposal_misfit(entry: Entry, before: ProposalRow | None) -> str | None:
    """Why an entry cannot follow this version of its proposal."""
    move = entry.kind.removeprefix("proposal.")
    to = {"created": "pending", "decided": entry.body.get("decision")}.get(move, move)
    status = None if before is None else before.status
    if to not in PROPOSAL_MOVES.get(status, ()):
        return f"a proposal went from {status or 'nothing'} to {to}"
    return None
