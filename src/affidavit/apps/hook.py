"""`affidavit hook`: keeps an event on disk and lets another process bring it into the ledger.

A client runs this at every event and waits for it: nothing heavy is loaded here, nothing is asked
of the ledger, and whatever happens the client is told that all is well. Only a gate that a person
asked for may refuse, and it loads what it needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from affidavit.apps import places
from affidavit.capture.hooks.losses import count_lost, take_room
from affidavit.capture.hooks.own_calls import MARK, name_run
from affidavit.capture.hooks.spool import Spool

CLIENTS: Final = ("claude-code",)
NUDGE_EVERY_S: Final = 600
NUDGE: Final = (
    "A way was just chosen: record the decision now with thought_record (MCP server affidavit, "
    "type decision): what was chosen, why, and what was rejected."
)
# What to look for before anything is parsed: most events hold none of it.
_CHOSEN: Final = (b'"ExitPlanMode"', b'"AskUserQuestion"')
_GATED: Final = (b'"Stop"', b'"TaskCompleted"')
EVENT_BYTES_MAX: Final = 64 * 1024 * 1024
_BRINGS: Final = "affidavit.apps.hook_drain"
_SENDS: Final = "affidavit.apps.hook_sending"


class Goal(NamedTuple):
    """Where events go: a ledger, or the socket of another user's server; who brings them there."""

    place: str
    module: str
    spool: Spool


def run(words: list[str]) -> NoReturn:
    """Take one event from stdin; ends the process at once."""
    code = take_anyway(words)
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def take_anyway(words: list[str]) -> int:
    """Keep one event if that can be done; answers with the exit code."""
    try:
        return take(words)
    except BaseException as error:  # noqa: BLE001 - an agent must not fail because of its record
        _complain(words, error)
        return 0


def take(words: list[str]) -> int:
    """Keep one event; answers with the exit code."""
    goal = find_goal(words)
    spool = goal.spool
    body = sys.stdin.buffer.read(EVENT_BYTES_MAX + 1)
    about = {"ppid": os.getppid(), "root": project_root()}
    if len(body) > EVENT_BYTES_MAX:
        body = b"too large"
    try:
        spool.put(json.dumps(about).encode(), body)
    except OSError:
        count_lost(spool.folder, time.time_ns() // 1_000_000)
        raise
    with contextlib.suppress(OSError):
        take_room(spool.folder)
    # A ledger of another user cannot be read here: there is nothing to judge a gate by.
    is_ours = goal.module == _BRINGS
    if "--gate" in words and is_ours and any(name in body for name in _GATED):
        return _pass_gate(goal, body)
    start_drain(goal)
    if is_ours and MARK in body and b'"PreToolUse"' in body:
        _name_run(spool, body)
    if any(name in body for name in _CHOSEN):
        _nudge(spool, body)
    return 0


def _name_run(spool: Spool, body: bytes) -> None:
    """Our own server is about to be called: it is to know by which run."""
    says = json.loads(body)
    run, call_id = says.get("session_id"), says.get("tool_use_id")
    if isinstance(run, str) and isinstance(call_id, str):
        name_run(spool.folder, call_id, run)


def _nudge(spool: Spool, body: bytes) -> None:
    """Ask for the decision at the moment it was made, and not again for a while."""
    says = json.loads(body)
    tool, event = says.get("tool_name"), says.get("hook_event_name")
    if event != "PostToolUse" or f'"{tool}"'.encode() not in _CHOSEN:
        return
    if not spool.claim(f"nudge-{_short(says.get('session_id'))}", NUDGE_EVERY_S):
        return
    answer = {"hookEventName": event, "additionalContext": NUDGE}
    sys.stdout.write(json.dumps({"hookSpecificOutput": answer}))


def _pass_gate(goal: Goal, body: bytes) -> int:
    """Let the agent stop, or refuse in the way its event has for that."""
    says, spool = json.loads(body), goal.spool
    if says.get("hook_event_name") not in ("Stop", "TaskCompleted"):
        start_drain(goal)
        return 0
    from affidavit.apps import hook_gate  # noqa: PLC0415 - only where a person asked for it

    try:
        why = hook_gate.find_refusal(goal.place, spool, says)
    except Exception as error:  # noqa: BLE001 - whoever cannot judge lets go
        said = f"{type(error).__name__}: {error}"
        spool.note(f"gate: {said}")
        hook_gate.tell(spool, says, "GateFailed", said)
        why = None
    else:
        if why is not None:
            hook_gate.tell(spool, says, "GateRefused", why)
    start_drain(goal)
    if why is None:
        return 0
    if says["hook_event_name"] == "Stop":
        sys.stdout.write(json.dumps({"decision": "block", "reason": why}))
        return 0
    sys.stderr.write(f"{why}\n")
    return 2


def _short(name: object) -> str:
    import hashlib  # noqa: PLC0415 - few events need it

    return hashlib.sha256(str(name).encode("utf-8", "replace")).hexdigest()[:32]


def find_goal(words: list[str]) -> Goal:
    """Where the events go that a hook with these words takes."""
    if (to := _word_after("--to", words)) is not None:
        path = os.path.realpath(to)
        spool = Spool(places.state_folder() / "hooks" / _short(f"to {path}"))
        return Goal(path, _SENDS, spool)
    ledger = places.ledger_path(_word_after("--ledger", words))
    return Goal(ledger, _BRINGS, open_spool(ledger))


def _word_after(option: str, words: list[str]) -> str | None:
    return next((word for before, word in reversed([*pairwise(words)]) if before == option), None)


def project_root() -> str:
    """Where the client works, as it says; else where it started us."""
    return os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd())


def open_spool(ledger: str) -> Spool:
    """Where the events wait that belong into a ledger."""
    return Spool(places.state_folder() / "hooks" / _short(os.path.realpath(ledger)))


def start_drain(goal: Goal) -> None:
    """Have somebody bring the events in, unless somebody does already."""
    with goal.spool.hold() as free:
        pass
    if not free:
        return
    words = [sys.executable, "-EP", "-m", goal.module, goal.place]
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    os.posix_spawn(sys.executable, words, os.environ, file_actions=nowhere)


def _complain(words: list[str], error: BaseException) -> None:
    with contextlib.suppress(BaseException):
        find_goal(words).spool.note(f"hook: {type(error).__name__}: {error}")
