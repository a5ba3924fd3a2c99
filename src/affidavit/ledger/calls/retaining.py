"""Keeping texts for a period; never a tool for agents."""

from __future__ import annotations

from typing import Any

from affidavit.ledger import retaining
from affidavit.ledger.calls.settings import Settings
from affidavit.ledger.inputs import REQUIRED, Retain, read_input
from affidavit.ledger.results import Overdue, Retained


class Retaining(Settings):
    """Calls about how long texts are kept."""

    def set_retention(
        self, kind: str = REQUIRED, days: int = REQUIRED, *, by: str | None = None
    ) -> Retained:
        """Keep texts of a kind (tool_call, turn, proposal) so many days; 0 keeps them for ever."""
        wanted = read_input(Retain, {"kind": kind, "days": days, "by": by})
        period: dict[str, Any] = {retaining.setting_of(wanted.kind): wanted.days}
        self.set(by=wanted.by, **period)
        return self.retain()

    def retain(self) -> Retained:
        """Erase every text that is older than its period allows."""
        return retaining.retain(self._context)

    def overdue(self) -> tuple[Overdue, ...]:
        """Which kinds have texts older than their period allows, and by how much."""
        return retaining.find_overdue(self._context)
