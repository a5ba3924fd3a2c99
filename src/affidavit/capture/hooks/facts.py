"""The events of Claude Code's hooks as facts.

Recording an event twice is recording it once: every id follows from the event. What an event says
is written by others: names are made to fit, texts are kept, an event of an unknown kind is a note.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from affidavit.capture.claude_names import (
    MCP_SOURCE,
    SOURCE,
    VENDOR,
    request_id_of,
    turn_id_of,
)
from affidavit.capture.hooks.edits import diffs_of
from affidavit.core.names import NAME_BYTES_MAX, PAYLOAD_BYTES_MAX
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Session

CHANNEL: Final = "hook"
# An event that only asks whether events get through.
PROBE: Final = "AffidavitProbe"
# What an MCP server of ours records itself.
OWN_TOOLS: Final = "mcp__affidavit__"
# Those whose answer names the session they wrote into.
_TOOLS_OF_SESSIONS: Final = frozenset(("audit_session_start", "thought_record"))

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_NOTE_BYTES_MAX: Final = 4_000
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


class Event(NamedTuple):
    """One event: its own name in the spool, when it came, where the project is, what it says."""

    id: str
    at_ms: int
    root: str
    says: dict[str, Any]

    @property
    def name(self) -> str:
        """Which kind of event it is."""
        return name_of(self.says.get("hook_event_name")) or "(without a name)"

    @property
    def run(self) -> str | None:
        """What the client calls the session."""
        return name_of(self.says.get("session_id"))

    @property
    def tool(self) -> str:
        """Which tool it is about."""
        return name_of(self.says.get("tool_name")) or "(without a name)"

    @property
    def call_id(self) -> str:
        """What the client calls the tool call; where it does not, the call's own words do."""
        given = name_of(self.says.get("tool_use_id"))
        return given or f"unnamed-{_digest(self.run, self.tool, self.says.get('tool_input'))[:32]}"


def name_of(value: Any) -> str | None:
    """A text as a name of the ledger; None where there is none."""
    if not isinstance(value, str) or not value:
        return None
    plain = _CONTROL.sub("\ufffd", value).encode("utf-8", "replace")
    if len(plain) <= NAME_BYTES_MAX:
        return plain.decode()
    return f"{plain[:400].decode('utf-8', 'ignore')}~{hashlib.sha256(plain).hexdigest()}"


def text_of(value: Any, bytes_max: int = PAYLOAD_BYTES_MAX) -> str:
    """Anything as a text that can be kept."""
    text = value if isinstance(value, str) else json.dumps(value)
    plain = text.replace("\x00", "\ufffd").encode("utf-8", "replace")
    if len(plain) > bytes_max:
        plain = plain[: bytes_max - 100]
        return plain.decode("utf-8", "ignore") + f"\n[cut; it had {len(text)} characters]"
    return plain.decode()


def json_of(value: Any) -> str | None:
    """A value as JSON text; one that is too large is told by its digest."""
    if value is None:
        return None
    text = json.dumps(value)
    # What is kept of it may be longer: characters may take more bytes than their escapes have.
    if len(text) * 2 <= PAYLOAD_BYTES_MAX:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"too_large": True, "bytes": len(text), "sha256": digest})


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def record(ledger: Ledger, event: Event, cleared: str | None = None) -> None:
    """Record what an event says; `cleared` is the run that it goes on from, with a new id."""
    if event.name == PROBE:
        return
    if event.tool.startswith(OWN_TOOLS):
        _link_own(ledger, event)
        return
    if cleared is not None:
        _carry_over(ledger, event, cleared)
    _RECORD.get(event.name, _note)(ledger, event)


def _link_own(ledger: Ledger, event: Event) -> None:
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


def _carry_over(ledger: Ledger, event: Event, cleared: str) -> None:
    before = ledger.find_linked(SOURCE, cleared)
    if before is not None and before.state == "open" and event.run is not None:
        ledger.link_session(before.session_id, SOURCE, event.run)


def _enter(ledger: Ledger, event: Event) -> Session | None:
    """The session an event belongs to; begun by whichever event comes first."""
    if event.run is None:
        return None
    where = name_of(event.root.rstrip("/").rpartition("/")[2])
    session = ledger.enter_session(
        SOURCE,
        event.run,
        intent=f"Claude Code in {where or 'a folder'}",
        caller=SOURCE,
        project=where,
        model=name_of(event.says.get("model")),
    )
    ledger.start_capture(CHANNEL, SOURCE, session_id=session.session_id)
    return session


def _end(ledger: Ledger, event: Event) -> None:
    """The client's session ended; after `/clear` the run goes on under another id."""
    session = None if event.run is None else ledger.find_linked(SOURCE, event.run)
    if session is None or session.state != "open":
        return
    _note(ledger, event)
    if event.says.get("reason") == "clear":
        return
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
    session = _enter(ledger, event)
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


def _request(ledger: Ledger, event: Event) -> None:
    request_id = request_id_of(event.call_id)
    if ledger.get_tool_call(request_id, event.call_id) is not None:
        return
    session = _enter(ledger, event)
    session_id = None if session is None else session.session_id
    arguments = event.says.get("tool_input")
    known = {key: event.says.get(key) for key in ("agent_id", "permission_mode")}
    ledger.request_tool_call(
        request_id,
        event.call_id,
        vendor=VENDOR,
        tool_name=event.tool,
        arguments=json_of({} if arguments is None else arguments),
        started_at_ms=event.at_ms,
        session_id=session_id,
        actor=name_of(event.says.get("agent_type")) or SOURCE,
        attributes=json_of({key: value for key, value in known.items() if value is not None}),
    )
    diffs = json_of(diffs_of(event.tool, arguments))
    if diffs is not None:
        ledger.create_proposal(request_id, diffs, session_id=session_id)


def _complete(ledger: Ledger, event: Event) -> None:
    _request(ledger, event)
    name = request_id_of(event.call_id), event.call_id
    _answer_asked(ledger, event, "approved")
    if not _is_finished(ledger, name):
        ledger.finish_tool_call(
            *name,
            "completed",
            outcome=json_of(event.says.get("tool_response")),
            ended_at_ms=event.at_ms,
        )
    proposal = ledger.get_proposal(name[0])
    if proposal is not None and proposal.status == "pending":
        ledger.decide_proposal(name[0], "approved", SOURCE, decided_at_ms=event.at_ms)
        ledger.apply_proposal(name[0], applied_at_ms=event.at_ms)


def _fail(ledger: Ledger, event: Event) -> None:
    interrupted = event.says.get("is_interrupt") is True
    if interrupted:
        _answer_asked(ledger, event, "denied")
    else:
        _answer_asked(ledger, event, "approved")
    _give_up(ledger, event, "interrupted" if interrupted else "tool_error", "error")


def _deny(ledger: Ledger, event: Event) -> None:
    _request(ledger, event)
    reason = event.says.get("reason")
    ledger.decide_call(
        request_id_of(event.call_id),
        event.call_id,
        "denied",
        SOURCE,
        None if not reason else text_of(reason, _NOTE_BYTES_MAX),
    )
    _give_up(ledger, event, "denied", "reason")


def _give_up(ledger: Ledger, event: Event, kind: str, key: str) -> None:
    _request(ledger, event)
    name = request_id_of(event.call_id), event.call_id
    said = event.says.get(key)
    if not _is_finished(ledger, name):
        ledger.finish_tool_call(
            *name,
            "failed",
            error_kind=kind,
            error_msg=text_of(said) if said else None,
            ended_at_ms=event.at_ms,
        )
    proposal = ledger.get_proposal(name[0])
    if proposal is not None and proposal.status == "pending":
        ledger.decide_proposal(name[0], "denied", SOURCE, kind, event.at_ms)


def _is_finished(ledger: Ledger, name: tuple[str, str]) -> bool:
    found = ledger.get_tool_call(*name)
    return found is not None and found[1] is not None


def _asked_id(event: Event) -> str:
    """The question about a call, which names the call only by its words."""
    return turn_id_of(f"asked {_digest(event.run, event.tool, event.says.get('tool_input'))}")


def _ask(ledger: Ledger, event: Event) -> None:
    """The user is asked for permission; what becomes of the call will tell the answer."""
    id_, message_id = _asked_id(event), turn_id_of(f"hook {event.id}")
    before = ledger.get_turn(id_)
    if before is not None and before.message_id == message_id:
        return
    session = _enter(ledger, event)
    ledger.upsert_turn(
        id_,
        message_id,
        "sysinfo",
        f"PermissionRequest: {event.tool}",
        occurred_at_ms=event.at_ms,
        session_id=None if session is None else session.session_id,
        attributes=json_of({"event": event.name, "waits": True}),
    )


def _answer_asked(ledger: Ledger, event: Event, decision: str) -> None:
    _request(ledger, event)
    asked = ledger.get_turn(_asked_id(event))
    if asked is None or not (asked.attributes or {}).get("waits"):
        return
    name = request_id_of(event.call_id), event.call_id
    ledger.decide_call(*name, decision, "user")
    session = asked.session_id and ledger.get_session(asked.session_id)
    if session and session.state != "open":
        return
    ledger.upsert_turn(
        asked.id,
        asked.message_id,
        "sysinfo",
        asked.content or "PermissionRequest",
        occurred_at_ms=asked.occurred_at_ms,
        session_id=asked.session_id,
        attributes=json_of({"event": "PermissionRequest", "call_id": event.call_id}),
    )


_RECORD: Final[dict[str, Callable[[Ledger, Event], None]]] = {
    "SessionEnd": _end,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _request,
    "PermissionRequest": _ask,
    "PermissionDenied": _deny,
    "PostToolUse": _complete,
    "PostToolUseFailure": _fail,
    "SubagentStop": _reply,
    "Stop": _reply,
}
