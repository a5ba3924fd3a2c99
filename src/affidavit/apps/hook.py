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
from itertools import pairwise
from pathlib import Path
from typing import Final, NoReturn

from affidavit.apps import places
from affidavit.capture.hooks.spool import Spool

CLIENTS: Final = ("claude-code",)
EVENT_BYTES_MAX: Final = 64 * 1024 * 1024


def run(words: list[str]) -> NoReturn:
    """Take one event from stdin; ends the process at once."""
    code = 0
    try:
        code = take(words)
    except BaseException as error:  # noqa: BLE001 - an agent must not fail because of its record
        _complain(words, error)
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
    os._exit(code)


def take(words: list[str]) -> int:
    """Keep one event; answers with the exit code."""
    spool = open_spool(_ledger(words))
    body = sys.stdin.buffer.read(EVENT_BYTES_MAX + 1)
    about = {
        "ppid": os.getppid(),
        "root": os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd()),
    }
    if len(body) > EVENT_BYTES_MAX:
        body = b"too large"
    spool.put(json.dumps(about).encode(), body)
    start_drain(spool, _ledger(words))
    return 0


def _ledger(words: list[str]) -> str:
    given = None
    for before, word in pairwise(words):
        if before == "--ledger":
            given = word
    return places.ledger_path(given)


def open_spool(ledger: str) -> Spool:
    """Where the events wait that belong into a ledger."""
    import hashlib  # noqa: PLC0415 - together with what else the name needs

    name = hashlib.sha256(os.fsencode(ledger)).hexdigest()[:16]
    return Spool(places.state_folder() / "hooks" / name)


def start_drain(spool: Spool, ledger: str) -> None:
    """Have somebody bring the events in, unless somebody does already."""
    with spool.hold() as free:
        pass
    if not free:
        return
    words = [sys.executable, "-EP", "-m", "affidavit.apps.hook_drain", ledger]
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    os.posix_spawn(sys.executable, words, os.environ, file_actions=nowhere)


def _complain(words: list[str], error: BaseException) -> None:
    with contextlib.suppress(BaseException):
        open_spool(_ledger(words)).note(f"hook: {type(error).__name__}: {error}")
