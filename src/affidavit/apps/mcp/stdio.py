"""Serving one client over stdin and stdout, until stdin ends or a signal comes.

stdout is the wire: nothing else is ever written to it. What was asked before stdin ended is still
answered; what was acknowledged is on disk.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any, Final, Self

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

from affidavit.apps.mcp.server import make_server
from affidavit.apps.mcp.service import Service

_DRAIN_S_MAX: Final = 30
# Who takes nothing for so long, when all is to end, is not waited for.
_STUCK_S_MAX: Final = 2
_CHUNK_BYTES: Final = 1 << 16


class _Wire:
    """The way to the client; a pipe is waited for without a thread's help."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        # Whatever else prints must not reach the wire.
        os.dup2(2, 1)
        self._text = ""
        self._waits_since: float | None = None

    def is_stuck(self) -> bool:
        """Whether the client has taken nothing for a while of what waits for it."""
        since = self._waits_since
        return since is not None and time.monotonic() - since > _STUCK_S_MAX

    async def write(self, text: str) -> None:
        """Keep a message until it is to be sent."""
        self._text += text

    async def flush(self) -> None:
        """Send what was kept, never more at once than a pipe that is ready takes."""
        data, self._text = memoryview(self._text.encode()), ""
        while data:
            if not select.select((), (self._fd,), (), 0)[1]:
                self._waits_since = time.monotonic()
                await anyio.wait_writable(self._fd)
                self._waits_since = None
            data = data[os.write(self._fd, data[: select.PIPE_BUF]) :]


class _Asked:
    """The requests that were read and not answered yet, by id."""

    def __init__(self, wire: _Wire) -> None:
        self._ids: set[Any] = set()
        self._wire = wire

    def note_read(self, message: Any) -> None:
        """A request waits for its answer; one that is cancelled gets none."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method.endswith("/cancelled"):
            self._ids.discard((message.params or {}).get("requestId"))

    def note_sent(self, message: Any) -> None:
        """An answer is on its way."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._ids.discard(message.id)

    async def drain(self) -> None:
        """Wait until everything asked is answered, or until nobody takes the answers."""
        with anyio.move_on_after(_DRAIN_S_MAX):
            while self._ids and not self._wire.is_stuck():  # noqa: ASYNC110 - only at the end
                await anyio.sleep(0.005)


class _Reading:
    """Messages from the client; their end waits for the answers to them."""

    def __init__(self, inner: Any, asked: _Asked, answers: _Writing) -> None:
        self._inner = inner
        self._asked = asked
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._inner.__anext__()
        except StopAsyncIteration:
            await self._asked.drain()
            raise
        if isinstance(item, ValidationError):
            await self._refuse(item)
        self._asked.note_read(getattr(item, "message", None))
        return item

    async def _refuse(self, error: ValidationError) -> None:
        """Answer a request that is no JSON to the SDK, where it says its id: else nobody would."""
        told = error.errors(include_url=False)[0]
        try:
            number = json.loads(told["input"])["id"]
        except (ValueError, TypeError, LookupError, RecursionError):
            return
        if isinstance(number, int | str):
            words = ErrorData(code=PARSE_ERROR, message=f"Parse error: {told['msg']}"[:300])
            refusal = JSONRPCError(jsonrpc="2.0", id=number, error=words)
            await self._answers.send(SessionMessage(refusal))


class _Writing:
    """Messages to the client."""

    def __init__(self, inner: Any, asked: _Asked) -> None:
        self._inner = inner
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inner.aclose()

    async def send(self, item: Any) -> None:
        """Hand a message over to be written."""
        await self._inner.send(item)
        self._asked.note_sent(item.message)


class _Lines:
    """What the client sends, line by line; a pipe is waited for without a thread's help."""

    def __init__(self) -> None:
        self._fd = os.dup(0)
        # Whatever else reads must not take from the wire.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._buffer = bytearray()
        self._seen = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while (end := self._buffer.find(b"\n", self._seen)) < 0:
            self._seen = len(self._buffer)
            data = await self._read()
            self._buffer += data
            if not data:
                end = len(self._buffer)
                break
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self._seen = 0
        if not line:
            raise StopAsyncIteration
        return line.decode(errors="replace")

    async def _read(self) -> bytes:
        try:
            await anyio.wait_readable(self._fd)
        except PermissionError:  # a file, which is always ready
            return await anyio.to_thread.run_sync(os.read, self._fd, _CHUNK_BYTES)
        return os.read(self._fd, _CHUNK_BYTES)


def run(service: Service, close: Callable[[], None]) -> None:
    """Serve until stdin ends or SIGTERM or SIGINT comes; then `close`, and leave."""
    try:
        anyio.run(_serve, make_server(service))
    except* ConnectionError:
        pass  # the client is gone; what it asked for is done
    finally:
        close()


async def _serve(server: Server[Any]) -> None:
    lines: Any = _Lines()
    wire: Any = _Wire()
    asked = _Asked(wire)
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_signal, asked, group.cancel_scope)
        async with stdio_server(lines, wire) as (read_stream, write_stream):
            answers = _Writing(write_stream, asked)
            await server.run(
                _Reading(read_stream, asked, answers),
                answers,
                server.create_initialization_options(),
            )
            group.cancel_scope.deadline = anyio.current_time() + _STUCK_S_MAX
        group.cancel_scope.cancel()


async def _stop_on_signal(asked: _Asked, serving: anyio.CancelScope) -> None:
    """Answer what was asked, then serve no longer."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            await asked.drain()
            await anyio.sleep(0.05)  # the last answer is being written
            serving.cancel()
            return
