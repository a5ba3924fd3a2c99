"""What Claude Code's configuration holds when it is connected: hooks, an MCP server, five lines.

    here               for everything this user does          --project
    hooks              ~/.claude/settings.json                 .claude/settings.json
    MCP server         ~/.claude.json                          .mcp.json
    lines for agents   ~/.claude/CLAUDE.md                     CLAUDE.md

With CLAUDE_CONFIG_DIR its folder takes the place of ~/.claude, and holds .claude.json too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from affidavit.errors import InputError

# Not among them: WorktreeCreate, whose hook takes the place of what Claude Code does itself;
# MessageDisplay, which holds up every second of what is shown; FileChanged, which needs file names.
EVENTS: Final = (
    "SessionStart",
    "Setup",
    "InstructionsLoaded",
    "ConfigChange",
    "CwdChanged",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "PreToolUse",
    "PermissionRequest",
    "PermissionDenied",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "Elicitation",
    "ElicitationResult",
    "SubagentStart",
    "SubagentStop",
    "TaskCreated",
    "TaskCompleted",
    "TeammateIdle",
    "WorktreeRemove",
    "PreCompact",
    "PostCompact",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
# Claude Code before this version ignores all settings that name an event it does not know.
LENIENT_SINCE: Final = (2, 1, 101)
_KNOWN_BEFORE: Final = frozenset(
    (
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Notification",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "SessionEnd",
    )
)
_OF_TOOLS: Final = frozenset(
    ("PreToolUse", "PermissionRequest", "PermissionDenied", "PostToolUse", "PostToolUseFailure")
)
_GATED: Final = ("Stop", "TaskCompleted")
_SERVER: Final = "affidavit"
_OURS: Final = re.compile(r"-m affidavit hook claude-code(?: |$)")
_TIMEOUT_S: Final = 30
_BEGIN, _END = "<!-- affidavit -->", "<!-- /affidavit -->"
LINES: Final = f"""\
{_BEGIN}
What you do here is recorded by Affidavit; why you do it only you know. When you choose between
ways, call `thought_record` of the MCP server `affidavit` (type decision): what, why, what you
rejected, what you doubt. Before you finish, record what was done, checked and left (reflection).
{_END}
"""


class Wanted(NamedTuple):
    """How a client is to be connected."""

    ledger: str | None = None
    gate: bool = False
    python: str = sys.executable
    # Where the ledger is another user's: the socket for hooks, and the address of its MCP endpoint.
    to: str | None = None
    url: str = ""
    version: tuple[int, ...] | None = None

    @property
    def events(self) -> tuple[str, ...]:
        """The events this version can be asked for."""
        if not is_strict(self.version):
            return EVENTS
        return tuple(name for name in EVENTS if name in _KNOWN_BEFORE)


def is_strict(version: tuple[int, ...] | None) -> bool:
    """Whether a version is known to ignore settings in which an event is new to it."""
    return version is not None and version < LENIENT_SINCE


class Place(NamedTuple):
    """One file, and how its text becomes a connected one and becomes free of us again."""

    path: Path
    add: Callable[[str, Wanted], str]
    take_out: Callable[[str], str]


def find_places(project: Path | None) -> tuple[Place, ...]:
    """The files of this user, or of a project."""
    if project is not None:
        folder, servers, lines = project / ".claude", project / ".mcp.json", project / "CLAUDE.md"
    else:
        chosen = os.environ.get("CLAUDE_CONFIG_DIR")
        folder = Path(chosen).expanduser() if chosen else Path.home() / ".claude"
        servers = (folder if chosen else Path.home()) / ".claude.json"
        lines = folder / "CLAUDE.md"
    return (
        Place(folder / "settings.json", _add_hooks, _take_out_hooks),
        Place(servers, _add_server, _take_out_server),
        Place(lines, _add_lines, _take_out_lines),
    )


def hook_command(wanted: Wanted) -> str:
    """What Claude Code runs at each event: no folder of a project can put modules in its way."""
    words = [wanted.python, "-EP", "-m", "affidavit", "hook", "claude-code"]
    if wanted.ledger is not None:
        words += ["--ledger", wanted.ledger]
    if wanted.to is not None:
        words += ["--to", wanted.to]
    return shlex.join(words)


def find_command(settings: str) -> str | None:
    """The command of our hook in the text of settings; None where there is none."""
    hooks = _read(settings).get("hooks", {})
    groups = hooks.get("SessionStart", []) if isinstance(hooks, dict) else []
    found = (one.get("command") for group in groups for one in group.get("hooks", []))
    return next((text for text in found if isinstance(text, str) and _OURS.search(text)), None)


def find_commands(settings: str) -> frozenset[str]:
    """Every command of ours in the text of settings; Claude Code runs equal ones once."""
    hooks = _read(settings).get("hooks", {})
    if not _is_hooks(hooks):
        return frozenset()
    groups = (group for groups in hooks.values() for group in groups)
    return frozenset(str(one["command"]) for group in groups for one in _ours(group))


def find_server(servers: str) -> list[str] | str | None:
    """How our MCP server is started, or its address; None where the text names none."""
    known = _read(servers).get("mcpServers")
    ours = known.get(_SERVER) if isinstance(known, dict) else None
    if not isinstance(ours, dict):
        return None
    if isinstance(url := ours.get("url"), str):
        return url
    words = [ours.get("command"), *(ours.get("args") or ())]
    return [str(word) for word in words] if "affidavit" in words else None


def find_newer_events(settings: str) -> list[str]:
    """Events at which our hook runs and that a strict version may not know."""
    hooks = _read(settings).get("hooks", {})
    if not _is_hooks(hooks):
        return []
    ours = (name for name, groups in hooks.items() if any(map(_is_ours, groups)))
    return sorted(name for name in ours if name not in _KNOWN_BEFORE)


def _add_hooks(text: str, wanted: Wanted) -> str:
    settings = _without_hooks(_read(text))
    hooks = settings.setdefault("hooks", {})
    for name in wanted.events:
        command = hook_command(wanted)
        if wanted.gate and name in _GATED:
            command += " --gate"
        group: dict[str, Any] = {"matcher": "*"} if name in _OF_TOOLS else {}
        group["hooks"] = [{"type": "command", "command": command, "timeout": _TIMEOUT_S}]
        hooks.setdefault(name, []).append(group)
    return _write(settings, text)


def _take_out_hooks(text: str) -> str:
    return _write(_without_hooks(_read(text)), text)


def _without_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    hooks = settings.get("hooks")
    if hooks is None:
        return settings
    if not _is_hooks(hooks):
        raise InputError("its hooks are not of the shape that Claude Code reads")
    kept: dict[str, Any] = {}
    for name, groups in hooks.items():
        left = [one for group in groups if (one := _without_ours(group)) is not None]
        if left or not groups:
            kept[name] = left
    rest = {key: value for key, value in settings.items() if key != "hooks"}
    return {**settings, "hooks": kept} if kept or not hooks else rest


def _is_hooks(hooks: Any) -> bool:
    return isinstance(hooks, dict) and all(
        isinstance(groups, list)
        and all(
            isinstance(group, dict)
            and isinstance(group.get("hooks", []), list)
            and all(isinstance(one, dict) for one in group.get("hooks", []))
            for group in groups
        )
        for groups in hooks.values()
    )


def _ours(group: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in group.get("hooks", []) if _OURS.search(str(one.get("command")))]


def _is_ours(group: dict[str, Any]) -> bool:
    return bool(_ours(group))


def _without_ours(group: dict[str, Any]) -> dict[str, Any] | None:
    """A group without our hook; None where nothing else was in it."""
    own = _ours(group)
    if not own:
        return group
    left = [one for one in group["hooks"] if one not in own]
    return {**group, "hooks": left} if left else None


def _add_server(text: str, wanted: Wanted) -> str:
    servers = _read(text)
    known = servers.setdefault("mcpServers", {})
    if not isinstance(known, dict):
        raise InputError("its mcpServers are not of the shape that Claude Code reads")
    known[_SERVER] = _server(wanted)
    return _write(servers, text)


def _server(wanted: Wanted) -> dict[str, Any]:
    if wanted.to is not None:
        return {"type": "http", "url": wanted.url}
    ledger = [] if wanted.ledger is None else ["--ledger", wanted.ledger]
    return {
        "type": "stdio",
        "command": wanted.python,
        "args": ["-EP", "-m", "affidavit", *ledger, "mcp", "--bind", "auto"],
    }


def _take_out_server(text: str) -> str:
    servers = _read(text)
    known = servers.get("mcpServers")
    if isinstance(known, dict):
        known.pop(_SERVER, None)
        if not known:
            del servers["mcpServers"]
    return _write(servers, text)


def _add_lines(text: str, _: Wanted) -> str:
    begin, end = text.find(_BEGIN), text.find(_END)
    if 0 <= begin < end:
        return text[:begin] + LINES.rstrip("\n") + text[end + len(_END) :]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + LINES


def _take_out_lines(text: str) -> str:
    begin, end = text.find(_BEGIN), text.find(_END)
    if not 0 <= begin < end:
        return text
    before, after = text[:begin], text[end + len(_END) :].removeprefix("\n")
    return (before.removesuffix("\n") if before.endswith("\n\n") else before) + after


def _read(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise InputError("it is not a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _write(value: dict[str, Any], like: str) -> str:
    """JSON, laid out as the text before was; the same value is the same text."""
    if like.strip() and _read(like) == value:
        return like
    indent = re.search(r"\n([ \t]+)\S", like)
    text = json.dumps(value, indent=indent[1] if indent else 2, ensure_ascii=False)
    return text + ("\n" if like.endswith("\n") or not like else "")
