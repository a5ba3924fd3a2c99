"""Recording and reading tool calls, and who allowed them."""

from __future__ import annotations

from typing import Any, Final

from affidavit.errors import invalid
from affidavit.ledger import tool_calls
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, read_id, read_input
from affidavit.ledger.observed import (
    CallDecision,
    DecideCall,
    FinishToolCall,
    ListOrphans,
    ListToolCalls,
    RequestToolCall,
    ToolCallDone,
    ToolCallPair,
    ToolCallRequest,
    ToolCallVersion,
    call_decision,
    check_usage,
    read_uuid,
    read_uuids,
    tool_call_done,
    tool_call_request,
)
from affidavit.ledger.payloads import ready_json, ready_text
from affidavit.ledger.ports import Writer
from affidavit.ledger.versions import TOOL_CALLS

ORPHAN_AFTER_MS: Final = 3_600_000


class ToolCalls(Handle):
    """Calls about tool calls."""

    def request_tool_call(
        self,
        request_id: Any = REQUIRED,
        call_id: str = REQUIRED,
        parent_id: Any = None,
        vendor: str = REQUIRED,
        tool_name: str = REQUIRED,
        arguments: Any = None,
        args_sha256: str | None = None,
        started_at_ms: int | None = None,
        session_id: str | None = None,
        actor: str | None = None,
        model: str | None = None,
        attributes: Any = None,
    ) -> ToolCallRequest:
        """Record that a tool is called; needs `arguments`, or their digest alone."""
        fields = {
            "request_id": request_id,
            "call_id": call_id,
            "parent_id": parent_id,
            "vendor": vendor,
            "tool_name": tool_name,
            "arguments": arguments,
            "args_sha256": args_sha256,
            "started_at_ms": started_at_ms,
            "session_id": session_id,
            "actor": actor,
            "model": model,
            "attributes": attributes,
        }
        given = read_input(RequestToolCall, read_uuids(fields, "request_id", "parent_id"))
        context = self._context
        args = ready_json(given.arguments, "arguments", context.project_root, given.args_sha256)
        more = ready_json(given.attributes, "attributes", context.project_root)
        if args is None:
            raise invalid("arguments", "give arguments or args_sha256")

        def unit(tx: Writer) -> ToolCallRequest:
            row = tool_calls.request_tool_call(tx, given, args, more, context.new_salt, context.src)
            if row.requested_index != row.log_index:
                row = tx.version_at(TOOL_CALLS, row.requested_index)
            return tool_call_request(row)

        return self._commit(unit)

    def finish_tool_call(
        self,
        request_id: Any = REQUIRED,
        call_id: str = REQUIRED,
        status: str = REQUIRED,
        outcome: Any = None,
        error_kind: str | None = None,
        error_msg: str | None = None,
        ended_at_ms: int | None = None,
        latency_ms: int | None = None,
        usage: dict[str, int] | None = None,
    ) -> ToolCallDone:
        """Record how a tool call ended: `completed` with an outcome, or `failed` with an error."""
        fields = {
            "request_id": request_id,
            "call_id": call_id,
            "status": status,
            "outcome": outcome,
            "error_kind": error_kind,
            "error_msg": error_msg,
            "ended_at_ms": ended_at_ms,
            "latency_ms": latency_ms,
            "usage": usage,
        }
        given = read_input(FinishToolCall, read_uuids(fields, "request_id"))
        tool_calls.check_result(given)
        check_usage(given.usage)
        context = self._context
        result = ready_json(given.outcome, "outcome", context.project_root)
        message = ready_text(given.error_msg)
        return self._commit(
            lambda tx: tool_call_done(
                tool_calls.finish_tool_call(
                    tx, given, result, message, context.new_salt, context.src
                )
            )
        )

    def get_tool_call(
        self,
        request_id: Any = REQUIRED,
        call_id: str = REQUIRED,
        as_of: Any = None,
        *,
        as_of_index: int | None = None,
    ) -> ToolCallPair | None:
        """A call as (request, done), done None while it is open; None where there is none."""
        name = _name(request_id, call_id)
        return self._glance(
            as_of,
            as_of_index,
            lambda reader, moment: tool_calls.get_tool_call(reader, name, moment),
        )

    def list_tool_calls(
        self,
        request_id: Any = None,
        parent_id: Any = None,
        session_id: str | None = None,
        status: str | None = None,
        tool_name: str | None = None,
        vendor: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        limit: int = 100,
        after: int | None = None,
        as_of: Any = None,
        *,
        as_of_index: int | None = None,
    ) -> list[ToolCallPair]:
        """Calls as pairs, the newest start first; `after` is an index of the last one seen."""
        fields = {
            "request_id": request_id,
            "parent_id": parent_id,
            "session_id": session_id,
            "status": status,
            "tool_name": tool_name,
            "vendor": vendor,
            "since_ms": since_ms,
            "until_ms": until_ms,
            "limit": limit,
            "after": after,
        }
        wanted = read_input(ListToolCalls, read_uuids(fields, "request_id", "parent_id"))
        return self._read_at(
            as_of,
            as_of_index,
            lambda reader, moment: tool_calls.list_tool_calls(reader, wanted, moment),
        )

    def tool_call_history(
        self, request_id: Any = REQUIRED, call_id: str = REQUIRED
    ) -> list[ToolCallVersion]:
        """Every version of a call, oldest first; empty where there is none."""
        name = _name(request_id, call_id)
        return self._read(lambda reader: tool_calls.tool_call_history(reader, name))

    def list_orphans(
        self, older_than_ms: int = ORPHAN_AFTER_MS, limit: int = 100
    ) -> list[ToolCallPair]:
        """Calls nobody finished that started at least so long ago, the newest first."""
        wanted = read_input(ListOrphans, {"older_than_ms": older_than_ms, "limit": limit})
        before_ms = self._context.clock() // 1_000 - wanted.older_than_ms + 1
        return self._read(lambda reader: tool_calls.list_orphans(reader, before_ms, wanted.limit))

    def mark_orphans(
        self, older_than_ms: int = ORPHAN_AFTER_MS, limit: int = 100
    ) -> list[ToolCallPair]:
        """Mark them failed (`orphaned`); answers with those it marked, as they were."""
        wanted = read_input(ListOrphans, {"older_than_ms": older_than_ms, "limit": limit})
        context = self._context
        before_ms = context.clock() // 1_000 - wanted.older_than_ms + 1
        return self._commit(
            lambda tx: tool_calls.mark_orphans(
                tx, before_ms, wanted.limit, context.new_salt, context.src
            )
        )

    def decide_call(
        self,
        request_id: Any = REQUIRED,
        call_id: str = REQUIRED,
        decision: str = REQUIRED,
        by: str = REQUIRED,
        reason: str | None = None,
    ) -> CallDecision:
        """Record who allowed a tool call, or did not."""
        fields = {
            "request_id": request_id,
            "call_id": call_id,
            "decision": decision,
            "by": by,
            "reason": reason,
        }
        given = read_input(DecideCall, read_uuids(fields, "request_id"))
        context = self._context
        return self._commit(
            lambda tx: call_decision(
                tool_calls.decide_call(tx, given, context.new_salt, context.src)
            )
        )

    def list_call_decisions(
        self, request_id: Any = REQUIRED, call_id: str = REQUIRED
    ) -> list[CallDecision]:
        """Who allowed a tool call, or did not, oldest first."""
        name = _name(request_id, call_id)
        return self._read(lambda reader: tool_calls.list_call_decisions(reader, name))


def _name(request_id: Any, call_id: Any) -> tuple[str, str]:
    return read_uuid(request_id, "request_id"), read_id(call_id, "call_id")
