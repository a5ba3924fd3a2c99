"""The run of Claude Code that started a server: what it records belongs into that session."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from affidavit.capture.claude_names import SOURCE
from affidavit.capture.hooks.event import name_of
from affidavit.capture.hooks.own_calls import take_run
from affidavit.capture.hooks.runs import enter_run
from affidavit.ledger.ledger import Ledger


class RunOfClient(NamedTuple):
    """A client's run: what started the server, and the spool of its hooks, who know better."""

    name: str | None
    spool: Path
    project: str

    def session_for(self, ledger: Ledger, call_id: str | None) -> str | None:
        """The session that a call belongs to; begun where the hooks have not come so far."""
        told = None if call_id is None else take_run(self.spool, call_id)
        run = name_of(told) or name_of(self.name)
        if run is None:
            return None
        session = ledger.find_linked(SOURCE, run)
        if session is None or session.state != "open":
            session = enter_run(ledger, run, self.project)
        return session.session_id
