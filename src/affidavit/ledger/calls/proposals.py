"""Recording and reading code-edit proposals."""

from __future__ import annotations

from typing import Any

from affidavit.errors import invalid
from affidavit.ledger import proposals
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, read_input
from affidavit.ledger.observed import (
    ApplyProposal,
    CreateProposal,
    DecideProposal,
    ListProposals,
    Proposal,
    RevertProposal,
    read_uuid,
    read_uuids,
)
from affidavit.ledger.payloads import ready_json


class Proposals(Handle):
    """Calls about proposals."""

    def create_proposal(
        self,
        request_id: Any = REQUIRED,
        diffs: Any = REQUIRED,
        confidence: float | None = None,
        session_id: str | None = None,
    ) -> Proposal:
        """Record a change of code somebody proposes; it is pending."""
        fields = {
            "request_id": request_id,
            "diffs": diffs,
            "confidence": confidence,
            "session_id": session_id,
        }
        given = read_input(CreateProposal, read_uuids(fields, "request_id"))
        context = self._context
        text = ready_json(given.diffs, "diffs", context.project_root)
        if text is None:
            raise invalid("diffs", "is missing")
        return self._commit(
            lambda tx: proposals.describe(
                tx, proposals.create_proposal(tx, given, text, context.new_salt, context.src)
            )
        )

    def decide_proposal(
        self,
        request_id: Any = REQUIRED,
        decision: str = REQUIRED,
        by: str = REQUIRED,
        reason: str | None = None,
        decided_at_ms: int | None = None,
    ) -> Proposal:
        """Approve or deny a pending proposal."""
        fields = {
            "request_id": request_id,
            "decision": decision,
            "by": by,
            "reason": reason,
            "decided_at_ms": decided_at_ms,
        }
        given = read_input(DecideProposal, read_uuids(fields, "request_id"))
        context = self._context
        return self._commit(
            lambda tx: proposals.describe(
                tx, proposals.decide_proposal(tx, given, context.new_salt, context.src)
            )
        )

    def apply_proposal(
        self,
        request_id: Any = REQUIRED,
        commit_hash: str | None = None,
        applied_at_ms: int | None = None,
    ) -> Proposal:
        """Record that an approved proposal was applied."""
        fields = {
            "request_id": request_id,
            "commit_hash": commit_hash,
            "applied_at_ms": applied_at_ms,
        }
        return self._move(read_input(ApplyProposal, read_uuids(fields, "request_id")))

    def revert_proposal(
        self,
        request_id: Any = REQUIRED,
        commit_hash: str | None = None,
        reverted_at_ms: int | None = None,
    ) -> Proposal:
        """Record that an applied proposal was taken back."""
        fields = {
            "request_id": request_id,
            "commit_hash": commit_hash,
            "reverted_at_ms": reverted_at_ms,
        }
        return self._move(read_input(RevertProposal, read_uuids(fields, "request_id")))

    def _move(self, given: ApplyProposal | RevertProposal) -> Proposal:
        src = self._context.src
        return self._commit(
            lambda tx: proposals.describe(tx, proposals.move_proposal(tx, given, src))
        )

    def get_proposal(
        self, request_id: Any = REQUIRED, as_of: Any = None, *, as_of_index: int | None = None
    ) -> Proposal | None:
        """A proposal by its request id, as it is or was; None where there is none."""
        name = read_uuid(request_id, "request_id")
        return self._read_at(
            as_of, as_of_index, lambda reader, moment: proposals.get_proposal(reader, name, moment)
        )

    def list_proposals(
        self,
        status: str | None = None,
        since_ms: int | None = None,
        limit: int = 100,
        after: int | None = None,
        as_of: Any = None,
        *,
        as_of_index: int | None = None,
    ) -> list[Proposal]:
        """Proposals, the newest first; `after` is an index of the last one seen."""
        wanted = read_input(
            ListProposals,
            {"status": status, "since_ms": since_ms, "limit": limit, "after": after},
        )
        return self._read_at(
            as_of,
            as_of_index,
            lambda reader, moment: proposals.list_proposals(reader, wanted, moment),
        )
