"""Which run a call of our own MCP server comes from: the hook before it knows, the server asks.

<folder>/calls/<digest of the call's id>    the run, from the hook until the server has taken it

A client's environment tells a server only the run it was started in; one may go on in another.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path
from typing import Final

# What an MCP server of ours is called in a client, before the name of each tool.
MARK: Final = b'"mcp__affidavit__'
_RUN_BYTES_MAX: Final = 10_000
# A call that never came was refused.
_STALE_S: Final = 3_600


def name_run(folder: Path, call_id: str, run: str) -> None:
    """Say in which run a call is made."""
    place = _place(folder, call_id)
    place.parent.mkdir(0o700, parents=True, exist_ok=True)
    for old in place.parent.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if time.time() - old.stat().st_mtime > _STALE_S:
                old.unlink()
    fresh = place.with_suffix(".part")
    fresh.write_bytes(run.encode("utf-8", "replace")[:_RUN_BYTES_MAX])
    fresh.replace(place)


def take_run(folder: Path, call_id: str) -> str | None:
    """The run a call is made in, where its hook said so; told once."""
    place = _place(folder, call_id)
    try:
        run = place.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    with contextlib.suppress(OSError):
        place.unlink()
    return run or None


def _place(folder: Path, call_id: str) -> Path:
    return folder / "calls" / hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:32]
