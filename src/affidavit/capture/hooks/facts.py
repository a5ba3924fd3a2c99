"""The events of Claude Code's hooks as facts.

Recording an event twice is recording it once: every id follows from the event. What an event says
is written by others: names are made to fit, texts are kept, an event of an unknown kind is a note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from affidavit.capture.claude_names import OWN_TOOLS, SOURCE, turn_id_of
from affidavit.capture.hooks import calls
from affidavit.capture.hooks.event import Event, json_of, name_of, text_of
from affidavit.capture.hooks.runs import CHANNEL, carry_over, enter, link_own
from affidavit.ledger.ledger import Ledger

# An event that only asks whether events get through.
PROBE: Final = "AffidavitProbe"
# Keys that stand elsewhere, or are a tool's own text, which the setting `payloads` is about.
_ELSEWHERE: Final = frozenset(
    (
        "session_id",
        "hook_event_name",
        "prompt",
        "last_assistant_message",
        "tool_input",
        "tool_response",
        "tool_calls",
        "permission_suggestions",
    )
)


def record(ledger: Ledger, event: Event, cleared: str | None = None) -> None:
    """Record what an event says; `cleared` is the run that it goes on from, with a new id."""
    if event.name == PROBE:
        return
    if event.tool.startswith(OWN_TOOLS):
        link_own(ledger, event)
        return
    if cleared is not None:
        carry_over(ledger, event, cleared)
    _RECORD.get(event.name, _note)(ledger, event)


def _end(ledger: Ledger, event: Event) -> None:
    """The client's session ended; after `/clear` the run goes on under another id."""
    session = None if event.run is None else ledger.find_linked(SOURCE, event.run)
    if session is None or session.state != "open":
        return
    _note(ledger, event)
    if event.says.get("reason") == "clear":
        return
    calls.end_turn(ledger, event, session.session_id)
    entries = ledger.list_entries(session_id=session.session_id)
    ledger.stop_capture(
        CHANNEL,
        SOURCE,
        session_id=session.session_id,
        count=sum(entry.via == CHANNEL for entry in entries),
    )
    ledger.end_session(session.session_id)


def _say(ledger: Ledger, event: Event, kind: str, content: Any, actor: str | None = None) -> None:
    id_ = turn_id_of(f"hook {event.id}")
    if ledger.get_turn(id_) is not None:
        return
    session = enter(ledger, event)
    more = {key: value for key, value in event.says.items() if key not in _ELSEWHERE}
    ledger.upsert_turn(
        id_,
        id_,
        kind,
        text_of(content),
        thread_id=name_of(event.says.get("agent_id")),
        occurred_at_ms=event.at_ms,
        session_id=None if session is None else session.session_id,
        actor=actor,
        attributes=json_of({**more, "event": event.name}),
    )


def _prompt(ledger: Ledger, event: Event) -> None:
    _say(ledger, event, "user", event.says.get("prompt", ""), "user")


def _reply(ledger: Ledger, event: Event) -> None:
    said = event.says.get("last_assistant_message")
    if said:
        actor = name_of(event.says.get("agent_type")) or SOURCE
        _say(ledger, event, "assistant", said, actor)
    else:
        _note(ledger, event)


_TOLD: Final = ("message", "error", "reason", "trigger", "source", "agent_type", "task_subject")


def _note(ledger: Ledger, event: Event) -> None:
    told = next((said for key in _TOLD if (said := event.says.get(key))), None)
    _say(ledger, event, "sysinfo", event.name if told is None else f"{event.name}: {text_of(told)}")


def _stop(ledger: Ledger, event: Event) -> None:
    """A turn is over, of the agent or of a subagent: what it said last, and what it left open."""
    _reply(ledger, event)
    session = None if event.run is None else ledger.find_linked(SOURCE, event.run)
    if session is not None and session.state == "open":
        calls.end_turn(ledger, event, session.session_id)


_RECORD: Final[dict[str, Callable[[Ledger, Event], None]]] = {
    "SessionEnd": _end,
    "UserPromptSubmit": _prompt,
    "PreToolUse": calls.request,
    "PermissionRequest": calls.ask,
    "PermissionDenied": calls.deny,
    "PostToolUse": calls.complete,
    "PostToolUseFailure": calls.fail,
    "PostToolBatch": calls.end_batch,
    "SubagentStop": _stop,
    "Stop": _stop,
}
