"""The run of Claude Code that started a server: what it records belongs into that session."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from affidavit.capture.claude_names import SOURCE
from affidavit.capture.hooks.event import name_of
from affidavit.capture.hooks.own_calls import take_run
from affidavit.ledger.ledger import Ledger

# Where Claude Code says which of its sessions starts a server, and which of its calls this is.
ENVIRONMENT: Final = "CLAUDE_CODE_SESSION_ID"
CALL_ID: Final = "claudecode/toolUseId"


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
            where = name_of(self.project.rstrip("/").rpartition("/")[2])
            session = ledger.enter_session(
                SOURCE,
                run,
                intent=f"Claude Code in {where or 'a folder'}",
                caller=SOURCE,
                project=where,
            )
        return session.session_id
