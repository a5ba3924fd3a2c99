"""The commands about turns, tool calls and proposals, as they are or were at a moment."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from affidavit.apps.cli.opening import as_of, open_for_reading, open_for_writing, write_or_create
from affidavit.apps.cli.render import Answer, block, fields, table
from affidavit.errors import InputError
from affidavit.ledger.observed import Proposal, ToolCallDone, ToolCallPair, ToolCallRequest, Turn

T = TypeVar("T")


def _found(found: T | None, what: str) -> T:
    if found is None:
        raise InputError(
            f"there is no such {what}",
            code="ERR_NOT_FOUND",
            hint="The list command shows which there are; --as-of looks at another moment.",
        )
    return found


def turn_add(args: argparse.Namespace) -> Answer:
    """Record a turn."""
    return _turn(
        write_or_create(
            args,
            lambda ledger: ledger.upsert_turn(
                args.id,
                args.message,
                args.kind,
                args.content,
                parent_id=args.parent,
                thread_id=args.thread,
                occurred_at_ms=args.occurred_at_ms,
                session_id=args.session,
                actor=args.actor,
                model=args.model,
                usage=args.usage,
                attributes=args.attributes,
            ),
        )
    )


def turn_retract(args: argparse.Namespace) -> Answer:
    """Take a turn back."""
    with open_for_writing(args) as ledger:
        index = ledger.retract_turn(args.id, args.reason)
    return Answer({"id": args.id, "index": index}, [f"Taken back at entry {index}."])


def turn_show(args: argparse.Namespace) -> Answer:
    """One turn."""
    found, moment = as_of(args, lambda ledger, when: ledger.get_turn(args.id, **when))
    return _turn(_found(found, "turn"), moment)


def turn_list(args: argparse.Namespace) -> Answer:
    """Turns, oldest first."""
    found, moment = as_of(
        args,
        lambda ledger, when: ledger.list_turns(
            args.since_ms,
            args.thread,
            args.message,
            args.session,
            args.limit,
            args.after,
            args.newest_first,
            **when,
        ),
    )
    rows = [(one.index, one.id, one.kind, one.thread_id, one.content) for one in found]
    data = {"turns": [one.to_dict() for one in found], **moment}
    return Answer(data, _rows(("index", "turn", "kind", "thread", "content"), rows, "turns"))


def _turn(one: Turn, moment: Mapping[str, Any] | None = None) -> Answer:
    shown = one.to_dict()
    lines = [f"Turn {one.id}", *_plain(shown, ("id", "content"))]
    return Answer({**shown, **(moment or {})}, [*lines, *block(one.content or "")])


def _plain(shown: Mapping[str, Any], without: Iterable[str]) -> Iterator[str]:
    return fields((name, value) for name, value in shown.items() if name not in without)


def _rows(head: tuple[str, ...], rows: list[tuple[Any, ...]], noun: str) -> list[str]:
    return list(table(head, rows)) if rows else [f"No {noun}."]


def call_request(args: argparse.Namespace) -> Answer:
    """Record that a tool is called."""
    asked = write_or_create(
        args,
        lambda ledger: ledger.request_tool_call(
            args.request,
            args.call,
            args.parent,
            args.vendor,
            args.tool,
            args.arguments,
            args.args_sha256,
            started_at_ms=args.started_at_ms,
            session_id=args.session,
            actor=args.actor,
            model=args.model,
            attributes=args.attributes,
        ),
    )
    return _call(asked, None)


def call_finish(args: argparse.Namespace) -> Answer:
    """Record how a tool call ended."""
    with open_for_writing(args) as ledger:
        done = ledger.finish_tool_call(
            args.request,
            args.call,
            args.status,
            args.outcome,
            args.error_kind,
            args.error_msg,
            args.ended_at_ms,
            args.latency_ms,
            args.usage,
        )
    return Answer(done.to_dict(), [f"Call {args.call} {done.status}", *_plain(done.to_dict(), ())])


def call_show(args: argparse.Namespace) -> Answer:
    """One tool call."""
    found, moment = as_of(
        args, lambda ledger, when: ledger.get_tool_call(args.request, args.call, **when)
    )
    asked, done = _found(found, "tool call")
    return _call(asked, done, moment)


def _call(
    asked: ToolCallRequest, done: ToolCallDone | None, moment: Mapping[str, Any] | None = None
) -> Answer:
    request = asked.to_dict()
    lines = [f"Tool call {asked.call_id} of {asked.request_id}"]
    lines += _plain(request, ("request_id", "call_id"))
    end = None if done is None else done.to_dict()
    lines += [f"  {'requested, not finished' if end is None else end['status']}"]
    lines += [] if end is None else _plain(end, ("status",))
    return Answer({"request": request, "done": end, **(moment or {})}, lines)


def call_list(args: argparse.Namespace) -> Answer:
    """Tool calls, the newest first."""
    found, moment = as_of(
        args,
        lambda ledger, when: ledger.list_tool_calls(
            args.request,
            args.parent,
            args.session,
            args.status,
            args.tool,
            args.vendor,
            args.since_ms,
            args.until_ms,
            args.limit,
            args.after,
            **when,
        ),
    )
    return _calls(found, moment)


def _calls(found: list[ToolCallPair], more: Mapping[str, Any]) -> Answer:
    rows = [
        (a.index, a.request_id, a.call_id, a.tool_name, d.status if d else "requested")
        for a, d in found
    ]
    pairs = [{"request": a.to_dict(), "done": d and d.to_dict()} for a, d in found]
    head = ("index", "request", "call", "tool", "status")
    return Answer({"tool_calls": pairs, **more}, _rows(head, rows, "tool calls"))


def call_history(args: argparse.Namespace) -> Answer:
    """Every version of a tool call."""
    with open_for_reading(args) as ledger:
        versions = ledger.tool_call_history(args.request, args.call)
        decisions = ledger.list_call_decisions(args.request, args.call)
    rows = [(one.index, one.status, "late" if one.late else None) for one in versions]
    rows += [(one.index, one.decision, f"by {one.by}") for one in decisions]
    data = {
        "versions": [one.to_dict() for one in versions],
        "decisions": [one.to_dict() for one in decisions],
    }
    return Answer(data, _rows(("index", "state", "note"), sorted(rows), "versions"))


def call_decide(args: argparse.Namespace) -> Answer:
    """Record who allowed a tool call."""
    with open_for_writing(args) as ledger:
        made = ledger.decide_call(args.request, args.call, args.decision, args.by, args.reason)
    return Answer(made.to_dict(), [f"{made.decision} by {made.by}, entry {made.index}"])


def orphans(args: argparse.Namespace) -> Answer:
    """Tool calls nobody finished."""
    older_ms = args.older_than // 1_000
    if args.mark:
        with open_for_writing(args) as ledger:
            return _calls(ledger.mark_orphans(older_ms, args.limit), {"marked": True})
    with open_for_reading(args) as ledger:
        return _calls(ledger.list_orphans(older_ms, args.limit), {"marked": False})


def proposal_create(args: argparse.Namespace) -> Answer:
    """Record a proposal."""
    return _proposal(
        write_or_create(
            args,
            lambda ledger: ledger.create_proposal(
                args.request, args.diffs, args.confidence, args.session
            ),
        )
    )


def proposal_decide(args: argparse.Namespace) -> Answer:
    """Approve or deny a proposal."""
    with open_for_writing(args) as ledger:
        return _proposal(
            ledger.decide_proposal(
                args.request, args.decision, args.by, args.reason, args.decided_at_ms
            )
        )


def proposal_apply(args: argparse.Namespace) -> Answer:
    """Record that a proposal was applied."""
    with open_for_writing(args) as ledger:
        return _proposal(ledger.apply_proposal(args.request, args.commit, args.at_ms))


def proposal_revert(args: argparse.Namespace) -> Answer:
    """Record that a proposal was taken back."""
    with open_for_writing(args) as ledger:
        return _proposal(ledger.revert_proposal(args.request, args.commit, args.at_ms))


def proposal_show(args: argparse.Namespace) -> Answer:
    """One proposal."""
    found, moment = as_of(args, lambda ledger, when: ledger.get_proposal(args.request, **when))
    return _proposal(_found(found, "proposal"), moment)


def _proposal(one: Proposal, moment: Mapping[str, Any] | None = None) -> Answer:
    shown = one.to_dict()
    lines = [f"Proposal {one.request_id}", *_plain(shown, ("request_id", "diffs_json"))]
    return Answer({**shown, **(moment or {})}, [*lines, *block(one.diffs_json or "")])


def proposal_list(args: argparse.Namespace) -> Answer:
    """Proposals, the newest first."""
    found, moment = as_of(
        args,
        lambda ledger, when: ledger.list_proposals(
            args.status, args.since_ms, args.limit, args.after, **when
        ),
    )
    rows = [(one.index, one.request_id, one.status, one.decided_by) for one in found]
    data = {"proposals": [one.to_dict() for one in found], **moment}
    return Answer(data, _rows(("index", "proposal", "status", "decided by"), rows, "proposals"))


def usage(args: argparse.Namespace) -> Answer:
    """What turns and tool calls used."""
    with open_for_reading(args) as ledger:
        found = ledger.usage(args.by, args.since_ms, args.until_ms)
    rows = [(one.key, name, total) for one in found for name, total in one.counts.items()]
    data = {"by": args.by, "usage": [one.to_dict() for one in found]}
    return Answer(data, _rows((args.by, "count", "total"), rows, "usage"))


def settled(args: argparse.Namespace) -> Answer:
    """Whether answers as of a moment can still change."""
    _, moment = as_of(args, lambda _, __: None)
    word = "settled: an answer as of then never changes" if moment["settled"] else "not settled yet"
    return Answer(moment, [f"{word} ({moment['log_size']:,} entries)"])
