"""Templates: everything escaped, every unsafe character spelled out, times and sizes in words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, JSONResponse

from affidavit.apps.plain import one_line, plain

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# Nothing but this server's own style, script, icon and texts; no frame, no plug-in, no base.
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with that, a browser would say Origin: null for our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def render(template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """A page."""
    text = _TEMPLATES.get_template(template).render(**shown)
    return HTMLResponse(text, status, headers=PAGE_HEADERS)


def link(page: str, **asked: Any) -> str:
    """A page's address; ids go into the query, where `..` and `/` are only letters."""
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    return f"/{page}?{query}" if query else f"/{page}"


def answer(told: Mapping[str, Any]) -> JSONResponse:
    """Something for the page's script."""
    return JSONResponse(dict(told), headers=PAGE_HEADERS)


def _moment(at_us: int) -> datetime | None:
    """A time of the ledger; None where an edited row holds one that no calendar has."""
    try:
        return _EPOCH + timedelta(microseconds=at_us)
    except OverflowError:
        return None


def _iso(at_us: int) -> str:
    moment = _moment(at_us)
    return str(at_us) if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _day(at_us: int) -> str:
    moment = _moment(at_us)
    return str(at_us) if moment is None else f"{moment.day} {moment:%b %Y, %H:%M:%S}"


def _day_said(text: str) -> str:
    """The same of a time in words, as the ledger writes it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return one_line(text)
    return f"{moment.day} {moment:%b %Y, %H:%M:%S}"


def _bytes(number: int) -> str:
    if number < 1_000:
        return f"{number} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        number_in_unit = number / 1_000
        if number_in_unit < 1_000:
            return f"{number_in_unit:,.1f} {unit}"
        number = round(number_in_unit)
    return f"{number:,} TB"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "plain": lambda text: plain(str(text)),
        "one_line": one_line,
        "iso": _iso,
        "day": _day,
        "day_said": _day_said,
        "size": _bytes,
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        "shell": shlex.quote,
        "python": repr,
        "count": lambda number: f"{number:,}",
    }
    environment.globals["link"] = link
    return environment


_TEMPLATES: Final = _environment()
