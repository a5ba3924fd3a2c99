"""Rows of `tool_calls`, every version from the request to the result, and of `approvals`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.lifecycle import ORPHANED, TOOL_CALL_MOVES
from affidavit.core.views.payload import NO_PAYLOAD, Payload, payload_values
from affidavit.core.views.turns import usage_text


class ToolCallRow(NamedTuple):
    """A row of `tool_calls`: the state after one entry.

    A text stands only in the version that brought it; `requested_index` says where the arguments
    are. `late` marks a result that came after the call was given up: it stands aside.
    """

    log_index: int
    request_id: str
    call_id: str
    parent_id: str | None
    session_id: str | None
    vendor: str
    tool_name: str
    args_form: str
    args_sha256: str | None
    args_sha256_salt: bytes | None
    arguments_json: str | None
    arguments_json_salt: bytes | None
    status: str
    late: int
    started_at_ms: int
    ended_at_ms: int | None
    latency_ms: int | None
    outcome_form: str | None
    outcome_sha256: str | None
    outcome_sha256_salt: bytes | None
    outcome_json: str | None
    outcome_json_salt: bytes | None
    error_kind: str | None
    error_msg: str | None
    error_msg_salt: bytes | None
    usage: str | None
    actor: str | None
    model: str | None
    attributes_json: str | None
    attributes_json_salt: bytes | None
    paths_outside: int
    requested_index: int
    created_index: int
    at: int
    superseded_by: int | None = None


_TEXTS = ("args_sha256", "arguments", "outcome_sha256", "outcome", "error_msg", "attributes")
_REQUEST = (
    "request_id",
    "call_id",
    "parent_id",
    "session_id",
    "vendor",
    "tool_name",
    "args_form",
    "started_at_ms",
    "actor",
    "model",
)
_FINISH = ("status", "ended_at_ms", "latency_ms", "outcome_form", "error_kind")


def tool_call_row(
    index: int, entry: Entry, payloads: Mapping[str, Payload], before: ToolCallRow | None
) -> ToolCallRow:
    """The row of a `tool_call.*` entry, given the version before it."""
    body = entry.body
    texts: dict[str, Any] = payload_values(_TEXTS, payloads)
    outside = body.get("paths_outside", 0)
    if entry.kind != "tool_call.requested" and before is not None:
        late = entry.kind == "tool_call.late"
        return before._replace(
            **texts,
            **{name: body[name] for name in _FINISH},
            log_index=index,
            usage=usage_text(body["usage"]),
            late=int(late),
            paths_outside=outside,
            at=entry.at,
            superseded_by=index if late else None,
        )
    request: dict[str, Any] = {name: body[name] for name in _REQUEST}
    return ToolCallRow(
        **texts,
        **request,
        ended_at_ms=None,
        latency_ms=None,
        outcome_form=None,
        error_kind=None,
        log_index=index,
        status="requested",
        late=0,
        usage=None,
        paths_outside=outside,
        requested_index=index,
        created_index=index if before is None else before.created_index,
        at=entry.at,
    )


def find_tool_call_misfit(entry: Entry, before: ToolCallRow | None) -> str | None:
    """Why an entry cannot follow this version of its tool call."""
    move = entry.kind.removeprefix("tool_call.")
    if before is None:
        return None if move == "requested" else "a tool call was finished that nobody requested"
    if move != "requested" and entry.body["session_id"] != before.session_id:
        return "a tool call was requested in another session"
    if move == "late":
        is_orphan = (before.status, before.error_kind) == ("failed", ORPHANED)
        return None if is_orphan else "a late result of a tool call that was not given up"
    if move not in TOOL_CALL_MOVES.get(before.status, ()):
        return f"a tool call went from {before.status} to {move}"
    if move != "requested" and entry.body["status"] != move:
        return f"a tool call was {move}, and its status says {entry.body['status']}"
    return None


class ApprovalRow(NamedTuple):
    """A row of `approvals`: who allowed a tool call, or did not."""

    log_index: int
    request_id: str
    call_id: str
    session_id: str | None
    decision: str
    decided_by: str
    reason: str | None
    reason_salt: bytes | None
    at: int


def approval_row(index: int, entry: Entry, payloads: Mapping[str, Payload]) -> ApprovalRow:
    """The row of `approval.decided`."""
    body = entry.body
    reason = payloads.get("reason", NO_PAYLOAD)
    return ApprovalRow(
        log_index=index,
        request_id=body["request_id"],
        call_id=body["call_id"],
        session_id=body["session_id"],
        decision=body["decision"],
        decided_by=body["by"],
        reason=reason.text,
        reason_salt=reason.salt,
        at=entry.at,
    )
