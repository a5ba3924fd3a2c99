"""Turns of a conversation: what was said, said again otherwise, or taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from affidavit.core.entry import Source
from affidavit.core.views.turns import TurnRow, usage_text
from affidavit.errors import InputError
from affidavit.ledger.observed import ListTurns, RetractTurn, Turn, UpsertTurn, turn
from affidavit.ledger.payloads import Ready, fill, is_same_text, ready_text, stored
from affidavit.ledger.ports import Listing, Reader, Writer
from affidavit.ledger.versions import TURNS, append_version, check_session, find_place

_ORDER: Final = ("created_at_ms", "log_index")
_SAME: Final = ("message_id", "parent_id", "thread_id", "session_id", "occurred_at_ms", "actor")
_BODY: Final = (*_SAME, "model", "usage")


def upsert_turn(
    tx: Writer,
    given: UpsertTurn,
    content: Ready,
    attributes: Ready | None,
    new_salt: Callable[[], bytes],
    src: Source,
) -> TurnRow:
    """Record a turn, or what it is now; the same again writes nothing."""
    before: TurnRow | None = tx.find_version(TURNS, (given.id,), None)
    content, attributes = stored(tx, content), stored(tx, attributes)
    if before is not None and _is_same(tx, before, given, content, attributes):
        return before
    check_session(tx, given.session_id)
    filled = fill(tx, {"content": content, "attributes": attributes}, new_salt)
    body = {"id": given.id, "turn_kind": given.kind, **filled.body}
    body |= {name: getattr(given, name) for name in _BODY}
    row: TurnRow = append_version(tx, TURNS, "turn.asserted", body, filled.payloads, before, src)
    return row


def _is_same(
    tx: Writer, before: TurnRow, given: UpsertTurn, content: Ready, attributes: Ready | None
) -> bool:
    return (
        not before.retracted
        and all(getattr(before, name) == getattr(given, name) for name in _SAME)
        and (before.kind, before.model) == (given.kind, given.model)
        and before.usage == usage_text(given.usage)
        and is_same_text(tx, before, "content", content)
        and is_same_text(tx, before, "attributes", attributes)
    )


def retract_turn(
    tx: Writer, given: RetractTurn, new_salt: Callable[[], bytes], src: Source
) -> TurnRow:
    """Take a turn back; a second time writes nothing."""
    before: TurnRow | None = tx.find_version(TURNS, (given.id,), None)
    if before is None:
        raise InputError(
            f"id: there is no turn {given.id}",
            code="ERR_NOT_FOUND",
            hint="List the turns to see their ids.",
            field="id",
        )
    if before.retracted:
        return before
    filled = fill(tx, {"reason": ready_text(given.reason)}, new_salt)
    body = {"id": given.id, **filled.body}
    row: TurnRow = append_version(tx, TURNS, "turn.retracted", body, filled.payloads, before, src)
    return row


def get_turn(reader: Reader, turn_id: str, moment: int | None) -> Turn | None:
    """A turn as it was; None where it was not, or was taken back."""
    row: TurnRow | None = reader.find_version(TURNS, (turn_id,), moment)
    return None if row is None or row.retracted else turn(row)


def list_turns(reader: Reader, wanted: ListTurns, moment: int | None) -> list[Turn]:
    """Turns by the caller's time, oldest first; one that is changed keeps its place."""
    named = ("message_id", "thread_id", "session_id")
    equal = {name: value for name in named if (value := getattr(wanted, name)) is not None}
    listing = Listing(
        TURNS,
        _ORDER,
        equal,
        wanted.limit,
        moment,
        since_ms=wanted.since_ms,
        after=_find_place(reader, wanted.after, equal),
        newest_first=wanted.newest_first,
    )
    return [turn(row) for row in reader.list_versions(listing)]


def _find_place(
    reader: Reader, after: int | None, equal: Mapping[str, str]
) -> tuple[int, int] | None:
    """Where a list goes on: behind the place of the turn whose version the caller saw last."""
    place = find_place(reader, TURNS, after, _ORDER)
    if after is None or place is None:
        return None
    versions = reader.versions(TURNS, (reader.version_at(TURNS, after).id,))
    like = (
        row.log_index
        for row in versions
        if row.created_at_ms == place[0]
        and all(getattr(row, name) == value for name, value in equal.items())
    )
    return place[0], min(like, default=place[1])
