"""`affidavit erase`: show what will go, ask, and take it away."""

from __future__ import annotations

import argparse
import os
import pwd
import sys

from affidavit.apps.cli.opening import open_for_writing
from affidavit.apps.cli.render import Answer, count
from affidavit.apps.plain import one_line
from affidavit.errors import InputError
from affidavit.ledger.results import ErasurePlan

_PENDING = "Somebody is reading the file: it is cleaned when it is opened next."


def erase(args: argparse.Namespace) -> Answer:
    """What was erased."""
    wish = {
        "session_id": args.session,
        "record_id": args.record,
        "turn_id": args.turn,
        "matching": args.matching,
    }
    with open_for_writing(args) as ledger:
        plan = ledger.plan_erasure(**wish)
        if plan.field_count and not args.yes:
            _ask(plan, as_json=getattr(args, "json", False))
        done = ledger.erase(by=args.by or _user(), reason=args.reason, **wish)
    lines = [f"Erased {count(done.field_count, 'text')}"] if done.field_count else []
    lines = lines or ["There is nothing to erase."]
    lines += [_PENDING] if done.scrub == "pending" else []
    lines += _describe_names(plan)
    return Answer({**done.to_dict(), "named_in": plan.named_in}, lines)


def _ask(plan: ErasurePlan, *, as_json: bool) -> None:
    said = [f"{count(plan.field_count, 'text')}, {plan.bytes:,} bytes, will be gone for good:"]
    said += [f"  {number:,} of {one_line(kind)}" for kind, number in sorted(plan.kinds.items())]
    said += _describe_names(plan)
    if not as_json and sys.stdin.isatty():
        print("\n".join(said), file=sys.stderr)
        print("Erase? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise InputError(
        f"nothing was erased: {said[0].removesuffix(':')}",
        hint="Say --yes to erase it.",
        field_count=plan.field_count,
        kinds=plan.kinds,
    )


def _describe_names(plan: ErasurePlan) -> list[str]:
    if not plan.named_in:
        return []
    entries = count(plan.named_in, "entry", "entries")
    return [f"{entries} of the log itself say it in a name; names cannot be erased."]


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
