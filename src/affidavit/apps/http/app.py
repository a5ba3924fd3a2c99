"""The application: the pages, how it tells that it is well, and what else answers beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from affidavit.apps.http.guard import CALL_BYTES_MAX, Guard
from affidavit.apps.mcp.health import examine
from affidavit.apps.mcp.http import make_endpoint
from affidavit.apps.mcp.service import Service
from affidavit.apps.web.pages import Pages
from affidavit.errors import AffidavitError

MCP_PATH: Final = "/mcp"


def build_app(service: Service) -> Starlette:
    """The application over the ledger and the tools of a service."""
    pages = Pages(service.ledger, MCP_PATH)
    endpoint = make_endpoint(service, body_bytes_max=CALL_BYTES_MAX)
    routes: list[BaseRoute] = [
        Route("/healthz", _healthz),
        Route("/readyz", _readyz(service)),
        Route(MCP_PATH, endpoint.app),
        *pages.routes(),
    ]
    handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
        AffidavitError: pages.show_error,
        404: pages.show_missing,
        405: pages.show_missing,
        Exception: pages.show_bug,
    }

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        del app
        async with pages.running(), endpoint.lifespan():
            yield

    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, call_path=MCP_PATH)],
        exception_handlers=handlers,
        lifespan=running,
    )


async def _healthz(request: Request) -> JSONResponse:
    """That this process answers."""
    del request
    return JSONResponse({"status": "ok"})


def _readyz(service: Service) -> Callable[[Request], Response]:
    """Whether the ledger behind it does what this server is there for."""

    def readyz(request: Request) -> Response:
        del request
        found = examine(service.ledger, service.facts)
        told = {"status": found.status, "reasons": found.reasons}
        return JSONResponse(told, 503 if found.status == "failing" else 200)

    return readyz
