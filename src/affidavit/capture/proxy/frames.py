"""Tool calls among the bytes of an MCP connection over stdio. Pure: bytes in, what happened out.

Messages are JSON-RPC, a line each. Only copies are read here; what cannot be read is passed over,
for the two ends understand each other whether or not we do.

    {"kind": "asked", "id", "nth", "tool", "arguments", "tool_use_id"?, "client"?, "server"?}
    {"kind": "answered", "id", "nth", "tool_use_id"?, "result" or "error"}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from affidavit.capture.claude_names import TOOL_USE_ID

LINE_BYTES_MAX: Final = 64 * 1024 * 1024
# A backslash may spell any letter of these in another way.
_OF_CLIENT: Final = (b'"tools/call"', b'"initialize"', b"\\")
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
    """What was asked and is not answered yet, and who talks to whom.

    A server's word alone does not make it ours: then any could keep itself off the record.
    """

    def __init__(self, *, may_be_ours: bool = False) -> None:
        # An id may be used again, even before it is answered: the first asked is answered first.
        self._open: dict[str, list[dict[str, Any]]] = {}
        self._calls = 0
        self._may_be_ours = may_be_ours
        self.unread = 0
        self._opening: str | None = None
        self._about: dict[str, Any] = {}

    def from_client(self, line: bytes) -> Iterator[dict[str, Any]]:
        """Tool calls that a client asks for."""
        if not any(word in line for word in _OF_CLIENT):
            return
        try:
            messages = _messages(line)
        except (ValueError, RecursionError):
            # The server may understand what we do not.
            self.unread += line.lstrip().startswith((b"{", b"["))
            return
        for message in messages:
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
        if self._may_be_ours and self._about.get("server") == _OURS:
            return  # what our own server does it records itself
        meta = params.get("_meta")
        self._calls += 1
        about: dict[str, Any] = {"nth": self._calls}
        if isinstance(meta, dict):
            about["tool_use_id"] = meta.get(TOOL_USE_ID)
        self._open.setdefault(name, []).append(about)
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
        try:
            messages = _messages(line)
        except (ValueError, RecursionError):
            return
        for message in messages:
            name = _id_of(message)
            if name is None or "method" in message:
                continue
            if name == self._opening:
                self._opening = None
                self._note_server(message.get("result"))
            if name in self._open:
                ending = {key: message[key] for key in _ENDINGS if key in message}
                yield {"kind": "answered", "id": name, **self._close(name), **ending}

    def _close(self, name: str) -> dict[str, Any]:
        waiting = self._open[name]
        about = waiting.pop(0)
        if not waiting:
            del self._open[name]
        return about

    def _note_server(self, result: Any) -> None:
        told = result.get("serverInfo") if isinstance(result, dict) else None
        if isinstance(told, dict) and isinstance(told.get("name"), str):
            self._about["server"] = told["name"]

    def left_open(self) -> Iterator[dict[str, Any]]:
        """What nobody will answer any more."""
        for name in [*self._open]:
            while name in self._open:
                yield {"kind": "answered", "id": name, **self._close(name)}


def _messages(line: bytes) -> list[dict[str, Any]]:
    # What is no UTF-8 is read as many servers read it, who carry it out.
    value = json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff"))
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def _id_of(message: dict[str, Any]) -> str | None:
    """The id of a request or an answer: 1 and "1" are two, 1 and 1.0 are one."""
    given = message.get("id")
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    is_id = isinstance(given, int | float | str) and not isinstance(given, bool)
    return json.dumps(given) if is_id else None


def _identity(told: Any) -> str | None:
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return None
    version = told.get("version")
    return f"{told['name']}/{version}" if isinstance(version, str) else str(told["name"])
