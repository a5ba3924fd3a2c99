"""The gate: an agent's stop is refused while the session has no closing reflection.

Refused at most once a turn, and never while background work runs. A gate that fails to judge lets
go; both are told to the ledger like any other event.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

from affidavit.apps import wiring
from affidavit.apps.hook_drain import drain
from affidavit.capture.claude_names import MCP_SOURCE, SOURCE
from affidavit.capture.hooks.spool import Spool
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Session

_WAIT_S: Final = 5.0
_LOOK_S: Final = 0.05
_OVER: Final = frozenset(("completed", "failed", "killed", "stopped", "cancelled"))


def find_refusal(ledger: str, spool: Spool, says: dict[str, Any]) -> str | None:
    """Why the agent may not stop now; None where it may. What came in before is in the ledger."""
    if says.get("stop_hook_active") or _has_background(says):
        return None
    _wait_for_spool(ledger, spool)
    with wiring.open_ledger(ledger, readonly=True) as opened:
        session = opened.find_linked(SOURCE, run := str(says["session_id"]))
        if session is None:
            raise LookupError("the run has no session in the ledger")
        if session.state != "open" or _has_subagents(opened, session):
            return None
        missing = _find_missing(opened, session, run)
        turn = _turn_of(opened, session)
    if missing is None or not spool.claim_once(f"gate-{session.session_id}", turn):
        return None
    return missing


def tell(spool: Spool, says: dict[str, Any], name: str, why: str) -> None:
    """Have the ledger know what the gate did."""
    event = {"hook_event_name": name, "session_id": says.get("session_id"), "reason": why}
    spool.put(b"{}", json.dumps(event).encode())


def _has_background(says: dict[str, Any]) -> bool:
    tasks = says.get("background_tasks")
    return isinstance(tasks, list) and any(
        not isinstance(task, dict) or task.get("status") not in _OVER for task in tasks
    )


def _has_subagents(ledger: Ledger, session: Session) -> bool:
    """Whether a subagent was seen to start and not to stop."""
    running: set[Any] = set()
    for turn in ledger.list_turns(session_id=session.session_id, limit=10_000):
        known = turn.attributes or {}
        if known.get("event") == "SubagentStart":
            running.add(known.get("agent_id"))
        elif known.get("event") == "SubagentStop":
            running.discard(known.get("agent_id"))
    return bool(running)


def _wait_for_spool(ledger: str, spool: Spool) -> None:
    until = time.monotonic() + _WAIT_S
    while spool.names() and drain(ledger, spool) is None:
        if time.monotonic() > until:
            raise TimeoutError(f"what came in before was not in the ledger after {_WAIT_S:.0f} s")
        time.sleep(_LOOK_S)


def _sessions_of(ledger: Ledger, session: Session, run: str) -> list[str]:
    """The run's session, and the one that the agent's own words went into."""
    told = ledger.find_linked(MCP_SOURCE, run)
    return [session.session_id, *(() if told is None else (told.session_id,))]


def _find_missing(ledger: Ledger, session: Session, run: str) -> str | None:
    """What the session lacks, in words that say how to mend it."""
    own = [
        thought
        for name in _sessions_of(ledger, session, run)
        for thought in ledger.list_thoughts(session_id=name)
    ]
    tasks = [session.task_id] if session.task_id else sorted({one.task_id for one in own})
    lacking = [task for task in tasks if not _is_closed(ledger, task)]
    if tasks and not lacking:
        return None
    of = f" of task {lacking[0]!r}" if lacking else ""
    session_id = _sessions_of(ledger, session, run)[-1]
    task_id = json.dumps(lacking[0]) if lacking else "the id of your task"
    return (
        f"The record of this session has no closing reflection{of}. Call thought_record of the MCP "
        f'server affidavit with type "reflection", session_id "{session_id}", '
        f"task_id {task_id}: say what was done, what was checked and what is left open. Then stop."
    )


def _is_closed(ledger: Ledger, task_id: str) -> bool:
    newest = ledger.list_thoughts(task_id=task_id)[-1:]
    return bool(newest) and newest[0].type == "reflection"


def _turn_of(ledger: Ledger, session: Session) -> str:
    """The user's newest prompt: what the agent does until the next one is a turn."""
    turns = ledger.list_turns(session_id=session.session_id, limit=10_000, newest_first=True)
    return next((turn.id for turn in turns if turn.kind == "user"), "before any prompt")
