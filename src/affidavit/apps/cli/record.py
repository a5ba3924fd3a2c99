"""Recording decisions, and reading them again: record, thoughts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from affidavit.apps.cli.opening import ledger_path, open_for_reading, write_or_create
from affidavit.apps.cli.render import Answer, block, fields
from affidavit.apps.plain import one_line
from affidavit.core.moment import render_time
from affidavit.core.names import PAYLOAD_BYTES_MAX
from affidavit.errors import InputError
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import ThoughtRecord


def record(args: argparse.Namespace) -> Answer:
    """Record one decision."""
    content = _read_content(args.content)
    written = write_or_create(
        args,
        lambda ledger: ledger.record_thought(
            type=args.type,
            task_id=args.task,
            agent_id=args.agent,
            content=content,
            session_id=args.session,
            idempotency_key=args.idempotency_key,
        ),
    )
    lines = [f"Recorded {written.type} {one_line(written.id)}"]
    lines += fields(
        [
            ("task", written.task_id),
            ("agent", written.agent_id),
            ("session", written.session_id),
            ("entry", f"{written.index} at {render_time(written.at)}"),
            ("hash", written.hash),
            ("ledger", ledger_path(args)),
        ]
    )
    return Answer(written.to_dict(), lines)


def _read_content(given: str | None) -> str:
    if given is not None and given != "-":
        return given
    if given is None and sys.stdin.isatty():
        raise InputError(
            "content: is missing",
            hint="Give the text as the last word, or `-` to type it and end with Ctrl-D.",
            field="content",
        )
    data = sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1)
    if len(data) > PAYLOAD_BYTES_MAX:
        raise InputError(
            f"content: more than {PAYLOAD_BYTES_MAX:,} bytes on standard input, the limit",
            code="ERR_TOO_LARGE",
            hint="Store the large part elsewhere and record its digest.",
            field="content",
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"content: standard input is not UTF-8 at byte {error.start:,}",
            hint="Convert it to UTF-8 first, or record its digest.",
            field="content",
        ) from None


def thoughts(args: argparse.Namespace) -> Answer:
    """Decisions that were recorded."""
    if getattr(args, "json", False):
        with open_for_reading(args) as ledger:
            return Answer({"thoughts": [one.to_dict() for one in _wanted(ledger, args)]}, ())
    return Answer({}, _lines(args))


def _wanted(ledger: Ledger, args: argparse.Namespace) -> Iterator[ThoughtRecord]:
    chosen = {
        "task_id": args.task,
        "session_id": args.session,
        "type": args.type,
        "after": args.after,
    }
    if args.limit is not None:
        return iter(ledger.list_thoughts(**chosen, limit=args.limit))
    return ledger.iter_thoughts(**chosen)


def _lines(args: argparse.Namespace) -> Iterator[str]:
    """Lines as they are read: a long history is never held as a whole."""
    with open_for_reading(args) as ledger:
        empty = True
        for one in _wanted(ledger, args):
            empty = False
            yield from _describe(one)
    if empty:
        yield "No records."


def _describe(one: ThoughtRecord) -> Iterator[str]:
    session = f", session {one_line(one.session_id)}" if one.session_id else ""
    agent, task = one_line(one.agent_id), one_line(one.task_id)
    yield f"{one_line(one.timestamp)}  {one_line(one.type)} by {agent}, task {task}{session}"
    yield f"  {one_line(one.id)}  entry {one.index}"
    yield from block(_content(one))
    yield ""


def _content(one: ThoughtRecord) -> str:
    if one.content is None:
        return "(erased)" if one.erased else "(lost: `affidavit verify` says more)"
    return one.content.rstrip("\n")
