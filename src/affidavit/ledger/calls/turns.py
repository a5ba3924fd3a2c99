"""Recording and reading what was said."""

from __future__ import annotations

from typing import Any

from affidavit.errors import invalid
from affidavit.ledger import turns
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, read_input
from affidavit.ledger.observed import (
    ListTurns,
    RetractTurn,
    SumUsage,
    Turn,
    UpsertTurn,
    Usage,
    check_usage,
    read_uuid,
    read_uuids,
    turn,
)
from affidavit.ledger.payloads import ready_json, ready_text


class Turns(Handle):
    """Calls about turns of conversations."""

    def upsert_turn(
        self,
        id: Any = REQUIRED,
        message_id: Any = REQUIRED,
        kind: str = REQUIRED,
        content: str = REQUIRED,
        parent_id: Any = None,
        thread_id: str | None = None,
        occurred_at_ms: int | None = None,
        session_id: str | None = None,
        actor: str | None = None,
        model: str | None = None,
        usage: dict[str, int] | None = None,
        attributes: Any = None,
    ) -> Turn:
        """Record a turn, or what it is now: other content is a new version, the same is nothing."""
        fields = {
            "id": id,
            "message_id": message_id,
            "kind": kind,
            "content": content,
            "parent_id": parent_id,
            "thread_id": thread_id,
            "occurred_at_ms": occurred_at_ms,
            "session_id": session_id,
            "actor": actor,
            "model": model,
            "usage": usage,
            "attributes": attributes,
        }
        given = read_input(UpsertTurn, read_uuids(fields, "id", "message_id", "parent_id"))
        check_usage(given.usage)
        context = self._context
        text = ready_text(given.content)
        more = ready_json(given.attributes, "attributes", context.project_root)
        if text is None:
            raise invalid("content", "is missing")
        return self._commit(
            lambda tx: turn(turns.upsert_turn(tx, given, text, more, context.new_salt, context.src))
        )

    def retract_turn(self, id: Any = REQUIRED, reason: str | None = None) -> int:
        """Take a turn back; answers with the index of the entry that does."""
        given = read_input(RetractTurn, read_uuids({"id": id, "reason": reason}, "id"))
        context = self._context
        return self._commit(
            lambda tx: turns.retract_turn(tx, given, context.new_salt, context.src).log_index
        )

    def get_turn(
        self, id: Any = REQUIRED, as_of: Any = None, *, as_of_index: int | None = None
    ) -> Turn | None:
        """A turn by its id, as it is or was; None where it was not, or was taken back."""
        turn_id = read_uuid(id, "id")
        return self._glance(
            as_of, as_of_index, lambda reader, moment: turns.get_turn(reader, turn_id, moment)
        )

    def usage(
        self, by: str = "model", since_ms: int | None = None, until_ms: int | None = None
    ) -> list[Usage]:
        """What turns and tool calls used, added up by `model`, `session` or `day` (UTC)."""
        wanted = read_input(SumUsage, {"by": by, "since_ms": since_ms, "until_ms": until_ms})
        rows = self._read(lambda reader: reader.usage(wanted.by, wanted.since_ms, wanted.until_ms))
        sums: dict[str | None, dict[str, int]] = {}
        for key, name, total in rows:
            sums.setdefault(key, {})[name] = total
        return [Usage(key, counts) for key, counts in sums.items()]

    def has_turn(self, id: Any = REQUIRED) -> bool:
        """Whether a turn was ever recorded, also one that was taken back."""
        turn_id = read_uuid(id, "id")
        return self._read(lambda reader: bool(reader.turn_indices(turn_id)))

    def list_turns(
        self,
        since_ms: int | None = None,
        thread_id: str | None = None,
        message_id: Any = None,
        session_id: str | None = None,
        limit: int = 100,
        after: int | None = None,
        newest_first: bool = False,
        as_of: Any = None,
        *,
        as_of_index: int | None = None,
    ) -> list[Turn]:
        """Turns by the caller's time, oldest first; `after` is the index of the last one seen."""
        fields = {
            "since_ms": since_ms,
            "thread_id": thread_id,
            "message_id": message_id,
            "session_id": session_id,
            "limit": limit,
            "after": after,
            "newest_first": newest_first,
        }
        wanted = read_input(ListTurns, read_uuids(fields, "message_id"))
        return self._read_at(
            as_of, as_of_index, lambda reader, moment: turns.list_turns(reader, wanted, moment)
        )
