"""`affidavit coverage`: which channels were on while a session ran, and what each brought."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from affidavit.apps.cli.opening import open_for_reading
from affidavit.apps.cli.render import Answer, count, fields
from affidavit.core.lifecycle import ORPHANED
from affidavit.core.moment import render_time
from affidavit.errors import InputError
from affidavit.ledger.captures import Capture, Dropped
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Session

# Channels that see what happens; what else comes in was told by somebody.
SEEING: Final = ("hook", "proxy", "otlp", "import")
# What says how a call ended; that one was given up does not.
_ENDS: Final = frozenset(("tool_call.completed", "tool_call.failed", "tool_call.late"))
_US_PER_MS: Final = 1_000
_PAGE: Final = 1_000


def coverage(args: argparse.Namespace) -> Answer:
    """Which channels were on, what they brought, what was lost and what never ended."""
    with open_for_reading(args) as ledger, ledger.transaction(write=False) as snapshot:
        session = snapshot.get_session(args.session)
        if session is None:
            raise InputError(
                f"session_id: there is no session {args.session!r:.100}",
                code="ERR_SESSION_NOT_FOUND",
                hint="`affidavit session list` shows the sessions.",
                field="session_id",
            )
        told = _cover(snapshot, session)
    return Answer(told, _show(told))


def _cover(ledger: Ledger, session: Session) -> dict[str, Any]:
    name = session.session_id
    facts, last_us, calls = _count(ledger, name)
    switches = ledger.list_captures(name)
    whole = [one for one in ledger.list_captures() if one.at <= last_us]
    dropped = [lost for lost in ledger.list_dropped() if _is_within(lost, session, last_us)]
    known = {one.channel for one in (*switches, *whole)} | facts.keys()
    return {
        "session_id": name,
        "state": session.state,
        "from": render_time(session.at),
        "to": render_time(last_us),
        "linked": [f"{link.source} {link.external_id}" for link in ledger.list_links(name)],
        "channels": [*_stretches(switches), *_stretches(whole)],
        "facts": dict(sorted(facts.items())),
        "not_on": [channel for channel in SEEING if channel not in known],
        "dropped": [lost.to_dict() for lost in dropped],
        "tool_calls": calls["requested"],
        "tool_calls_seen_twice": calls["twice"],
        "unfinished_tool_calls": calls["requested"] - calls["finished"],
    }


def _count(ledger: Ledger, session_id: str) -> tuple[Counter[str], int, Counter[str]]:
    """Facts by how they came in, the time of the newest, and tool calls."""
    facts: Counter[str] = Counter()
    asked: dict[str, set[str]] = {}
    finished: set[str] = set()
    last_us, after = 0, None
    while page := ledger.list_entries(
        session_id=session_id, after=after, limit=_PAGE, text_bytes_max=1
    ):
        for entry in page:
            facts[entry.via or "unreadable"] += 1
            last_us = entry.at or last_us
            key = f"{entry.body.get('request_id')} {entry.body.get('call_id')}"
            if entry.kind == "tool_call.requested":
                asked.setdefault(key, set()).add(entry.via or "unreadable")
            elif entry.kind in _ENDS and entry.body.get("error_kind") != ORPHANED:
                finished.add(key)
        after = page[-1].index
    twice = sum(len(vias) > 1 for vias in asked.values())
    ended = len(asked.keys() & finished)
    return facts, last_us, Counter(requested=len(asked), finished=ended, twice=twice)


def _is_within(lost: Dropped, session: Session, last_us: int) -> bool:
    """Whether events were lost while the session ran: nobody knows whose they were."""
    begun_ms, last_ms = session.at // _US_PER_MS, last_us // _US_PER_MS
    is_open = session.state == "open"
    return lost.to_ms >= begun_ms and (is_open or lost.from_ms <= last_ms)


def _stretches(switches: Sequence[Capture]) -> Iterator[dict[str, Any]]:
    """From each time a channel was switched on to when it was switched off."""
    begun: dict[tuple[str, str], dict[str, Any]] = {}
    for one in switches:
        key = one.channel, one.source
        if one.state == "started":
            if key in begun:
                yield begun.pop(key)
            begun[key] = {
                "channel": one.channel,
                "source": one.source,
                "version": one.version,
                "whole_ledger": one.session_id is None,
                "from": render_time(one.at),
                "to": None,
                "count": None,
            }
        else:
            stretch = begun.pop(key, {"channel": one.channel, "source": one.source, "from": None})
            yield {**stretch, "to": render_time(one.at), "count": one.count}
    yield from begun.values()


def _show(told: dict[str, Any]) -> Iterator[str]:
    yield f"Session {told['session_id']} ({told['state']}), {told['from']} to {told['to']}"
    pairs: list[tuple[str, object]] = [("known as", name) for name in told["linked"]]
    for one in told["channels"]:
        until = f"to {one['to']}" if one["to"] else "and never said to be off"
        brought = "" if one["count"] is None else f", {count(one['count'], 'fact')}"
        begun = one["from"] or "an unknown time"
        pairs.append((one["channel"], f"on from {begun} {until} ({one['source']}){brought}"))
    said = ", ".join(f"{number:,} by {via}" for via, number in told["facts"].items())
    pairs.append(("facts", said or "none"))
    if told["not_on"]:
        silent = ", ".join(told["not_on"])
        pairs.append(("not on", f"{silent}: what only these see was not recorded"))
    calls = count(told["unfinished_tool_calls"], "tool call")
    pairs.append(("no end", f"{calls} of {told['tool_calls']:,}"))
    if told["tool_calls_seen_twice"]:
        pairs.append(("seen twice", f"{count(told['tool_calls_seen_twice'], 'tool call')}"))
    for lost in told["dropped"]:
        times = f"{render_time(lost['from_ms'] * 1_000)} to {render_time(lost['to_ms'] * 1_000)}"
        what = count(lost["count"], "event")
        pairs.append(("lost", f"{what} of {lost['channel']}, {times}, of this session or another"))
    if not told["dropped"]:
        pairs.append(("lost", "nothing that is known"))
    yield from fields(pairs)
