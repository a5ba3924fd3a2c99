"""What a proxy saw as facts: tool calls with their answers, in the session of the client's run.

A call that Claude Code's hooks tell of too has the name they give it: it is one call, and both
leave their version of its request. Recording an event twice is recording it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from affidavit.capture.claude_names import SOURCE, request_id_of
from affidavit.capture.hooks.event import Event, json_of, name_of, project_of, text_of
from affidavit.capture.hooks.runs import enter_run
from affidavit.capture.sightings import has_ended, has_seen, see_request
from affidavit.core.lifecycle import ORPHANED
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Session

CHANNEL: Final = "proxy"
# The source of a session that only a proxy saw; its external id is the proxy's own name.
PROXY: Final = "mcp-proxy"
_VENDOR: Final = "mcp"


def record(ledger: Ledger, event: Event) -> None:
    """Record what a proxy saw."""
    action = _RECORD.get(str(event.says.get("kind")))
    if action is not None:
        action(ledger, event)


def _name(event: Event) -> tuple[str, str]:
    told = name_of(event.says.get("tool_use_id"))
    said = (event.says.get(key) for key in ("proxy", "nth", "id"))
    call_id = told or " ".join(map(str, said))
    return request_id_of(call_id), name_of(call_id) or "unnamed"


def _at(event: Event) -> int:
    """When it passed; the spool has it a moment later."""
    told = event.says.get("at_ms")
    return told if isinstance(told, int) else event.at_ms


def _server(event: Event) -> str:
    return name_of(event.says.get("called")) or name_of(event.says.get("server")) or "unnamed"


def _home(event: Event) -> tuple[str, str]:
    """What the session of these calls is linked with: the client's run, else this proxy's."""
    run = event.run
    return (SOURCE, run) if run is not None else (PROXY, name_of(event.says.get("proxy")) or "one")


def _enter(ledger: Ledger, event: Event) -> Session:
    source, run = _home(event)
    if source == SOURCE:
        session = enter_run(ledger, run, event.root)
    else:
        session = ledger.enter_session(
            source,
            run,
            intent=f"Calls of {_server(event)}",
            caller=name_of(event.says.get("client")),
            project=project_of(event.root),
        )
    ledger.start_capture(CHANNEL, _server(event), session_id=session.session_id)
    return session


def _ask(ledger: Ledger, event: Event) -> None:
    name = _name(event)
    if has_seen(ledger, CHANNEL, *name):
        return
    session = _enter(ledger, event)
    arguments = event.says.get("arguments")
    tool = name_of(event.says.get("tool")) or "(without a name)"
    about = {"server": _server(event), "client": event.says.get("client")}
    see_request(
        ledger,
        CHANNEL,
        *name,
        vendor=_VENDOR,
        tool_name=name_of(f"mcp__{_server(event)}__{tool}"),
        arguments=json_of({} if arguments is None else arguments),
        started_at_ms=_at(event),
        session_id=session.session_id,
        actor=name_of(event.says.get("client")),
        attributes={key: value for key, value in about.items() if value is not None},
    )


def _answer(ledger: Ledger, event: Event) -> None:
    name = _name(event)
    found = ledger.get_tool_call(*name)
    if found is None or has_ended(found[1]):
        return
    told = _ending(event.says)
    if found[1] is None or told["error_kind"] != ORPHANED:
        ledger.finish_tool_call(*name, ended_at_ms=_at(event), **told)


def _ending(says: dict[str, Any]) -> dict[str, Any]:
    """How a call ended, as its answer says."""
    if "error" in says:
        return _failed("rpc_error", says["error"])
    if "result" not in says:
        return _failed(ORPHANED, "the connection ended before the answer")
    result = says["result"]
    if isinstance(result, dict) and result.get("isError") is True:
        return _failed("tool_error", _words(result.get("content")))
    return {"status": "completed", "outcome": json_of(result), "error_kind": None}


def _failed(kind: str, said: Any) -> dict[str, Any]:
    return {"status": "failed", "error_kind": kind, "error_msg": text_of(said) if said else None}


def _words(content: Any) -> Any:
    blocks = content if isinstance(content, list) else []
    texts = [one["text"] for one in blocks if isinstance(one, dict) and "text" in one]
    return "\n".join(map(str, texts)) or content


def _end(ledger: Ledger, event: Event) -> None:
    """The connection is over; a session that only this proxy saw is too."""
    source, run = _home(event)
    session = ledger.find_linked(source, run)
    if session is None:
        return
    if any(
        (one.channel, one.source) == (CHANNEL, _server(event))
        for one in ledger.list_captures(session.session_id)
    ):
        ledger.stop_capture(CHANNEL, _server(event), session_id=session.session_id)
    if source == PROXY and session.state == "open":
        ledger.end_session(session.session_id)


def _lose(ledger: Ledger, event: Event) -> None:
    count, since = event.says.get("count"), event.says.get("from_ms")
    if isinstance(count, int) and isinstance(since, int):
        ledger.note_dropped(CHANNEL, count, min(since, _at(event)), _at(event))


_RECORD: Final[dict[str, Callable[[Ledger, Event], None]]] = {
    "asked": _ask,
    "answered": _answer,
    "ended": _end,
    "lost": _lose,
}
