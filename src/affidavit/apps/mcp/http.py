"""The MCP endpoint over streamable HTTP, for an ASGI application to mount.

    endpoint = make_endpoint(service)
    Route("/mcp", endpoint.app)          every method of the one path
    async with endpoint.lifespan(): ...  around the time it is served

Both eras are answered on the one path: with a handshake, and without.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from affidavit.apps.mcp.server import make_server
from affidavit.apps.mcp.service import Service

# A content of 16 MiB whose every byte needs an escape of six does not fit; ordinary text does.
BODY_BYTES_MAX: Final = 32 * 1024 * 1024
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Endpoint(NamedTuple):
    """An ASGI application for one path, and what must run around it."""

    app: Any
    lifespan: Callable[[], AbstractAsyncContextManager[None]]


def make_endpoint(service: Service, *, body_bytes_max: int = BODY_BYTES_MAX) -> Endpoint:
    """The endpoint of a service."""
    return endpoint_of(make_server(service), body_bytes_max=body_bytes_max)


def endpoint_of(server: Server[Any], *, body_bytes_max: int = BODY_BYTES_MAX) -> Endpoint:
    """The endpoint of a server that is made already; only this machine may ask it."""
    manager = StreamableHTTPSessionManager(
        app=server,
        security_settings=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[*_LOOPBACK, *(f"{host}:*" for host in _LOOPBACK)],
            allowed_origins=[f"http://{host}{port}" for host in _LOOPBACK for port in ("", ":*")],
        ),
        max_request_body_size=body_bytes_max,
    )
    return Endpoint(StreamableHTTPASGIApp(manager), manager.run)
