"""One tool call, however many channels see it: each leaves its own version of the request.

The versions say by their `src.via` who saw it, and by their digests whether the same was seen. Once
a call is finished nothing can be added to its request: a channel that late leaves no version. The
first who tells how a call ended is kept.
"""

from __future__ import annotations

from typing import Any

from affidavit.core.lifecycle import ORPHANED
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.observed import ToolCallDone


def see_request(
    ledger: Ledger,
    channel: str,
    request_id: str,
    call_id: str,
    *,
    started_at_ms: int,
    attributes: dict[str, Any],
    **said: Any,
) -> None:
    """Record a call as a channel sees it, once a channel; who saw it first has named it."""
    found = ledger.get_tool_call(request_id, call_id)
    if found is None:
        ledger.request_tool_call(
            request_id,
            call_id,
            started_at_ms=started_at_ms,
            attributes=attributes,
            **said,
        )
        return
    if has_seen(ledger, channel, request_id, call_id):
        return
    first, _ = found
    ledger.request_tool_call(
        request_id,
        call_id,
        parent_id=first.parent_id,
        vendor=first.vendor,
        tool_name=first.tool_name,
        arguments=said.get("arguments"),
        started_at_ms=first.started_at_ms,
        session_id=first.session_id,
        actor=first.actor,
        model=first.model,
        attributes={
            **(first.attributes or {}),
            channel: {**attributes, "started_at_ms": started_at_ms},
        },
    )


def has_seen(ledger: Ledger, channel: str, request_id: str, call_id: str) -> bool:
    """Whether a channel has nothing to add to a request: it saw it, or the call is over."""
    found = ledger.get_tool_call(request_id, call_id)
    if found is None:
        return False
    return found[1] is not None or channel in channels_of(ledger, request_id, call_id)


def has_ended(done: ToolCallDone | None) -> bool:
    """Whether a call has its end; one that was given up still waits for the real one."""
    return done is not None and (done.error_kind != ORPHANED or done.late is not None)


def channels_of(ledger: Ledger, request_id: str, call_id: str) -> tuple[str, ...]:
    """Who saw a call asked for, the first first."""
    seen = [
        ledger.list_entries(after=version.index - 1, limit=1, text_bytes_max=1)[0].via
        for version in ledger.tool_call_history(request_id, call_id)
        if version.status == "requested"
    ]
    return tuple(dict.fromkeys(via for via in seen if via is not None))
