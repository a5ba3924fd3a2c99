"""Rows of `key_changes` and `origin_changes`."""

from __future__ import annotations

from typing import NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.views.payload import Payload


class KeyRow(NamedTuple):
    """A row of `key_changes`: a key began or ceased to sign for the log."""

    log_index: int
    state: str
    vkey: str
    changed_by: str | None
    reason: str | None
    reason_salt: bytes | None
    at: int


class OriginRow(NamedTuple):
    """A row of `origin_changes`: the log goes on under a name, from what was last signed."""

    log_index: int
    old_origin: str
    old_size: int
    old_root: str
    origin: str
    reason: str | None
    reason_salt: bytes | None
    at: int


def key_row(index: int, entry: Entry, reason: Payload) -> KeyRow:
    """The row of `key.added` and `key.retired`."""
    body, state = entry.body, entry.kind.removeprefix("key.")
    return KeyRow(index, state, body["vkey"], body["by"], reason.text, reason.salt, entry.at)


def origin_row(index: int, entry: Entry, reason: Payload) -> OriginRow:
    """The row of `origin.changed`."""
    body = entry.body
    return OriginRow(
        log_index=index,
        old_origin=body["old_origin"],
        old_size=body["old_size"],
        old_root=body["old_root"],
        origin=body["origin"],
        reason=reason.text,
        reason_salt=reason.salt,
        at=entry.at,
    )
