"""The session of a client's run: begun by its first event, ended by its last, carried over between.

A session that our own MCP server began for an agent is linked with the run it was called in.
"""

from __future__ import annotations

import json
from typing import Any, Final

from affidavit.capture.claude_names import MCP_SOURCE, OWN_TOOLS, SOURCE
from affidavit.capture.hooks.event import Event, name_of, project_of
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Session

CHANNEL: Final = "hook"
# Those whose answer names the session they wrote into.
_TOOLS_OF_SESSIONS: Final = frozenset(("audit_session_start", "thought_record"))


def link_own(ledger: Ledger, event: Event) -> None:
    """A session that our MCP server began belongs to the run in which its tools were called."""
    tool = event.tool.removeprefix(OWN_TOOLS)
    if event.run is None or event.name != "PostToolUse" or tool not in _TOOLS_OF_SESSIONS:
        return
    session = ledger.get_session(_session_in(event.says.get("tool_response")) or "none")
    if session is None or session.state != "open":
        return
    if all(link.external_id != event.run for link in ledger.list_links(session.session_id)):
        ledger.link_session(session.session_id, MCP_SOURCE, event.run)


def _session_in(answer: Any) -> str | None:
    """The session that an answer of ours names, in whichever form the client hands it on."""
    if isinstance(answer, str):
        try:
            return _session_in(json.loads(answer)) if answer.startswith(("{", "[")) else None
        except (ValueError, RecursionError):
            return None
    if isinstance(answer, list):
        return next(filter(None, map(_session_in, answer[:8])), None)
    if not isinstance(answer, dict):
        return None
    if "session_id" in answer:
        return name_of(answer["session_id"])
    inner = ("structuredContent", "content", "data", "text")
    return next(filter(None, (_session_in(answer.get(key)) for key in inner)), None)


def carry_over(ledger: Ledger, event: Event, cleared: str) -> None:
    """The run goes on under a new id; what it was called before is `cleared`."""
    before = ledger.find_linked(SOURCE, cleared)
    if before is not None and before.state == "open" and event.run is not None:
        ledger.link_session(before.session_id, SOURCE, event.run)


def enter_run(ledger: Ledger, run: str, root: str, model: str | None = None) -> Session:
    """The session of a run; begun by whichever channel comes first."""
    project = project_of(root)
    return ledger.enter_session(
        SOURCE,
        run,
        intent=f"Claude Code in {project or 'a folder'}",
        caller=SOURCE,
        project=project,
        model=model,
    )


def enter(ledger: Ledger, event: Event) -> Session | None:
    """The session an event belongs to; begun by whichever event comes first."""
    if event.run is None:
        return None
    session = enter_run(ledger, event.run, event.root, name_of(event.says.get("model")))
    ledger.start_capture(CHANNEL, SOURCE, session_id=session.session_id)
    return session
