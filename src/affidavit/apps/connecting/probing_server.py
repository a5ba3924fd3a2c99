"""Whether the MCP server that a client would start answers: it is started, greeted, and ended."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

from affidavit.apps.connecting.claude_code import find_server

_WAIT_S: Final = 30.0
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "affidavit doctor", "version": "1"},
    },
}


def find_server_trouble(files: list[Path]) -> str | None:
    """Why an agent could not say anything through our server; None where it could."""
    commands = [words for words in map(_command, files) if words is not None]
    if not commands:
        return "the agent has no MCP server to record with: no configuration of it is found"
    return next((why for words in commands if (why := _greet(words)) is not None), None)


def _command(servers: Path) -> list[str] | None:
    try:
        return find_server(servers.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _greet(words: list[str]) -> str | None:
    said = f"the MCP server (`{' '.join(words)}`)"
    try:
        ran = subprocess.run(  # noqa: S603 - what the client starts
            words,
            input=json.dumps(_HELLO).encode() + b"\n",
            capture_output=True,
            timeout=_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{said} did not answer in {_WAIT_S:.0f} s"
    except OSError as error:
        return f"{said} cannot be started: {error.strerror}"
    if b'"serverInfo"' in ran.stdout:
        return None
    told = ran.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return f"{said} does not answer: {told or 'it says nothing'}"
