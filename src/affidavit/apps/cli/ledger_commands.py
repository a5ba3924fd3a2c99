"""The commands about a ledger as a whole: init, settings, rebuild."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from affidavit.apps.cli.opening import (
    create,
    is_new,
    ledger_path,
    open_for_reading,
    open_for_writing,
)
from affidavit.apps.cli.render import Answer, count, fields
from affidavit.apps.plain import one_line
from affidavit.errors import InputError
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.settings import SETTINGS, Value, check_settings

_KEPT = (
    "What tools were asked and answered is kept (payloads=keep). "
    "To keep only digests of it: affidavit init --payloads hash"
)


def init(args: argparse.Namespace) -> Answer:
    """Make the ledger; one that is there is changed only where this is said."""
    path = ledger_path(args)
    chosen = _read_settings(args.set)
    if args.payloads not in (None, chosen.get("payloads", args.payloads)):
        raise InputError(
            "--payloads and --set payloads= say different things", hint="Leave one out."
        )
    if args.payloads is not None:
        chosen["payloads"] = args.payloads
    if is_new(path):
        with create(args, {"payloads": "keep", **chosen}) as ledger:
            return _describe_init(ledger, path, created=True)
    if not chosen:
        with open_for_reading(args) as ledger:
            return _describe_init(ledger, path, created=False)
    with open_for_writing(args) as ledger:
        before = ledger.settings
        after = ledger.set(by=None, idempotency_key=None, **chosen)
        changed = {name: after[name] for name in after if before[name] != after[name]}
        return _describe_init(ledger, path, created=False, changed=changed)


def _describe_init(
    ledger: Ledger, path: str, *, created: bool, changed: Mapping[str, Value] | None = None
) -> Answer:
    settings, entries = ledger.settings, len(ledger)
    data = {
        "ledger": path,
        "ledger_id": ledger.ledger_id,
        "created": created,
        "entries": entries,
        "settings": settings,
        "changed": dict(changed or {}),
    }
    verb = "Created the ledger" if created else "There is a ledger already:"
    lines = [f"{verb} {one_line(path)}"]
    shown: list[tuple[str, object]] = [("id", ledger.ledger_id)]
    if not created:
        shown.append(("entries", f"{entries:,}"))
    lines += fields([*shown, ("settings", _one_line_settings(settings))])
    if created and settings["payloads"] == "keep":
        lines.append(_KEPT)
    if changed is not None:
        lines.append(f"Changed: {_one_line_settings(changed) or 'nothing, it was so before'}")
    elif not created:
        lines.append("Nothing was changed.")
    return Answer(data, lines)


def _one_line_settings(settings: Mapping[str, Value]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(settings.items()))


def _read_settings(given: list[str]) -> dict[str, Value]:
    """Settings from NAME=VALUE words."""
    chosen: dict[str, Value] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(
                f"--set: {word!r:.100} is not NAME=VALUE",
                hint="For example --set writeback=reflection.",
                field="set",
            )
        chosen[name] = _read_value(name, value)
    return check_settings(chosen)


def _read_value(name: str, value: str) -> Value:
    """A word as the kind of value a setting has; anything odd is refused as it stands."""
    known = SETTINGS.get(name)
    if known is not None and type(known.default) is int and value.isdecimal():
        return int(value[:10])
    if known is not None and type(known.default) is bool:
        return {"true": True, "false": False}.get(value.lower(), value)
    return value


def settings(args: argparse.Namespace) -> Answer:
    """Show the settings, changed before if this is asked for."""
    chosen = _read_settings(args.set)
    if not chosen:
        for option, value in (("--by", args.by), ("--idempotency-key", args.idempotency_key)):
            if value is not None:
                raise InputError(
                    f"{option} goes with --set NAME=VALUE: there is nothing to change",
                    hint="Say what to change, or leave it out.",
                )
        with open_for_reading(args) as ledger:
            now = ledger.settings
    else:
        with open_for_writing(args) as ledger:
            now = ledger.set(by=args.by, idempotency_key=args.idempotency_key, **chosen)
    return Answer({"settings": now}, _explain_settings(now))


def _explain_settings(now: Mapping[str, Value]) -> Iterator[str]:
    for name, value in sorted(now.items()):
        known = SETTINGS[name]
        allowed = known.allowed
        yield f"{name} = {value}"
        yield f"    {known.meaning}"
        if isinstance(allowed, range):
            yield f"    {allowed.start} to {allowed.stop - 1}"
        else:
            yield f"    one of: {', '.join(map(str, allowed))}"


def rebuild(args: argparse.Namespace) -> Answer:
    """Derive the views again; what cannot be put right decides the exit code."""
    if args.check:
        with open_for_reading(args) as ledger:
            found = ledger.rebuild(check=True)
    else:
        with open_for_writing(args) as ledger:
            found = ledger.rebuild()
    lines = [_sum_up_rebuild(args.check, found.difference_count, found.remaining_count)]
    for one in found.differences:
        index = "-" if one.index is None else one.index
        lines.append(f"  {one.code}  entry {index}, {one_line(one.place)}: {one_line(one.message)}")
    return Answer(found.to_dict(), lines, 0 if found.valid else 1)


def _sum_up_rebuild(check: bool, found: int, remaining: int) -> str:
    if found == 0:
        return "Every table is what the log says."
    differences = count(found, "difference")
    if check:
        return f"{differences} between the tables and the log; nothing was changed."
    if remaining == 0:
        return f"{differences} between the tables and the log; all were put right."
    return f"{differences} between the tables and the log; {remaining:,} cannot be put right."
