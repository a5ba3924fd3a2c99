"""Rows of `session_links`, `captures` and `dropped_events`: what was recorded from where."""

from __future__ import annotations

from typing import NamedTuple

from affidavit.core.entry import Entry


class LinkRow(NamedTuple):
    """A row of `session_links`: what another program calls a session."""

    log_index: int
    session_id: str
    source: str
    external_id: str
    at: int


class CaptureRow(NamedTuple):
    """A row of `captures`: a channel was switched on or off, of a session or of everything."""

    log_index: int
    state: str
    channel: str
    source: str
    version: str | None
    session_id: str | None
    settings_sha256: str | None
    event_count: int | None
    at: int


class DroppedRow(NamedTuple):
    """A row of `dropped_events`: how many events of a channel were lost, and when."""

    log_index: int
    channel: str
    event_count: int
    from_ms: int
    to_ms: int
    at: int


def link_row(index: int, entry: Entry) -> LinkRow:
    """The row of `session.linked`."""
    body = entry.body
    return LinkRow(index, body["session_id"], body["source"], body["external_id"], entry.at)


def capture_row(index: int, entry: Entry) -> CaptureRow:
    """The row of `capture.started` and `capture.stopped`."""
    body = entry.body
    return CaptureRow(
        log_index=index,
        state=entry.kind.removeprefix("capture."),
        channel=body["channel"],
        source=body["source"],
        version=body["version"],
        session_id=body["session_id"],
        settings_sha256=body["settings_sha256"],
        event_count=body["count"],
        at=entry.at,
    )


def dropped_row(index: int, entry: Entry) -> DroppedRow:
    """The row of `events.dropped`."""
    body = entry.body
    return DroppedRow(
        index, body["channel"], body["count"], body["from_ms"], body["to_ms"], entry.at
    )
