"""`affidavit search`: the texts that hold some words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from affidavit.apps.cli.opening import open_for_reading
from affidavit.apps.cli.render import Answer
from affidavit.apps.plain import one_line
from affidavit.apps.wiring import now_us
from affidavit.core.moment import render_time
from affidavit.ledger.results import SearchHit


def search(args: argparse.Namespace) -> Answer:
    """What was found, the best first."""
    with open_for_reading(args) as ledger:
        hits = ledger.search(
            " ".join(args.words),
            kind=args.kind,
            session_id=args.session,
            task_id=args.task,
            since_us=None if args.since is None else max(0, now_us() - args.since),
            limit=args.limit,
        )
    lines = [line for hit in hits for line in _describe(hit)] or ["Nothing was found."]
    return Answer({"hits": [hit.to_dict() for hit in hits]}, lines)


def _describe(hit: SearchHit) -> Iterator[str]:
    about = f", task {one_line(hit.task_id)}" if hit.task_id else ""
    about += f", session {one_line(hit.session_id)}" if hit.session_id else ""
    named = f" {one_line(hit.id)}" if hit.id else ""
    yield f"{render_time(hit.at)}  entry {hit.index}, {hit.field} of {hit.kind}{named}{about}"
    yield f"    {one_line(hit.excerpt)}"
