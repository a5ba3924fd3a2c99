"""Rows of `conversation_turns`: every version of what was said, and where it was taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from affidavit.core.canonical import encode_restricted
from affidavit.core.entry import Entry
from affidavit.core.views.payload import Payload, payload_values

US_PER_MS = 1_000


class TurnRow(NamedTuple):
    """A row of `conversation_turns`: the state after one entry.

    `created_at_ms` is the caller's time, or the ledger's of the first version where none was given.
    """

    log_index: int
    id: str
    parent_id: str | None
    message_id: str
    thread_id: str | None
    session_id: str | None
    kind: str
    content: str | None
    content_salt: bytes | None
    occurred_at_ms: int | None
    created_at_ms: int
    actor: str | None
    model: str | None
    usage: str | None
    attributes_json: str | None
    attributes_json_salt: bytes | None
    retracted: int
    reason: str | None
    reason_salt: bytes | None
    at: int
    superseded_by: int | None = None


_TEXTS = ("content", "attributes", "reason")


def turn_row(
    index: int, entry: Entry, payloads: Mapping[str, Payload], before: TurnRow | None
) -> TurnRow:
    """The row of `turn.asserted` and `turn.retracted`."""
    texts: dict[str, Any] = payload_values(_TEXTS, payloads)
    if entry.kind == "turn.asserted" or before is None:
        return _asserted(index, entry, texts, before)
    # At one instant an assertion beats a retraction, which then stands aside.
    beaten = before.at == entry.at and not before.retracted
    return before._replace(
        **texts,
        log_index=index,
        session_id=None,
        retracted=1,
        at=entry.at,
        superseded_by=index if beaten else None,
    )


def _asserted(
    index: int,
    entry: Entry,
    texts: Mapping[str, Any],
    before: TurnRow | None,
) -> TurnRow:
    body = entry.body
    occurred = body["occurred_at_ms"]
    created = entry.at // US_PER_MS if before is None else before.created_at_ms
    return TurnRow(
        **texts,
        log_index=index,
        id=body["id"],
        parent_id=body["parent_id"],
        message_id=body["message_id"],
        thread_id=body["thread_id"],
        session_id=body["session_id"],
        kind=body["turn_kind"],
        occurred_at_ms=occurred,
        created_at_ms=created if occurred is None else occurred,
        actor=body["actor"],
        model=body["model"],
        usage=usage_text(body["usage"]),
        retracted=0,
        at=entry.at,
    )


def usage_text(usage: Mapping[str, int] | None) -> str | None:
    """Counts as the views store them."""
    return None if usage is None else encode_restricted(dict(usage)).decode()


def find_turn_misfit(entry: Entry, before: TurnRow | None) -> str | None:
    """Why an entry cannot follow this version of its turn."""
    if before is None and entry.kind == "turn.retracted":
        return "a turn was retracted that never was"
    return None
