"""Tool calls as hooks tell of them: asked for, allowed or not, how they ended, what they edit.

What ran ends with `PostToolUse` or `PostToolUseFailure`. What never ran has neither: a refusal, a
call that was not valid, is told by the batch it was in, and what a user stopped by nothing at all;
its turn ends without it. Who allowed a call is inferred: the user, where the user was asked.
"""

from __future__ import annotations

from typing import Any, Final

from affidavit.capture.claude_names import OWN_TOOLS, SOURCE, VENDOR, request_id_of, turn_id_of
from affidavit.capture.edits import propose, settle
from affidavit.capture.hooks.event import Event, json_of, name_of, text_of
from affidavit.capture.hooks.runs import CHANNEL, enter
from affidavit.capture.sightings import has_ended, has_seen, see_request
from affidavit.core.lifecycle import ORPHANED
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.observed import ToolCallRequest
from affidavit.ledger.payloads import ready_json

_REASON_BYTES_MAX: Final = 4_000
# How the answer of a call begins that was not valid, or that the user did not allow.
_INVALID: Final = "<tool_use_error>"
_REFUSED_BY_USER: Final = "The user doesn't want"
_LOOK_BACK_MAX: Final = 50
_OPEN_MAX: Final = 500


def request(ledger: Ledger, event: Event) -> None:
    """A tool is called; what another channel saw of the same call stands beside it."""
    request_id = request_id_of(event.call_id)
    if has_seen(ledger, CHANNEL, request_id, event.call_id):
        return
    session = enter(ledger, event)
    session_id = None if session is None else session.session_id
    arguments = event.says.get("tool_input")
    known = {key: event.says.get(key) for key in ("agent_id", "permission_mode")}
    see_request(
        ledger,
        CHANNEL,
        request_id,
        event.call_id,
        vendor=VENDOR,
        tool_name=event.tool,
        arguments=json_of({} if arguments is None else arguments),
        started_at_ms=event.at_ms,
        session_id=session_id,
        actor=name_of(event.says.get("agent_type")) or SOURCE,
        attributes={key: value for key, value in known.items() if value is not None},
    )
    propose(ledger, request_id, event.tool, arguments, session_id)


def _ensure(ledger: Ledger, event: Event) -> tuple[str, str]:
    """The name of a call that is there, whether or not its beginning was heard."""
    name = request_id_of(event.call_id), event.call_id
    if ledger.get_tool_call(*name) is None:
        request(ledger, event)
    return name


def complete(ledger: Ledger, event: Event) -> None:
    """A call is done; an edit is in its file."""
    name = _ensure(ledger, event)
    _answer_asked(ledger, event, "approved")
    if not _is_finished(ledger, name):
        ledger.finish_tool_call(
            *name,
            "completed",
            outcome=json_of(event.says.get("tool_response")),
            ended_at_ms=event.at_ms,
        )
    settle(ledger, name[0], SOURCE, event.at_ms, None)


def fail(ledger: Ledger, event: Event) -> None:
    """A call failed, or was stopped."""
    interrupted = event.says.get("is_interrupt") is True
    _answer_asked(ledger, event, "denied" if interrupted else "approved")
    _give_up(ledger, event, "interrupted" if interrupted else "tool_error", event.says.get("error"))


def deny(ledger: Ledger, event: Event) -> None:
    """The client refused a call by itself."""
    _deny(ledger, event, SOURCE, event.says.get("reason"))


def _deny(ledger: Ledger, event: Event, by: str, reason: Any) -> None:
    name = _ensure(ledger, event)
    said = text_of(reason, _REASON_BYTES_MAX) if reason else None
    if not _is_finished(ledger, name):
        ledger.decide_call(*name, "denied", by, said)
    _give_up(ledger, event, "denied", reason)


def _give_up(ledger: Ledger, event: Event, kind: str, said: Any) -> None:
    name = _ensure(ledger, event)
    if not _is_finished(ledger, name):
        ledger.finish_tool_call(
            *name,
            "failed",
            error_kind=kind,
            error_msg=text_of(said) if said else None,
            ended_at_ms=event.at_ms,
        )
    settle(ledger, name[0], SOURCE, event.at_ms, kind)


def _is_finished(ledger: Ledger, name: tuple[str, str]) -> bool:
    found = ledger.get_tool_call(*name)
    return found is not None and has_ended(found[1])


def end_batch(ledger: Ledger, event: Event) -> None:
    """All calls of one message are answered: those that did not run are told here alone."""
    calls = event.says.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        one = event._replace(says={**event.says, **call})
        if one.tool.startswith(OWN_TOOLS) or not name_of(call.get("tool_use_id")):
            continue
        if not _is_finished(ledger, (request_id_of(one.call_id), one.call_id)):
            _refuse(ledger, one)


def _refuse(ledger: Ledger, event: Event) -> None:
    """A call did not run: it was not valid, or it was not allowed."""
    said = event.says.get("tool_response")
    words = text_of(said) if said is not None else ""
    if words.startswith(_INVALID):
        _give_up(ledger, event, "tool_error", words)
        return
    by_user = words.startswith(_REFUSED_BY_USER) or _is_asked(ledger, event)
    _deny(ledger, event, "user" if by_user else SOURCE, words)
    _settle_asked(ledger, event, "denied")


def end_turn(ledger: Ledger, event: Event, session_id: str) -> None:
    """What is not finished when its turn is over was stopped, and nobody tells how it ended."""
    whose = event.says.get("agent_id")
    is_over = event.name == "SessionEnd"
    for asked, _ in ledger.list_tool_calls(
        session_id=session_id, status="requested", until_ms=event.at_ms + 1, limit=_OPEN_MAX
    ):
        if not is_over and (asked.attributes or {}).get("agent_id") != whose:
            continue
        one = event._replace(
            says={**event.says, "tool_use_id": asked.call_id, "tool_name": asked.tool_name}
        )
        if _is_asked(ledger, one):
            _deny(ledger, one, "user", None)
            _settle_asked(ledger, one, "denied")
        else:
            _give_up(ledger, one, ORPHANED, "its turn ended, and nobody told how it ended")


def _asked_id(event: Event) -> str:
    return turn_id_of(f"asked {event.call_id}")


def ask(ledger: Ledger, event: Event) -> None:
    """The user is asked for permission; what becomes of the call will tell the answer."""
    message_id = turn_id_of(f"hook {event.id}")
    call = _find_asked(ledger, event, message_id)
    id_ = message_id if call is None else turn_id_of(f"asked {call.call_id}")
    if ledger.get_turn(id_) is not None:
        return
    session = enter(ledger, event)
    about = {"event": event.name, "call_id": None if call is None else call.call_id, "waits": True}
    ledger.upsert_turn(
        id_,
        message_id,
        "sysinfo",
        f"PermissionRequest: {event.tool}",
        occurred_at_ms=event.at_ms,
        session_id=None if session is None else session.session_id,
        attributes=json_of({key: value for key, value in about.items() if value is not None}),
    )


def _find_asked(ledger: Ledger, event: Event, message_id: str) -> ToolCallRequest | None:
    """The call a question is about: it names the tool and the arguments, never the call."""
    session = None if event.run is None else ledger.find_linked(SOURCE, event.run)
    if session is None:
        return None
    wanted = ready_json(json_of(event.says.get("tool_input")), "arguments", event.root)
    for call, _ in ledger.list_tool_calls(
        session_id=session.session_id,
        tool_name=event.tool,
        until_ms=event.at_ms + 1,
        limit=_LOOK_BACK_MAX,
    ):
        if wanted is None or call.args_sha256 != wanted.digest:
            continue
        turn = ledger.get_turn(turn_id_of(f"asked {call.call_id}"))
        if turn is None or turn.message_id == message_id:
            return call
    return None


def _is_asked(ledger: Ledger, event: Event) -> bool:
    """Whether the user was asked about a call, and no answer is known."""
    turn = ledger.get_turn(_asked_id(event))
    return turn is not None and bool((turn.attributes or {}).get("waits"))


def _answer_asked(ledger: Ledger, event: Event, decision: str) -> None:
    name = _ensure(ledger, event)
    if _is_asked(ledger, event):
        ledger.decide_call(*name, decision, "user")
        _settle_asked(ledger, event, decision)


def _settle_asked(ledger: Ledger, event: Event, decision: str) -> None:
    """The question is answered."""
    asked = ledger.get_turn(_asked_id(event))
    if asked is None or not (asked.attributes or {}).get("waits"):
        return
    session = asked.session_id and ledger.get_session(asked.session_id)
    if session and session.state != "open":
        return
    ledger.upsert_turn(
        asked.id,
        asked.message_id,
        "sysinfo",
        f"{asked.content or 'PermissionRequest'}, {decision}",
        occurred_at_ms=asked.occurred_at_ms,
        session_id=asked.session_id,
        attributes=json_of({"event": "PermissionRequest", "call_id": event.call_id}),
    )
