"""Looking at a ledger as a whole: its size, and two of its sessions beside each other."""

from __future__ import annotations

from affidavit.ledger import comparing, measuring
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, CompareSessions, read_input
from affidavit.ledger.results import Size, Step


class Inspecting(Handle):
    """Calls that compare and measure."""

    def size(self) -> Size:
        """What takes the space, and what a year at this rate will take."""
        return measuring.measure(self._context)

    def compare_sessions(self, session_id: str = REQUIRED, other_id: str = REQUIRED) -> list[Step]:
        """Two sessions step by step: `=` shared, `~` with other texts, `-` and `+` in one alone."""
        given = read_input(CompareSessions, {"session_id": session_id, "other_id": other_id})
        return self._read(
            lambda reader: comparing.compare(reader, given.session_id, given.other_id)
        )
