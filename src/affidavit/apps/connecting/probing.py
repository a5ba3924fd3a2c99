"""Whether events get through: one is sent by the command that the client would run.

The agent's own way in, the MCP server, is tried too.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import Final, NamedTuple

from affidavit.apps.connecting.claude_code import (
    find_command,
    find_newer_events,
    find_places,
    is_strict,
)
from affidavit.apps.connecting.claude_version import find_version, write_version
from affidavit.apps.connecting.probing_server import find_server_trouble
from affidavit.apps.hook import find_goal, open_spool
from affidavit.capture.hooks.facts import PROBE
from affidavit.capture.hooks.spool import Spool
from affidavit.errors import AffidavitError

_WAIT_S: Final = 15.0
_LOOK_S: Final = 0.05


class Probed(NamedTuple):
    """What came of it; `is_broken` where nothing gets through."""

    said: str
    trouble: str = ""
    hint: str = ""
    is_broken: bool = False


def probe(ledger: str) -> Probed:
    """Send an event through, where a client is connected, and look at what was laid aside."""
    try:
        commands = {command for command in map(_command, _settings()) if command is not None}
    except AffidavitError as error:
        return Probed("", error.message, error.hint)
    spools = {ledger: open_spool(ledger)}
    for command in sorted(commands):
        words = shlex.split(command)
        goal = find_goal(words if {"--ledger", "--to"} & {*words} else ["--ledger", ledger])
        spools[goal.place] = goal.spool
        if (trouble := _send(command, goal.spool)) is not None:
            hint = "Connect again: `affidavit connect claude-code`."
            return Probed("", f"{trouble} (`{command}`)", hint, is_broken=True)
    if (strict := _find_strict()) is not None:
        return strict
    if commands and (unheard := _find_server_trouble()) is not None:
        return unheard
    for spool in spools.values():
        if refused := spool.refused():
            said = f"{len(refused)} events were laid aside, the newest: {spool.last_note()}"
            hint = f"Look into {spool.folder / 'refused'}; remove what is settled."
            return Probed("", said, hint)
    if not commands:
        return Probed("no client is connected (`affidavit connect claude-code`)")
    return Probed("Claude Code is connected; an event went the whole way, the MCP server answers")


def _find_strict() -> Probed | None:
    """Whether the client is one that ignores settings for the events we asked for."""
    version = find_version()
    if version is None or not is_strict(version):
        return None
    for path in _settings():
        try:
            newer = find_newer_events(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        if newer:
            said = f"Claude Code {write_version(version)} may ignore all of {path}"
            why = f"it names events that are newer ({', '.join(newer[:3])}, ...)"
            hint = "Update Claude Code, or connect again: `affidavit connect claude-code`."
            return Probed("", f"{said}: {why}", hint, is_broken=True)
    return None


def _find_server_trouble() -> Probed | None:
    try:
        said = find_server_trouble([find_places(where)[1].path for where in (None, Path.cwd())])
    except AffidavitError as error:
        return Probed("", error.message, error.hint)
    hint = "Connect again: `affidavit connect claude-code`."
    return None if said is None else Probed("", said, hint, is_broken=True)


def goes_elsewhere() -> bool:
    """Whether a client that is connected brings what it does to a server of another user."""
    return any("--to" in shlex.split(_command(settings) or "") for settings in _settings())


def _settings() -> list[Path]:
    return [find_places(None)[0].path, find_places(Path.cwd())[0].path]


def _command(settings: Path) -> str | None:
    try:
        return find_command(settings.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _send(command: str, spool: Spool) -> str | None:
    """Why an event did not get through; None where it did."""
    before = spool.answered()
    says = json.dumps({"hook_event_name": PROBE}).encode()
    environment = {key: value for key, value in os.environ.items() if key != "CLAUDE_PROJECT_DIR"}
    try:
        ran = subprocess.run(  # noqa: S603 - what the client runs at each event
            ["/bin/sh", "-c", command],
            input=says,
            capture_output=True,
            timeout=_WAIT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the hook did not end in {_WAIT_S:.0f} s"
    if ran.returncode != 0:
        return f"the hook ends with {ran.returncode}: {ran.stderr.decode(errors='replace'):.200}"
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        if spool.answered() != before:
            return None
        time.sleep(_LOOK_S)
    return f"an event did not arrive in {_WAIT_S:.0f} s: {spool.last_note() or 'no note why'}"
