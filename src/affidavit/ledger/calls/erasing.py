"""Erasing what somebody wrote; never a tool for agents."""

from __future__ import annotations

from affidavit.ledger import erasing, keys
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, Erase, read_id, read_input
from affidavit.ledger.results import Erasure, ErasurePlan


class Erasing(Handle):
    """Calls that take texts away and leave the facts."""

    def plan_erasure(
        self,
        *,
        session_id: str | None = None,
        record_id: str | None = None,
        turn_id: str | None = None,
        matching: str | None = None,
    ) -> ErasurePlan:
        """What `erase` would take away; nothing is changed."""
        wanted = _read_wish(
            session_id=session_id, record_id=record_id, turn_id=turn_id, matching=matching
        )
        return self._read(
            lambda reader: erasing.plan(
                reader, erasing.find_targets(reader, wanted), wanted.matching
            )
        )

    def erase(
        self,
        *,
        by: str = REQUIRED,
        session_id: str | None = None,
        record_id: str | None = None,
        turn_id: str | None = None,
        matching: str | None = None,
        reason: str | None = None,
    ) -> Erasure:
        """Erase the texts of a session, record or turn, or all that hold some words, for good."""
        said_by = read_id(by, "by")
        wanted = _read_wish(
            by=said_by,
            session_id=session_id,
            record_id=record_id,
            turn_id=turn_id,
            matching=matching,
            reason=reason,
        )
        said = keys.said(self._context, said_by, wanted.reason)
        return erasing.erase(self._context, wanted, said)

    def has_unfinished_erasures(self) -> bool:
        """Whether erased texts are in this file, still or again, as in a restored backup.

        A writer takes them out when it opens the ledger.
        """
        return erasing.is_unfinished(self._context)


def _read_wish(**given: str | None) -> Erase:
    wanted = read_input(Erase, given)
    erasing.check_wish(wanted)
    return wanted
