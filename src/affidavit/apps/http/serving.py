"""Running the server: the address, the moment it is ready, and its end."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from affidavit.errors import StoreError, invalid

HEAD_SECONDS_MAX: Final = 15.0
IDLE_SECONDS_MAX: Final = 15
# How long an answer under way may still take once the server was told to stop.
CLOSING_SECONDS_MAX: Final = 3
CONNECTIONS_MAX: Final = 512
# What may be asked for, by the names that the guard and the MCP endpoint answer under.
_LOOPBACK: Final = {
    "127.0.0.1": ("127.0.0.1", socket.AF_INET),
    "::1": ("::1", socket.AF_INET6),
    "localhost": ("127.0.0.1", socket.AF_INET),
}


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket on this machine's own address, and on no other."""
    if host not in _LOOPBACK:
        raise invalid(
            "host",
            f"{host!r:.100} is not this machine's own address: only loopback is served",
            hint=f"One of {', '.join(_LOOPBACK)}; from elsewhere, reach it through ssh -L.",
        )
    address, family = _LOOPBACK[host]
    server = socket.socket(family, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, port))
        server.listen(socket.SOMAXCONN)
    except OSError as error:
        server.close()
        raise StoreError(
            f"{host} port {port} cannot be used ({error.strerror})",
            code="ERR_ADDRESS_IN_USE",
            hint="Is it running already? Choose another port, or any free one with --port 0.",
        ) from None
    return server


def url_of(server: socket.socket) -> str:
    """Where a browser finds a listening socket."""
    host, port = server.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def run_server(app: ASGIApp, server: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve until the process is told to stop."""
    _log_to_stderr()
    config = uvicorn.Config(
        app,
        http=_PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=IDLE_SECONDS_MAX,
        timeout_graceful_shutdown=CLOSING_SECONDS_MAX,
    )
    _Server(config, on_ready).run([server])


class _Lines(logging.Formatter):
    """Log lines that name an error by its type: its words may hold what somebody recorded."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(message)s")

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the standard library's name
        return f"  {ei[0].__name__}"


def _log_to_stderr() -> None:
    """One line a request; no addresses, no arguments, no bodies."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    # The SDK and uvicorn would quote what they refuse; what is wrong with it the client is told.
    levels = {"affidavit": logging.INFO, "uvicorn": logging.CRITICAL, "mcp": logging.CRITICAL}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


class _Server(uvicorn.Server):
    """A server that says when it listens, and for which a signal to stop is no failure."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            # Else the signal that ended the server would now end the process, its ledger open.
            self._captured_signals.clear()


class _PatientProtocol(H11Protocol):
    """HTTP that waits for the head of a request only so long: a slow client holds no connection."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()
        elif self._is_between_requests() and self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_between_requests(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS_MAX, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _hang_up(self) -> None:
        self._waiting = None
        if self._is_between_requests():
            self.transport.close()
