"""MCP clients of the official SDK, as the tests use them: each call is checked by the client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

import uvicorn
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from starlette.applications import Starlette
from starlette.routing import Route

from affidavit.apps.mcp.http import Endpoint, make_endpoint
from affidavit.apps.mcp.server import make_server
from affidavit.apps.mcp.service import Service

T = TypeVar("T")

# How a client opens: with the handshake, or with a request that carries everything.
ERAS = ("legacy", "2026-07-28")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end, within half a minute."""

    async def bounded() -> T:
        return await asyncio.wait_for(work(), 30)

    return asyncio.run(bounded())


@contextlib.asynccontextmanager
async def client_of(service: Service, era: str = "legacy") -> AsyncIterator[Client]:
    """A client of a service in this process."""
    async with Client(make_server(service), mode=era) as client:
        # The client checks results against the schemas it has listed.
        await client.list_tools()
        yield client


def parameters(ledger: str, *words: str) -> StdioServerParameters:
    """How a client starts the server."""
    command = [sys.executable, "-m", "affidavit", "--ledger", ledger, "mcp", *words]
    # What it signs with is not to be made in this user's own home.
    env = {name: os.environ[name] for name in ("AFFIDAVIT_HOME",) if name in os.environ}
    return StdioServerParameters(command=command[0], args=command[1:], env=env)


def call(service: Service, tool: str, **given: Any) -> Any:
    """One call of one tool."""

    async def work() -> Any:
        async with client_of(service) as client:
            return await client.call_tool(tool, given)

    return run(work)


def data(result: Any) -> Any:
    """What a call that was carried out answered."""
    assert result.structured_content["ok"] is True, result.structured_content
    assert not result.is_error
    return result.structured_content["data"]


def error(result: Any) -> Any:
    """What a refused call answered."""
    assert result.is_error
    assert result.structured_content["ok"] is False
    return result.structured_content["error"]


@contextlib.contextmanager
def over_http(endpoint: Endpoint) -> Iterator[str]:
    """An endpoint behind a real HTTP server; gives its URL."""
    app = Starlette(routes=[Route("/mcp", endpoint.app)], lifespan=lambda _: endpoint.lifespan())
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    # Nobody holds a connection open when the test is over.
    config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextlib.contextmanager
def served(ledger: Any, **options: Any) -> Iterator[str]:
    """A ledger behind HTTP."""
    with over_http(make_endpoint(Service(ledger, **options))) as url:
        yield url
