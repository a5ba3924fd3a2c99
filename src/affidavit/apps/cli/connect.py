"""`affidavit connect` and `affidavit disconnect`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from affidavit.apps import places
from affidavit.apps.cli.capture_arguments import MCP_URL
from affidavit.apps.cli.opening import create, is_new, ledger_path, open_for_writing
from affidavit.apps.cli.render import Answer
from affidavit.apps.connecting import files
from affidavit.apps.connecting.claude_code import (
    LENIENT_SINCE,
    Place,
    Wanted,
    find_commands,
    find_places,
    is_strict,
)
from affidavit.apps.connecting.claude_version import find_version, write_version
from affidavit.apps.connecting.files import Change
from affidavit.apps.plain import one_line
from affidavit.errors import invalid

_STORED = {
    "keep": "prompts, replies and tool calls with what was asked and answered are kept, secrets "
    "removed, erasable (`affidavit erase`)",
    "hash": "prompts and replies are kept, secrets removed, erasable; of what tools were asked and "
    "answered only digests",
}
_REFUSE = "to refuse: --payloads hash, or `affidavit disconnect claude-code`"
_NO_SERVER = "note: the MCP server's part is missing: pip install 'affidavit[server]'"


def connect(args: argparse.Namespace) -> Answer:
    """Have Claude Code tell what it does; says what changes, and what will be stored."""
    found, named = _places(args), getattr(args, "ledger", None)
    version = find_version()
    wanted = Wanted(ledger_path(args) if named is not None else None, args.gate, version=version)
    if args.to is not None or args.url is not None:
        wanted = _of_another(args, wanted)
    changes = files.plan_connecting(found, wanted)
    doubled = _find_doubled(args, found, wanted)
    payloads = args.payloads or "keep"
    if not args.dry_run:
        payloads = _prepare_ledger(args) if wanted.to is None else ""
        files.carry_out(changes, _backups())
    lines = _show(changes, dry_run=args.dry_run, nothing="Claude Code is connected already.")
    lines += doubled
    if wanted.to is not None:
        lines.append(f"What is stored, whoever serves {one_line(wanted.to)} decides.")
        return Answer(_told(changes, dry_run=args.dry_run), lines)
    lines.append(f"From now on {_STORED[payloads]}; {_REFUSE}.")
    lines += _doubts(version)
    told = {**_told(changes, dry_run=args.dry_run), "payloads": payloads}
    told["client_version"] = None if version is None else write_version(version)
    return Answer(told, lines)


def _find_doubled(args: argparse.Namespace, found: Sequence[Place], wanted: Wanted) -> list[str]:
    """A warning where the same session would be recorded by two different hooks."""
    other = find_places(None if args.project else Path.cwd())[0].path
    try:
        theirs = find_commands(other.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    ours = find_commands(found[0].add("", wanted))
    if other.resolve() == found[0].path.resolve() or not theirs or theirs == ours:
        return []
    note = "note: with other options than here, so that what happens in this project is recorded "
    return [f"{note}twice: {one_line(str(other))}; connect both alike, or disconnect one"]


def _doubts(version: tuple[int, ...] | None) -> Iterator[str]:
    """What will not work, or may not."""
    needed = write_version(LENIENT_SINCE)
    if version is None:
        yield (
            f"note: no `claude` was found to ask for its version; before {needed} Claude Code "
            "ignores settings that name events it does not know, and nothing would be recorded"
        )
    elif is_strict(version):
        yield (
            f"note: Claude Code {write_version(version)} knows few events: failures, refusals and "
            f"compaction's end stay unseen. Update it to {needed} or newer, then connect again"
        )
    if find_spec("mcp") is None:
        yield _NO_SERVER


def _of_another(args: argparse.Namespace, wanted: Wanted) -> Wanted:
    """Connected with a server of another user; what needs the ledger itself is refused."""
    given = {"url": args.to is None, "ledger": wanted.ledger, "gate": args.gate}
    given["payloads"] = args.payloads
    for name, is_given in given.items():
        if is_given:
            raise invalid(
                name,
                "means nothing without --to" if name == "url" else "is for whoever serves to say",
                hint="--url goes with --to; --ledger, --gate and --payloads go without it.",
            )
    return wanted._replace(to=str(Path(args.to).absolute()), url=args.url or MCP_URL)


def _prepare_ledger(args: argparse.Namespace) -> str:
    """The ledger is there, and stores what was said; how it stores payloads."""
    if is_new(ledger_path(args)):
        with create(args, {"payloads": args.payloads or "keep"}) as ledger:
            return str(ledger.settings["payloads"])
    with open_for_writing(args) as ledger:
        if args.payloads is not None:
            ledger.set(payloads=args.payloads)
        return str(ledger.settings["payloads"])


def disconnect(args: argparse.Namespace) -> Answer:
    """Leave every file as it was before; what is recorded stays."""
    found, backups = _places(args), _backups()
    changes = files.plan_disconnecting(found, backups)
    if not args.dry_run:
        files.carry_out(changes, None)
        files.forget(found, backups)
    lines = _show(changes, dry_run=args.dry_run, nothing="Claude Code is not connected.")
    return Answer(_told(changes, dry_run=args.dry_run), lines)


def _places(args: argparse.Namespace) -> tuple[Place, ...]:
    return find_places(Path.cwd() if args.project else None)


def _backups() -> Path:
    return places.state_folder() / "connected"


def _show(changes: Sequence[Change], *, dry_run: bool, nothing: str) -> list[str]:
    lines = [one_line(line) for change in changes for line in change.diff()]
    if not changes:
        return [nothing]
    verb = "would change" if dry_run else "changed"
    lines.append("")
    lines += [f"{verb} {one_line(str(change.path))}" for change in changes]
    return lines


def _told(changes: Sequence[Change], *, dry_run: bool) -> dict[str, object]:
    return {
        "changed": [str(change.path) for change in changes],
        "dry_run": dry_run,
        "diff": ["\n".join(change.diff()) for change in changes],
    }
