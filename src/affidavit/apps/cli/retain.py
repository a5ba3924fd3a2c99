"""`affidavit retain`: how long texts are kept, and erasing what is older."""

from __future__ import annotations

import argparse

from affidavit.apps.cli.opening import open_for_writing
from affidavit.apps.cli.render import Answer, count
from affidavit.errors import InputError

_DAY_US = 86_400_000_000


def retain(args: argparse.Namespace) -> Answer:
    """What was erased because it was too old, and which periods hold."""
    if (args.kind is None) != (args.older_than is None):
        raise InputError(
            "--kind and --older-than belong together",
            hint="For example: affidavit retain --kind tool_call --older-than 90d",
        )
    with open_for_writing(args) as ledger:
        if args.kind is None:
            done = ledger.retain()
        else:
            days = -(-args.older_than // _DAY_US)
            done = ledger.set_retention(args.kind, days, by=args.by)
        settings = ledger.settings
    periods = {name: value for name, value in settings.items() if name.startswith("retain_")}
    lines = [f"Erased {count(number, 'text')} of {kind}s" for kind, number in done.erased.items()]
    lines = lines or ["Nothing was too old."]
    for name, days in periods.items():
        kind = name.removeprefix("retain_").removesuffix("_days")
        kept = count(int(days), "day") if days else "for ever"
        lines.append(f"  texts of {kind}s are kept {kept}")
    return Answer({**done.to_dict(), "periods": periods}, lines)
