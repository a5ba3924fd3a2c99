"""Code-edit proposals: pending, then approved or denied, applied, reverted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from affidavit.core.entry import Source
from affidavit.core.lifecycle import PROPOSAL_MOVES
from affidavit.core.views.proposals import ProposalRow
from affidavit.errors import ConflictError
from affidavit.ledger.observed import (
    ApplyProposal,
    CreateProposal,
    DecideProposal,
    ListProposals,
    Proposal,
    RevertProposal,
    proposal,
    share_text,
)
from affidavit.ledger.payloads import Ready, fill, is_same_text, ready_text, stored
from affidavit.ledger.ports import Listing, Reader, Writer
from affidavit.ledger.versions import (
    PROPOSALS,
    append_version,
    check_session,
    find_place,
    invalid_lifecycle,
    session_if_open,
)

_ORDER: Final = ("created_at_ms", "created_index")
_US_PER_MS: Final = 1_000


def create_proposal(
    tx: Writer, given: CreateProposal, diffs: Ready, new_salt: Callable[[], bytes], src: Source
) -> ProposalRow:
    """Record a proposal; the same again writes nothing, one with other diffs is refused."""
    before: ProposalRow | None = tx.find_version(PROPOSALS, (given.request_id,), None)
    confidence, diffs = share_text(given.confidence), stored(tx, diffs)
    if before is not None:
        created = tx.version_at(PROPOSALS, before.created_index)
        if (
            is_same_text(tx, created, "diffs", diffs)
            and created.confidence == confidence
            and created.session_id == given.session_id
        ):
            return before
        raise _refuse(given.request_id, before.status, "pending")
    check_session(tx, given.session_id)
    filled = fill(tx, {"diffs": diffs}, new_salt)
    body = {
        "request_id": given.request_id,
        "confidence": confidence,
        "session_id": given.session_id,
        **filled.body,
    }
    return _append(tx, "created", body, filled.payloads, None, src)


def _append(
    tx: Writer,
    move: str,
    body: dict[str, Any],
    payloads: Any,
    before: ProposalRow | None,
    src: Source,
) -> ProposalRow:
    row: ProposalRow = append_version(
        tx, PROPOSALS, f"proposal.{move}", body, payloads, before, src
    )
    return row


def _refuse(request_id: str, status: str | None, to: str) -> ConflictError:
    allowed = PROPOSAL_MOVES.get(status, ())
    hint = "Create it first: allowed now is pending." if status is None else ""
    if (status, to) == ("pending", "pending"):
        hint = "It was created with other diffs; give a changed proposal a request_id of its own."
    return invalid_lifecycle(f"proposal {request_id}", status, to, allowed, hint)


def decide_proposal(
    tx: Writer, given: DecideProposal, new_salt: Callable[[], bytes], src: Source
) -> ProposalRow:
    """Approve or deny a pending proposal; the same decision again writes nothing."""
    before = _existing(tx, given.request_id, given.decision)
    reason = stored(tx, ready_text(given.reason))
    if before.status not in PROPOSAL_MOVES or given.decision not in PROPOSAL_MOVES[before.status]:
        if before.status == given.decision and before.decided_by == given.by:
            decided = tx.version_at(PROPOSALS, before.log_index)
            if is_same_text(tx, decided, "reason", reason):
                return before
        raise _refuse(given.request_id, before.status, given.decision)
    filled = fill(tx, {"reason": reason}, new_salt)
    body = _body(tx, before, given.decided_at_ms) | filled.body
    body |= {"decision": given.decision, "by": given.by}
    return _append(tx, "decided", body, filled.payloads, before, src)


def move_proposal(tx: Writer, given: ApplyProposal | RevertProposal, src: Source) -> ProposalRow:
    """Record that a proposal was applied, or taken back; the same again writes nothing."""
    applies = isinstance(given, ApplyProposal)
    to = "applied" if applies else "reverted"
    at_ms = given.applied_at_ms if isinstance(given, ApplyProposal) else given.reverted_at_ms
    before = _existing(tx, given.request_id, to)
    if to not in PROPOSAL_MOVES.get(before.status, ()):
        known = before.commit_hash if applies else before.revert_commit_hash
        if before.status == to and known == given.commit_hash:
            return before
        raise _refuse(given.request_id, before.status, to)
    body = _body(tx, before, at_ms) | {"commit_hash": given.commit_hash}
    return _append(tx, to, body, {}, before, src)


def _existing(tx: Writer, request_id: str, to: str) -> ProposalRow:
    row: ProposalRow | None = tx.find_version(PROPOSALS, (request_id,), None)
    if row is None:
        raise _refuse(request_id, None, to)
    return row


def _body(tx: Writer, before: ProposalRow, at_ms: int | None) -> dict[str, Any]:
    created = tx.version_at(PROPOSALS, before.created_index)
    return {
        "request_id": before.request_id,
        "session_id": session_if_open(tx, created.session_id),
        "decision": None,
        "by": None,
        "reason": None,
        "commit_hash": None,
        "at_ms": tx.at // _US_PER_MS if at_ms is None else at_ms,
    }


def describe(reader: Reader, row: ProposalRow) -> Proposal:
    """A proposal as callers see it."""
    is_first = row.created_index == row.log_index
    created = row if is_first else reader.version_at(PROPOSALS, row.created_index)
    decided = row.decided_index
    return proposal(
        row, created, None if decided is None else reader.version_at(PROPOSALS, decided)
    )


def get_proposal(reader: Reader, request_id: str, moment: int | None) -> Proposal | None:
    """A proposal as it was."""
    row: ProposalRow | None = reader.find_version(PROPOSALS, (request_id,), moment)
    return None if row is None else describe(reader, row)


def list_proposals(reader: Reader, wanted: ListProposals, moment: int | None) -> list[Proposal]:
    """Proposals by when they were created, the newest first."""
    listing = Listing(
        PROPOSALS,
        _ORDER,
        {} if wanted.status is None else {"status": wanted.status},
        wanted.limit,
        moment,
        since_ms=wanted.since_ms,
        after=find_place(reader, PROPOSALS, wanted.after, _ORDER),
    )
    return [describe(reader, row) for row in reader.list_versions(listing)]
