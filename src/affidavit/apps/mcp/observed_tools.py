"""The tools of what was said, called and proposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from affidavit.apps.mcp.tools import Request, Run, Tool, arguments
from affidavit.ledger.inputs import Index, Name
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.observed import (
    ApplyProposal,
    CreateProposal,
    DecideProposal,
    FinishToolCall,
    ListProposals,
    ListToolCalls,
    ListTurns,
    Proposal,
    RequestToolCall,
    RetractTurn,
    RevertProposal,
    ToolCallDone,
    ToolCallRequest,
    ToolCallVersion,
    Turn,
    UpsertTurn,
)


class _AsOf(Struct, frozen=True, forbid_unknown_fields=True):
    as_of: int | str | None = None
    as_of_index: Index | None = None


class GetTurn(_AsOf, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A turn, by its id."""

    id: Name


class GetToolCall(_AsOf, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A tool call, by its key."""

    request_id: Name
    call_id: Name


class VersionsWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call by its key, and behind which index its versions begin."""

    request_id: Name
    call_id: Name
    after: Index | None = None


class GetProposal(_AsOf, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A proposal, by its request."""

    request_id: Name


class TurnsWanted(ListTurns, frozen=True, forbid_unknown_fields=True):
    """Which turns to list, as of when."""

    as_of: int | str | None = None
    as_of_index: Index | None = None


class ToolCallsWanted(ListToolCalls, frozen=True, forbid_unknown_fields=True):
    """Which tool calls to list, as of when."""

    as_of: int | str | None = None
    as_of_index: Index | None = None


class ProposalsWanted(ListProposals, frozen=True, forbid_unknown_fields=True):
    """Which proposals to list, as of when."""

    as_of: int | str | None = None
    as_of_index: Index | None = None


class Retracted(Struct, frozen=True):
    """A turn was taken back by this entry."""

    id: str
    index: int


class _Moment(Struct, frozen=True, kw_only=True):
    """How large the log was, and whether the answer can never change."""

    log_size: int
    settled: bool


class TurnFound(_Moment, frozen=True, kw_only=True):
    """A turn, or null."""

    turn: Turn | None


class TurnsFound(_Moment, frozen=True, kw_only=True):
    """Turns, oldest first."""

    turns: list[Turn]


class ToolCall(Struct, frozen=True):
    """A tool call, and how it ended where it did."""

    request: ToolCallRequest
    done: ToolCallDone | None


class ToolCallFound(_Moment, frozen=True, kw_only=True):
    """A tool call, or null."""

    tool_call: ToolCall | None


class ToolCallsFound(_Moment, frozen=True, kw_only=True):
    """Tool calls, the newest first."""

    tool_calls: list[ToolCall]


class Versions(_Moment, frozen=True, kw_only=True):
    """Every version of a tool call, oldest first."""

    versions: list[ToolCallVersion]


class ProposalFound(_Moment, frozen=True, kw_only=True):
    """A proposal, or null."""

    proposal: Proposal | None


class ProposalsFound(_Moment, frozen=True, kw_only=True):
    """Proposals, the newest first."""

    proposals: list[Proposal]


def _writing(call: Callable[..., Any]) -> Run:
    """Runs a writing call, which is safe to repeat without a key."""

    def run(ledger: Ledger, given: Any, request: Request) -> Any:
        del request
        return call(ledger, **arguments(given))

    return run


def _reading(call: Callable[..., Any], answer: type[Struct], name: str) -> Run:
    """Runs a reading call in one snapshot, with what tells whether its answer can change."""

    def run(ledger: Ledger, given: Any, request: Request) -> Any:
        del request
        wanted = arguments(given)
        moment = {key: wanted[key] for key in ("as_of", "as_of_index") if key in wanted}
        with ledger.transaction(write=False) as snapshot:
            found = getattr(snapshot, call.__name__)(**wanted)
            if isinstance(found, tuple):
                found = ToolCall(*found)
            elif name == "tool_calls":
                found = [ToolCall(*pair) for pair in found]
            settled = snapshot.settled(**moment)
            return answer(**{name: found, "log_size": len(snapshot), "settled": settled})

    return run


def _history(ledger: Ledger, given: VersionsWanted, request: Request) -> Versions:
    del request
    with ledger.transaction(write=False) as snapshot:
        found = snapshot.tool_call_history(given.request_id, given.call_id)
        rest = [one for one in found if given.after is None or one.index > given.after]
        return Versions(versions=rest, log_size=len(snapshot), settled=snapshot.settled())


def _retract(ledger: Ledger, given: RetractTurn, request: Request) -> Retracted:
    del request
    return Retracted(given.id, ledger.retract_turn(given.id, given.reason))


def _writes(
    name: str, title: str, description: str, given: type[Struct], answer: type[Struct], run: Run
) -> Tool:
    joins = "session_id" in given.__struct_fields__
    return Tool(
        name,
        title,
        description,
        given,
        answer,
        run,
        repeatable=True,
        core=False,
        binds=("session_id",) if joins else (),
        joins=joins,
    )


def _reads(
    name: str, title: str, description: str, given: type[Struct], answer: type[Struct], run: Run
) -> Tool:
    return Tool(
        name, title, description, given, answer, run, reads=True, repeatable=True, core=False
    )


OBSERVED_TOOLS: Final = (
    _writes(
        "turn_upsert", "Record a turn",
        "Call this with each message of the conversation; the same id with other content is a new "
        "version. id, message_id: UUIDs.",
        UpsertTurn, Turn, _writing(Ledger.upsert_turn),
    ),
    _writes(
        "turn_retract", "Take a turn back",
        "Call this when a turn should not have been recorded; its history stays.",
        RetractTurn, Retracted, _retract,
    ),
    _reads(
        "turn_get", "Show a turn",
        "Call this to read one turn, now or as_of a time (RFC 3339 or microseconds).",
        GetTurn, TurnFound, _reading(Ledger.get_turn, TurnFound, "turn"),
    ),
    _reads(
        "turn_list", "List turns",
        "Call this to read a conversation, oldest first; after: index of the last turn seen.",
        TurnsWanted, TurnsFound, _reading(Ledger.list_turns, TurnsFound, "turns"),
    ),
    _writes(
        "tool_call_request", "Record a tool call",
        "Call this before a tool runs, with its arguments or their SHA-256. request_id: a UUID; "
        "calling it again is safe.",
        RequestToolCall, ToolCallRequest, _writing(Ledger.request_tool_call),
    ),
    _writes(
        "tool_call_finish", "Record a tool's result",
        "Call this when a tool ended: completed with outcome, or failed with error_kind and "
        "error_msg. The result is final.",
        FinishToolCall, ToolCallDone, _writing(Ledger.finish_tool_call),
    ),
    _reads(
        "tool_call_get", "Show a tool call",
        "Call this to see one tool call and how it ended, now or as_of a time.",
        GetToolCall, ToolCallFound,
        _reading(Ledger.get_tool_call, ToolCallFound, "tool_call"),
    ),
    _reads(
        "tool_call_list", "List tool calls",
        "Call this to find tool calls, the newest first; after: index of the last one seen.",
        ToolCallsWanted, ToolCallsFound,
        _reading(Ledger.list_tool_calls, ToolCallsFound, "tool_calls"),
    ),
    _reads(
        "tool_call_history", "Show a tool call's versions",
        "Call this to see every version of a tool call, oldest first; after: index of the last "
        "one seen.",
        VersionsWanted, Versions, _history,
    ),
    _writes(
        "proposal_create", "Propose a change of code",
        "Call this before you change code that a person must approve. diffs: any JSON, such as "
        "[{path, diff}].",
        CreateProposal, Proposal, _writing(Ledger.create_proposal),
    ),
    _writes(
        "proposal_decide", "Record a decision about a proposal",
        "Call this when somebody approved or denied a proposal; by: who.",
        DecideProposal, Proposal, _writing(Ledger.decide_proposal),
    ),
    _writes(
        "proposal_apply", "Record that a proposal was applied",
        "Call this when an approved proposal is in the code.",
        ApplyProposal, Proposal, _writing(Ledger.apply_proposal),
    ),
    _writes(
        "proposal_revert", "Record that a proposal was reverted",
        "Call this when an applied proposal was taken back.",
        RevertProposal, Proposal, _writing(Ledger.revert_proposal),
    ),
    _reads(
        "proposal_get", "Show a proposal",
        "Call this to see a proposal and what became of it, now or as_of a time.",
        GetProposal, ProposalFound, _reading(Ledger.get_proposal, ProposalFound, "proposal"),
    ),
    _reads(
        "proposal_list", "List proposals",
        "Call this to find proposals, the newest first; after: index of the last one seen.",
        ProposalsWanted, ProposalsFound,
        _reading(Ledger.list_proposals, ProposalsFound, "proposals"),
    ),
)  # fmt: skip
