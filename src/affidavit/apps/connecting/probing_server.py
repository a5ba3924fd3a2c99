"""Whether the MCP server that a client would use answers: started and ended, or at its address."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from affidavit.apps.connecting.claude_code import find_server

_WAIT_S: Final = 30.0
_ANSWERS: Final = b'"serverInfo"'
_ANSWER_BYTES_MAX: Final = 1_000_000
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
    servers = [server for server in map(_server, files) if server is not None]
    if not servers:
        return "the agent has no MCP server to record with: no configuration of it is found"
    greeted = (_greet_at(one) if isinstance(one, str) else _greet(one) for one in servers)
    return next((why for why in greeted if why is not None), None)


def _server(servers: Path) -> list[str] | str | None:
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
    if _ANSWERS in ran.stdout:
        return None
    told = ran.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return f"{said} does not answer: {told or 'it says nothing'}"


def _greet_at(url: str) -> str | None:
    said = f"the MCP server at {url}"
    place = urlsplit(url)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection = http.client.HTTPConnection(place.netloc, timeout=_WAIT_S)
    try:
        with contextlib.closing(connection):
            connection.request("POST", place.path or "/", json.dumps(_HELLO), headers)
            answer = connection.getresponse()
            if _ANSWERS in answer.read(_ANSWER_BYTES_MAX):
                return None
            return f"{said} does not answer as one: {answer.status} {answer.reason}"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{said} does not answer: {error}"
