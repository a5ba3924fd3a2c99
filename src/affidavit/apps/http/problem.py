"""Refusals over HTTP: an error of this package as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import JSONResponse

from affidavit.apps.plain import one_line
from affidavit.errors import CODES, AffidavitError


def status_of(error: AffidavitError) -> int:
    """The HTTP status an error stands for."""
    known = CODES.get(error.code)
    return HTTPStatus.INTERNAL_SERVER_ERROR if known is None else known.http_status


def problem(error: AffidavitError) -> JSONResponse:
    """The answer to a program: the same code, words and hint as everywhere."""
    status = status_of(error)
    told = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": one_line(error.message),
        "code": error.code,
        "hint": one_line(error.hint),
    }
    return JSONResponse(told, status, media_type="application/problem+json")
