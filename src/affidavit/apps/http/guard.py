"""What every request must pass before anything of it is read further.

A page somewhere on the web can make a browser on this machine talk to this server. So the server
answers only under a name of this machine (a name that an attacker let point here is refused:
DNS rebinding), and to no page of another origin. A body is read whole, up to its limit and within
its time, before the application sees it: one that is too large or too slow is refused in one place.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from affidavit.apps.http.problem import problem
from affidavit.core.names import PAYLOAD_BYTES_MAX
from affidavit.errors import AffidavitError, InputError

LOG: Final = logging.getLogger("affidavit.http")

# The largest content a call may bring, each byte of it escaped as \u00xx, and the rest of the call.
CALL_BYTES_MAX: Final = 6 * PAYLOAD_BYTES_MAX + 1_048_576
FORM_BYTES_MAX: Final = 65_536
BODY_SECONDS_MAX: Final = 30.0

_OF_THIS_MACHINE = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?\Z", re.IGNORECASE)
_WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")


class Guard:
    """Checks a request, reads its body, passes it on, and leaves one line in the log."""

    def __init__(self, app: ASGIApp, *, call_path: str) -> None:
        self._app = app
        self._call_path = call_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        seen = [0]

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen[0] = message["status"]
            await send(message)

        try:
            await self._pass_on(scope, receive, watch)
        except Exception:
            seen[0] = 500  # what the application answers with further out
            raise
        finally:
            # The path as it came, and what was asked of it, may hold anything: neither is logged.
            where = getattr(scope.get("route"), "path", None) or "(no such page)"
            took_ms = (time.monotonic() - started) * 1_000
            LOG.info("%s %s %s %.0f ms", scope["method"][:10], where, seen[0] or "-", took_ms)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        is_call = scope["path"] == self._call_path
        try:
            _check_origin(headers, scope["method"], must_tell=not is_call)
            body = await _read_body(headers, receive, CALL_BYTES_MAX if is_call else FORM_BYTES_MAX)
        except AffidavitError as error:
            await _refuse(error)(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)


def _check_origin(headers: Headers, method: str, *, must_tell: bool) -> None:
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _OF_THIS_MACHINE.match(hosts[0]):
        raise InputError(
            "this server answers only under a name of this machine",
            code="ERR_ORIGIN_REFUSED",
            hint="Use the URL that `affidavit serve` printed.",
            field="Host",
        )
    origins = headers.getlist("origin")
    if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
        raise InputError(
            "this server does not answer to pages of another origin",
            code="ERR_ORIGIN_REFUSED",
            hint="Open the page this server gives, or call without an Origin.",
            field="Origin",
        )
    # A browser says where a form comes from; what a form may do is not done for who does not say.
    if must_tell and method in _WRITES and not origins:
        raise InputError(
            "this request does not say which page it comes from",
            code="ERR_ORIGIN_REFUSED",
            hint=f"Send the header Origin: http://{hosts[0]}",
            field="Origin",
        )


async def _read_body(headers: Headers, receive: Receive, bytes_max: int) -> bytes:
    told = headers.get("content-length", "")
    if told.isascii() and told.isdigit() and int(told[:20]) > bytes_max:
        raise _too_large(bytes_max)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return b""
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > bytes_max:
                    raise _too_large(bytes_max)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        raise InputError(
            f"the body did not arrive within {BODY_SECONDS_MAX:.0f} seconds",
            code="ERR_TOO_SLOW",
            hint="Send it at once.",
            field="body",
        ) from None


def _too_large(bytes_max: int) -> InputError:
    return InputError(
        f"body: more than {bytes_max:,} bytes",
        code="ERR_TOO_LARGE",
        hint="Send less in one request; store large things elsewhere and record their digest.",
        field="body",
        limit_bytes=bytes_max,
    )


def _refuse(error: AffidavitError) -> Response:
    answer = problem(error)
    answer.headers["Connection"] = "close"  # what is left of the body is not read
    return answer


def _replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
