"""Tool calls among the bytes of an MCP connection over stdio. Pure: bytes in, what happened out.

Messages are JSON-RPC, a line each. Only copies are read here; what cannot be read is passed over,
for the two ends understand each other whether or not we do.

    {"kind": "asked", "id", "tool", "arguments", "tool_use_id"?, "client"?, "server"?}
    {"kind": "answered", "id", "tool_use_id"?, "result" or "error"}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from affidavit.capture.claude_names import TOOL_USE_ID

LINE_BYTES_MAX: Final = 64 * 1024 * 1024
_OF_CLIENT: Final = (b'"tools/call"', b'"initialize"')
_OURS: Final = "affidavit"
_ENDINGS: Final[tuple[str, ...]] = ("result", "error")


class Lines:
    """Whole lines of what comes in pieces; one that never ends is passed over."""

    def __init__(self, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._max = bytes_max
        self._pieces: list[bytes] = []
        self._size = 0
        self.passed_over = 0

    def take(self, data: bytes) -> Iterator[bytes]:
        """The lines that end in these bytes."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._keep(piece)
            if self._size <= self._max:
                yield b"".join(self._pieces)
            else:
                self.passed_over += 1
            self._pieces, self._size = [], 0
        self._keep(rest)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max:
            self._pieces = []
        elif piece:
            self._pieces.append(piece)


class Conversation:
    """What was asked and is not answered yet, and who talks to whom."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, Any]] = {}
        self._opening: str | None = None
        self._about: dict[str, Any] = {}

    def from_client(self, line: bytes) -> Iterator[dict[str, Any]]:
        """Tool calls that a client asks for."""
        if not any(word in line for word in _OF_CLIENT):
            return
        for message in _messages(line):
            params = message.get("params")
            name = _id_of(message)
            if name is None or not isinstance(params, dict):
                continue
            if message.get("method") == "initialize":
                self._opening = name
                self._about["client"] = _identity(params.get("clientInfo"))
            elif message.get("method") == "tools/call":
                yield from self._ask(name, params)

    def _ask(self, name: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self._about.get("server") == _OURS:
            return  # what our own server does it records itself
        meta = params.get("_meta")
        about = {"tool_use_id": meta.get(TOOL_USE_ID)} if isinstance(meta, dict) else {}
        self._open[name] = about
        yield {
            "kind": "asked",
            "id": name,
            "tool": params.get("name"),
            "arguments": params.get("arguments"),
            **about,
            **self._about,
        }

    def from_server(self, line: bytes) -> Iterator[dict[str, Any]]:
        """Answers to tool calls."""
        if not self._open and self._opening is None:
            return
        for message in _messages(line):
            name = _id_of(message)
            if name is None or "method" in message:
                continue
            if name == self._opening:
                self._opening = None
                self._note_server(message.get("result"))
            about = self._open.pop(name, None)
            if about is not None:
                ending = {key: message[key] for key in _ENDINGS if key in message}
                yield {"kind": "answered", "id": name, **about, **ending}

    def _note_server(self, result: Any) -> None:
        told = result.get("serverInfo") if isinstance(result, dict) else None
        if isinstance(told, dict) and isinstance(told.get("name"), str):
            self._about["server"] = told["name"]

    def left_open(self) -> Iterator[dict[str, Any]]:
        """What nobody will answer any more."""
        for name, about in self._open.items():
            yield {"kind": "answered", "id": name, **about}
        self._open = {}


def _messages(line: bytes) -> Iterator[dict[str, Any]]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            yield one


def _id_of(message: dict[str, Any]) -> str | None:
    """The id of a request or an answer: 1 and "1" are two."""
    given = message.get("id")
    is_id = isinstance(given, int | str) and not isinstance(given, bool)
    return json.dumps(given) if is_id else None


def _identity(told: Any) -> str | None:
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return None
    version = told.get("version")
    return f"{told['name']}/{version}" if isinstance(version, str) else str(told["name"])
