"""Tool calls: requested once, finished once, whatever is retried and whoever is late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from affidavit.core.entry import Source
from affidavit.core.lifecycle import ORPHANED, TOOL_CALL_MOVES
from affidavit.core.views.tool_calls import ApprovalRow, ToolCallRow
from affidavit.core.views.turns import usage_text
from affidavit.errors import ConflictError, invalid
from affidavit.ledger.observed import (
    CallDecision,
    DecideCall,
    FinishToolCall,
    ListToolCalls,
    RequestToolCall,
    ToolCallPair,
    ToolCallVersion,
    call_decision,
    tool_call_done,
    tool_call_request,
)
from affidavit.ledger.payloads import Ready, fill, is_same_text, ready_text, stored
from affidavit.ledger.ports import Listing, Reader, Writer
from affidavit.ledger.versions import (
    APPROVALS,
    TOOL_CALLS,
    append_version,
    check_session,
    find_place,
    invalid_lifecycle,
    session_if_open,
)

_ORDER: Final = ("started_at_ms", "created_index")
_REQUEST: Final = ("parent_id", "session_id", "vendor", "tool_name", "actor", "model")
_NAMED: Final = ("request_id", "parent_id", "session_id", "status", "tool_name", "vendor")
_US_PER_MS: Final = 1_000


def request_tool_call(
    tx: Writer,
    given: RequestToolCall,
    arguments: Ready,
    attributes: Ready | None,
    new_salt: Callable[[], bytes],
    src: Source,
) -> ToolCallRow:
    """Record a request; while it is open, another of the same call is a new version."""
    before: ToolCallRow | None = tx.find_version(
        TOOL_CALLS, (given.request_id, given.call_id), None
    )
    started, attributes = _started(tx, given, before), stored(tx, attributes)
    if before is not None:
        asked = tx.version_at(TOOL_CALLS, before.requested_index)
        if _is_same_request(tx, asked, given, started, arguments, attributes):
            return before
        if before.status != "requested":
            raise _refuse(given, before, "requested")
    check_session(tx, given.session_id)
    texts = {"arguments": arguments, "attributes": attributes}
    filled = fill(tx, texts, new_salt)
    body = {"request_id": given.request_id, "call_id": given.call_id, **filled.body}
    body |= {name: getattr(given, name) for name in _REQUEST}
    body["started_at_ms"] = started
    return _append(tx, "requested", body, filled.payloads, before, src)


def _append(
    tx: Writer,
    move: str,
    body: dict[str, Any],
    payloads: Any,
    before: ToolCallRow | None,
    src: Source,
) -> ToolCallRow:
    row: ToolCallRow = append_version(
        tx, TOOL_CALLS, f"tool_call.{move}", body, payloads, before, src
    )
    return row


def _started(tx: Writer, given: RequestToolCall, before: ToolCallRow | None) -> int:
    if given.started_at_ms is not None:
        return given.started_at_ms
    return tx.at // _US_PER_MS if before is None else before.started_at_ms


def _is_same_request(
    tx: Writer,
    asked: ToolCallRow,
    given: RequestToolCall,
    started: int,
    arguments: Ready,
    attributes: Ready | None,
) -> bool:
    return (
        all(getattr(asked, name) == getattr(given, name) for name in _REQUEST)
        and asked.started_at_ms == started
        and _is_same_digest(asked.args_sha256, arguments)
        and is_same_text(tx, asked, "attributes", attributes)
    )


def _is_same_digest(kept: str | None, given: Ready | None) -> bool:
    """Whether what was given before is given again, as far as its digest still tells."""
    return kept is None or (given is not None and kept == given.digest)


def _refuse(given: Any, before: ToolCallRow | None, to: str) -> ConflictError:
    status = None if before is None else before.status
    allowed = TOOL_CALL_MOVES.get(status, ())
    hint = "" if before is not None else "Request it first: allowed now is requested."
    return invalid_lifecycle(
        f"tool call {given.call_id!r:.100} of {given.request_id}", status, to, allowed, hint
    )


def finish_tool_call(
    tx: Writer,
    given: FinishToolCall,
    outcome: Ready | None,
    message: Ready | None,
    new_salt: Callable[[], bytes],
    src: Source,
) -> ToolCallRow:
    """Record how a call ended; the same result again writes nothing."""
    before: ToolCallRow | None = tx.find_version(
        TOOL_CALLS, (given.request_id, given.call_id), None
    )
    if before is None:
        raise _refuse(given, None, given.status)
    message, move = stored(tx, message), str(given.status)
    if before.status != "requested":
        found = _find_same(tx, before, given, outcome, message)
        if found is not None:
            return found
        move = "late"
    texts = {"outcome": outcome, "error_msg": message}
    filled = fill(tx, texts, new_salt)
    ended = tx.at // _US_PER_MS if given.ended_at_ms is None else given.ended_at_ms
    latency = given.latency_ms
    body = {
        "request_id": given.request_id,
        "call_id": given.call_id,
        "session_id": before.session_id,
        "status": given.status,
        "ended_at_ms": ended,
        "latency_ms": max(0, ended - before.started_at_ms) if latency is None else latency,
        "error_kind": given.error_kind,
        "usage": given.usage,
        **filled.body,
    }
    return _append(tx, move, body, filled.payloads, before, src)


def _find_same(
    tx: Writer,
    before: ToolCallRow,
    given: FinishToolCall,
    outcome: Ready | None,
    message: Ready | None,
) -> ToolCallRow | None:
    """The same result, recorded before; None where it is a real one that comes late."""
    if _is_same_result(tx, before, given, outcome, message):
        return before
    if before.error_kind != ORPHANED:
        raise _refuse(given, before, given.status)
    late = find_late(tx, before)
    if late is None:
        return None
    if not _is_same_result(tx, late, given, outcome, message):
        raise _refuse(given, before, given.status)
    return late


def _is_same_result(
    tx: Writer,
    row: ToolCallRow,
    given: FinishToolCall,
    outcome: Ready | None,
    message: Ready | None,
) -> bool:
    """Compared by digests, whatever the times; what was erased tells nothing against it."""
    same_outcome = (
        outcome is None
        if row.outcome_form is None
        else outcome is not None and _is_same_digest(row.outcome_sha256, outcome)
    )
    return (
        row.status == given.status
        and row.error_kind == given.error_kind
        and row.usage == usage_text(given.usage)
        and same_outcome
        and is_same_text(tx, row, "error_msg", message)
    )


def find_late(reader: Reader, row: ToolCallRow) -> ToolCallRow | None:
    """The real result of a call that was given up, where one came."""
    if row.error_kind != ORPHANED:
        return None
    versions = reader.versions(TOOL_CALLS, (row.request_id, row.call_id))
    return next((version for version in versions if version.late), None)


def check_result(given: FinishToolCall) -> None:
    """An outcome belongs to what completed, an error to what failed."""
    if given.status == "failed" and given.outcome is not None:
        raise invalid("outcome", "belongs to a completed call; a failed one has error_kind")
    for name in ("error_kind", "error_msg"):
        if given.status == "completed" and getattr(given, name) is not None:
            raise invalid(name, "belongs to a failed call; a completed one has an outcome")


def get_tool_call(reader: Reader, name: tuple[str, str], moment: int | None) -> ToolCallPair | None:
    """A call as it was: its request, and how it ended where it had."""
    row: ToolCallRow | None = reader.find_version(TOOL_CALLS, name, moment)
    return None if row is None else _pair(reader, row, moment)


def _pair(reader: Reader, row: ToolCallRow, moment: int | None = None) -> ToolCallPair:
    if row.status == "requested":
        return tool_call_request(row), None
    asked = reader.version_at(TOOL_CALLS, row.requested_index)
    late = find_late(reader, row)
    if late is not None and moment is not None and late.at > moment:
        late = None
    return tool_call_request(asked), tool_call_done(row, late)


def list_tool_calls(
    reader: Reader, wanted: ListToolCalls, moment: int | None
) -> list[ToolCallPair]:
    """Calls by when they started, the newest first; the index breaks ties."""
    listing = Listing(
        TOOL_CALLS,
        _ORDER,
        {name: value for name in _NAMED if (value := getattr(wanted, name)) is not None},
        wanted.limit,
        moment,
        wanted.since_ms,
        wanted.until_ms,
        find_place(reader, TOOL_CALLS, wanted.after, _ORDER),
    )
    return [_pair(reader, row, moment) for row in reader.list_versions(listing)]


def tool_call_history(reader: Reader, name: tuple[str, str]) -> list[ToolCallVersion]:
    """Every version of a call, oldest first."""
    rows: dict[int, ToolCallRow] = {row.log_index: row for row in reader.versions(TOOL_CALLS, name)}
    return [
        ToolCallVersion(
            row.status,
            bool(row.late),
            tool_call_request(rows[row.requested_index]),
            None if row.status == "requested" else tool_call_done(row),
            row.log_index,
            row.at,
        )
        for row in rows.values()
    ]


def list_orphans(reader: Reader, before_ms: int, limit: int) -> list[ToolCallPair]:
    """Calls nobody finished, that started before a time."""
    wanted = ListToolCalls(status="requested", until_ms=before_ms, limit=limit)
    return list_tool_calls(reader, wanted, None)


def mark_orphans(
    tx: Writer, before_ms: int, limit: int, new_salt: Callable[[], bytes], src: Source
) -> list[ToolCallPair]:
    """Give up calls nobody finished; a real result that still comes is kept as late."""
    found = list_orphans(tx, before_ms, limit)
    for request, _ in found:
        given = FinishToolCall(request.request_id, request.call_id, "failed", error_kind=ORPHANED)
        finish_tool_call(tx, given, None, None, new_salt, src)
    return found


def decide_call(
    tx: Writer, given: DecideCall, new_salt: Callable[[], bytes], src: Source
) -> ApprovalRow:
    """Record who allowed a tool call, or did not; the same again writes nothing."""
    name = (given.request_id, given.call_id)
    row: ToolCallRow | None = tx.find_version(TOOL_CALLS, name, None)
    if row is None:
        raise _refuse(given, None, given.decision)
    reason = stored(tx, ready_text(given.reason))
    for found in tx.approvals(name):
        if (found.decision, found.decided_by) == (given.decision, given.by) and is_same_text(
            tx, found, "reason", reason
        ):
            return found
    filled = fill(tx, {"reason": reason}, new_salt)
    body = {
        "request_id": given.request_id,
        "call_id": given.call_id,
        "session_id": session_if_open(tx, row.session_id),
        "decision": given.decision,
        "by": given.by,
        **filled.body,
    }
    decided: ApprovalRow = append_version(
        tx, APPROVALS, "approval.decided", body, filled.payloads, None, src
    )
    return decided


def list_call_decisions(reader: Reader, name: tuple[str, str]) -> list[CallDecision]:
    """Who allowed a tool call, or did not, oldest first."""
    return [call_decision(row) for row in reader.approvals(name)]
