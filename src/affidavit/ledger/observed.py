"""What callers may say of turns, tool calls and proposals, and what they are answered."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from affidavit.core.canonical import INTEGER_MAX, format_number
from affidavit.core.views.proposals import ProposalRow
from affidavit.core.views.tool_calls import ApprovalRow, ToolCallRow
from affidavit.core.views.turns import TurnRow
from affidavit.errors import invalid
from affidavit.ledger.inputs import Index, MaybeEmpty, Name, Note, Text
from affidavit.ledger.results import Result

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 10_000

TurnKind = Literal["user", "assistant", "system", "sysinfo", "tool"]
Finished = Literal["completed", "failed"]
ToolCallStatus = Literal["requested", "completed", "failed"]
Decision = Literal["approved", "denied"]
ProposalStatus = Literal["pending", "approved", "denied", "applied", "reverted"]
Millis = Annotated[int, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX)]
Latency = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
Limit = Annotated[int, Meta(ge=1, le=PAGE_MAX)]

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
_COUNT_NAME = re.compile(r"[a-z0-9_]{1,64}\Z")


class UpsertTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn of a conversation, or what it is now."""

    id: Name
    message_id: Name
    kind: TurnKind
    content: MaybeEmpty
    parent_id: Name | None = None
    thread_id: Name | None = None
    occurred_at_ms: Millis | None = None
    session_id: Name | None = None
    actor: Name | None = None
    model: Name | None = None
    usage: dict[str, int] | None = None
    attributes: Any = None


class RetractTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn to take back; its history stays."""

    id: Name
    reason: Note | None = None


class ListTurns(Struct, frozen=True, forbid_unknown_fields=True):
    """Which turns to list."""

    since_ms: Millis | None = None
    thread_id: Name | None = None
    message_id: Name | None = None
    session_id: Name | None = None
    limit: Limit = PAGE_DEFAULT
    after: Index | None = None
    newest_first: bool = False


class RequestToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call somebody asks for."""

    request_id: Name
    call_id: Name
    vendor: Name
    tool_name: Name
    parent_id: Name | None = None
    arguments: Any = None
    args_sha256: Any = None
    started_at_ms: Millis | None = None
    session_id: Name | None = None
    actor: Name | None = None
    model: Name | None = None
    attributes: Any = None


class FinishToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """How a tool call ended."""

    request_id: Name
    call_id: Name
    status: Finished
    outcome: Any = None
    error_kind: Name | None = None
    error_msg: Text | None = None
    ended_at_ms: Millis | None = None
    latency_ms: Latency | None = None
    usage: dict[str, int] | None = None


class ListToolCalls(Struct, frozen=True, forbid_unknown_fields=True):
    """Which tool calls to list."""

    request_id: Name | None = None
    parent_id: Name | None = None
    session_id: Name | None = None
    status: ToolCallStatus | None = None
    tool_name: Name | None = None
    vendor: Name | None = None
    since_ms: Millis | None = None
    until_ms: Millis | None = None
    limit: Limit = PAGE_DEFAULT
    after: Index | None = None


class DecideCall(Struct, frozen=True, forbid_unknown_fields=True):
    """Who allowed a tool call, or did not."""

    request_id: Name
    call_id: Name
    decision: Decision
    by: Name
    reason: Note | None = None


class CreateProposal(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of code somebody proposes."""

    request_id: Name
    diffs: Any
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    session_id: Name | None = None


class DecideProposal(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a proposal may be applied, and who says so."""

    request_id: Name
    decision: Decision
    by: Name
    reason: Note | None = None
    decided_at_ms: Millis | None = None


class ApplyProposal(Struct, frozen=True, forbid_unknown_fields=True):
    """A proposal that was applied."""

    request_id: Name
    commit_hash: Name | None = None
    applied_at_ms: Millis | None = None


class RevertProposal(Struct, frozen=True, forbid_unknown_fields=True):
    """A proposal that was taken back after it was applied."""

    request_id: Name
    commit_hash: Name | None = None
    reverted_at_ms: Millis | None = None


class ListProposals(Struct, frozen=True, forbid_unknown_fields=True):
    """Which proposals to list."""

    status: ProposalStatus | None = None
    since_ms: Millis | None = None
    limit: Limit = PAGE_DEFAULT
    after: Index | None = None


class ListOrphans(Struct, frozen=True, forbid_unknown_fields=True):
    """Tool calls nobody finished for so long."""

    older_than_ms: Latency
    limit: Limit = PAGE_DEFAULT


UsageBy = Literal["model", "session", "day"]


class SumUsage(Struct, frozen=True, forbid_unknown_fields=True):
    """What to add usage up by, and over which time."""

    by: UsageBy = "model"
    since_ms: Millis | None = None
    until_ms: Millis | None = None


def read_uuid(value: Any, field: str) -> str:
    """A UUID, or its text, in lower case."""
    if not isinstance(value, str) and type(value).__name__ != "UUID":
        raise invalid(field, f"is {type(value).__name__}, not a UUID or its text")
    text = str.__str__(value if isinstance(value, str) else str(value)).lower()
    if not _UUID.match(text):
        raise invalid(field, f"{text!r:.60} is not a UUID", hint="Such as str(uuid.uuid4()).")
    return text


def read_uuids(given: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    """Arguments with these, where they are given, as UUIDs in lower case."""
    return {
        name: read_uuid(value, name)
        if name in fields and value not in (None, msgspec.UNSET)
        else value
        for name, value in given.items()
    }


def check_usage(usage: dict[str, int] | None) -> None:
    """Counts by name: tokens, cost in whole units such as micro-dollars."""
    for name, count in (usage or {}).items():
        if not _COUNT_NAME.match(name):
            raise invalid("usage", f"{name!r:.60} is not a name of [a-z0-9_]")
        if not 0 <= count <= INTEGER_MAX:
            raise invalid(f"usage.{name}", f"{count} is not a count from 0 to 2^53-1")


def share_text(share: float | None) -> str | None:
    """A number from 0 to 1 as entries hold it."""
    return None if share is None else format_number(float(share))


class Turn(Result, frozen=True):
    """One turn of a conversation; without content it was erased, or its content is lost."""

    id: str
    message_id: str
    kind: str
    content: str | None
    parent_id: str | None
    thread_id: str | None
    session_id: str | None
    occurred_at_ms: int | None
    created_at_ms: int
    actor: str | None
    model: str | None
    usage: dict[str, int] | None
    attributes_json: str | None
    index: int
    at: int

    @property
    def attributes(self) -> Any:
        """The attributes as a value."""
        return read_json(self.attributes_json)


class ToolCallRequest(Result, frozen=True):
    """What was asked for."""

    request_id: str
    call_id: str
    parent_id: str | None
    session_id: str | None
    vendor: str
    tool_name: str
    args_form: str
    args_sha256: str | None
    arguments_json: str | None
    started_at_ms: int
    actor: str | None
    model: str | None
    attributes_json: str | None
    paths_outside: int
    index: int
    at: int

    @property
    def arguments(self) -> Any:
        """The arguments as a value, where they are kept."""
        return read_json(self.arguments_json)

    @property
    def attributes(self) -> Any:
        """The attributes as a value."""
        return read_json(self.attributes_json)


class ToolCallEnd(Result, frozen=True):
    """How it ended."""

    status: str
    ended_at_ms: int
    latency_ms: int
    outcome_form: str | None
    outcome_sha256: str | None
    outcome_json: str | None
    error_kind: str | None
    error_msg: str | None
    usage: dict[str, int] | None
    paths_outside: int
    index: int
    at: int

    @property
    def outcome(self) -> Any:
        """The outcome as a value, where it is kept."""
        return read_json(self.outcome_json)


class ToolCallDone(ToolCallEnd, frozen=True):
    """How it ended; `late` is a real result that came after the call was given up."""

    late: ToolCallEnd | None = None


class ToolCallVersion(Result, frozen=True):
    """One version of a tool call: a request, or how it ended."""

    status: str
    late: bool
    request: ToolCallRequest
    done: ToolCallDone | None
    index: int
    at: int


class CallDecision(Result, frozen=True):
    """Who allowed a tool call, or did not."""

    request_id: str
    call_id: str
    decision: str
    by: str
    reason: str | None
    session_id: str | None
    index: int
    at: int


class Proposal(Result, frozen=True):
    """A change of code that was proposed, and what became of it."""

    request_id: str
    diffs_json: str | None
    confidence: float | None
    status: str
    session_id: str | None
    created_at_ms: int
    decided_at_ms: int | None
    decided_by: str | None
    reason: str | None
    applied_at_ms: int | None
    commit_hash: str | None
    reverted_at_ms: int | None
    revert_commit_hash: str | None
    paths_outside: int
    index: int
    at: int

    @property
    def diffs(self) -> Any:
        """The diffs as a value."""
        return read_json(self.diffs_json)


class Usage(Result, frozen=True):
    """What was used under one key: a model, a session or a day; null where none was named."""

    key: str | None
    counts: dict[str, int]


ToolCallPair = tuple[ToolCallRequest, ToolCallDone | None]


def read_json(text: str | None) -> Any:
    """The value of a caller's JSON."""
    return None if text is None else json.loads(text)


def _usage(text: str | None) -> dict[str, int] | None:
    counts: dict[str, int] | None = read_json(text)
    return counts


def turn(row: TurnRow) -> Turn:
    """A turn as callers see it."""
    return Turn(
        id=row.id,
        message_id=row.message_id,
        kind=row.kind,
        content=row.content,
        parent_id=row.parent_id,
        thread_id=row.thread_id,
        session_id=row.session_id,
        occurred_at_ms=row.occurred_at_ms,
        created_at_ms=row.created_at_ms,
        actor=row.actor,
        model=row.model,
        usage=_usage(row.usage),
        attributes_json=row.attributes_json,
        index=row.log_index,
        at=row.at,
    )


def tool_call_request(row: ToolCallRow) -> ToolCallRequest:
    """A request as callers see it; the row must be the one that brought the arguments."""
    return ToolCallRequest(
        request_id=row.request_id,
        call_id=row.call_id,
        parent_id=row.parent_id,
        session_id=row.session_id,
        vendor=row.vendor,
        tool_name=row.tool_name,
        args_form=row.args_form,
        args_sha256=row.args_sha256,
        arguments_json=row.arguments_json,
        started_at_ms=row.started_at_ms,
        actor=row.actor,
        model=row.model,
        attributes_json=row.attributes_json,
        paths_outside=row.paths_outside,
        index=row.log_index,
        at=row.at,
    )


def tool_call_done(row: ToolCallRow, late: ToolCallRow | None = None) -> ToolCallDone:
    """The end of a tool call as callers see it."""
    return ToolCallDone(**_end(row), late=None if late is None else ToolCallEnd(**_end(late)))


def _end(row: ToolCallRow) -> dict[str, Any]:
    return {
        "status": row.status,
        "ended_at_ms": row.ended_at_ms or 0,
        "latency_ms": row.latency_ms or 0,
        "outcome_form": row.outcome_form,
        "outcome_sha256": row.outcome_sha256,
        "outcome_json": row.outcome_json,
        "error_kind": row.error_kind,
        "error_msg": row.error_msg,
        "usage": _usage(row.usage),
        "paths_outside": row.paths_outside,
        "index": row.log_index,
        "at": row.at,
    }


def call_decision(row: ApprovalRow) -> CallDecision:
    """A decision about a tool call as callers see it."""
    return CallDecision(
        row.request_id, row.call_id, row.decision, row.decided_by, row.reason, row.session_id,
        row.log_index, row.at,
    )  # fmt: skip


def proposal(row: ProposalRow, created: ProposalRow, decided: ProposalRow | None) -> Proposal:
    """A proposal as callers see it, its texts from the versions that brought them."""
    return Proposal(
        request_id=row.request_id,
        diffs_json=created.diffs_json,
        confidence=None if row.confidence is None else float(row.confidence),
        status=row.status,
        session_id=created.session_id,
        created_at_ms=row.created_at_ms,
        decided_at_ms=row.decided_at_ms,
        decided_by=row.decided_by,
        reason=None if decided is None else decided.reason,
        applied_at_ms=row.applied_at_ms,
        commit_hash=row.commit_hash,
        reverted_at_ms=row.reverted_at_ms,
        revert_commit_hash=row.revert_commit_hash,
        paths_outside=created.paths_outside,
        index=row.log_index,
        at=row.at,
    )
