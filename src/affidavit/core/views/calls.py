"""Rows of `calls`: what became of each call that reached a server."""

from __future__ import annotations

from typing import NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.views.payload import Payload


class CallRow(NamedTuple):
    """A row of `calls`: who called which tool, what came of it, and what it wrote."""

    log_index: int
    state: str
    tool: str
    caller: str | None
    duration_us: int
    outcome: str
    args_sha256: str | None
    args_sha256_salt: bytes | None
    first_index: int | None
    last_index: int | None
    at: int


def call_row(index: int, entry: Entry, args_sha256: Payload) -> CallRow:
    """The row of `call.finished` and `call.failed`."""
    body = entry.body
    return CallRow(
        log_index=index,
        state=entry.kind.removeprefix("call."),
        tool=body["tool"],
        caller=body["caller"],
        duration_us=body["duration_us"],
        outcome=body["outcome"],
        args_sha256=args_sha256.text,
        args_sha256_salt=args_sha256.salt,
        first_index=body["first_index"],
        last_index=body["last_index"],
        at=entry.at,
    )
