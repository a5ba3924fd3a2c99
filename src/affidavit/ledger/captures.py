"""What came from where: links to other programs' sessions, channels on and off, what was lost.

A run of another program is one session here. What arrives for one that is sealed or ended goes into
a new session that continues it, with a link of its own to the same id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from affidavit.core.canonical import INTEGER_MAX
from affidavit.core.entry import Entry, Source, encode_entry
from affidavit.core.names import is_digest
from affidavit.core.views.captures import (
    CaptureRow,
    DroppedRow,
    LinkRow,
    capture_row,
    dropped_row,
    link_row,
)
from affidavit.core.views.sessions import SessionRow
from affidavit.errors import invalid
from affidavit.ledger.inputs import Index, Name, StartSession
from affidavit.ledger.ports import Reader, Writer
from affidavit.ledger.results import Result
from affidavit.ledger.thoughts import session_not_found
from affidavit.ledger.versions import check_session

Millis = Annotated[int, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX)]


class LinkSession(Struct, frozen=True, forbid_unknown_fields=True):
    """What another program calls a session."""

    session_id: Name
    source: Name
    external_id: Name


class SwitchCapture(Struct, frozen=True, forbid_unknown_fields=True):
    """A channel that is switched on or off."""

    channel: Name
    source: Name
    version: Name | None = None
    session_id: Name | None = None
    settings_sha256: Name | None = None
    count: Index | None = None


class NoteDropped(Struct, frozen=True, forbid_unknown_fields=True):
    """Events that were lost."""

    channel: Name
    count: Index
    from_ms: Millis
    to_ms: Millis


class SessionLink(Result, frozen=True):
    """What another program calls a session."""

    session_id: str
    source: str
    external_id: str
    index: int
    at: int


class Capture(Result, frozen=True):
    """A channel was switched on (`started`) or off (`stopped`)."""

    state: str
    channel: str
    source: str
    version: str | None
    session_id: str | None
    settings_sha256: str | None
    count: int | None
    index: int
    at: int


class Dropped(Result, frozen=True):
    """How many events of a channel were lost, and between which times."""

    channel: str
    count: int
    from_ms: int
    to_ms: int
    index: int
    at: int


def link_session(tx: Writer, given: LinkSession, src: Source) -> LinkRow:
    """Record what another program calls a session; the same again writes nothing."""
    for found in tx.links(given.session_id):
        if (found.source, found.external_id) == (given.source, given.external_id):
            return found
    check_session(tx, given.session_id)
    body = {
        "session_id": given.session_id,
        "source": given.source,
        "external_id": given.external_id,
    }
    entry = Entry(tx.at, "session.linked", body, src)
    row = link_row(tx.size(), entry)
    tx.append(encode_entry(*entry), row)
    return row


def enter_session(
    tx: Writer,
    source: str,
    external_id: str,
    given: StartSession,
    start: Callable[[StartSession], SessionRow],
    src: Source,
) -> SessionRow:
    """The open session of another program's id: the one there is, or one that continues it."""
    before = tx.find_linked(source, external_id)
    if before is not None:
        head = tx.session_head(before.session_id)
        if head is not None and head.sealed_index is None and head.ended_index is None:
            return before
        given = _continuing(given, before.session_id)
    row = start(given)
    link_session(tx, LinkSession(row.session_id, source, external_id), src)
    return row


def _continuing(given: StartSession, session_id: str) -> StartSession:
    return StartSession(
        given.intent, given.caller, given.task_id, None, given.proof_grade, session_id,
        given.project, given.model,
    )  # fmt: skip


def check_settings_digest(given: SwitchCapture) -> None:
    """The digest of a channel's settings is one."""
    if given.settings_sha256 is not None and not is_digest(given.settings_sha256):
        raise invalid("settings_sha256", "is not 64 lower-case hex digits")


def switch_capture(tx: Writer, given: SwitchCapture, state: str, src: Source) -> CaptureRow:
    """Record that a channel is on or off; the same as it stands writes nothing."""
    if given.session_id is not None and tx.session_head(given.session_id) is None:
        raise session_not_found(given.session_id)
    for found in reversed(tx.captures(given.session_id)):
        if (found.channel, found.source) == (given.channel, given.source):
            if found.state == state and state == "stopped":
                return found
            if found.state == state and found.version == given.version:
                return found
            break
    if state == "started":
        check_session(tx, given.session_id)
    body = {name: getattr(given, name) for name in given.__struct_fields__}
    entry = Entry(tx.at, f"capture.{state}", body, src)
    row = capture_row(tx.size(), entry)
    tx.append(encode_entry(*entry), row)
    return row


def note_dropped(tx: Writer, given: NoteDropped, src: Source) -> DroppedRow:
    """Record that events were lost."""
    body = {name: getattr(given, name) for name in given.__struct_fields__}
    entry = Entry(tx.at, "events.dropped", body, src)
    row = dropped_row(tx.size(), entry)
    tx.append(encode_entry(*entry), row)
    return row


def list_captures(reader: Reader, session_id: str | None) -> list[Capture]:
    """Channels switched on and off, oldest first."""
    return [capture(row) for row in reader.captures(session_id)]


def session_link(row: LinkRow) -> SessionLink:
    """A link as callers see it."""
    return SessionLink(row.session_id, row.source, row.external_id, row.log_index, row.at)


def capture(row: CaptureRow) -> Capture:
    """A channel's switch as callers see it."""
    return Capture(*row[1:-1], row.log_index, row.at)


def dropped(row: DroppedRow) -> Dropped:
    """A loss as callers see it."""
    return Dropped(row.channel, row.event_count, row.from_ms, row.to_ms, row.log_index, row.at)
