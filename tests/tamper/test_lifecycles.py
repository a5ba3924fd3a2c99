"""Entries that no call could have written: moves of things that were never there, or were over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from affidavit.core.entry import commitment
from affidavit.core.views import VIEW_OF_KIND
from affidavit.core.views.payload import Payload
from tamper.attack import audit, looking, put_row, tampering, told
from tamper.forge import SALT, forge

PAYLOAD = commitment(SALT, "forged")
UUID = "00000000-0000-4000-8000-00000000000f"
END = {
    "request_id": UUID, "call_id": "c", "session_id": None, "status": "completed",
    "ended_at_ms": 1, "latency_ms": 0, "outcome_form": None, "outcome_sha256": None,
    "outcome": None, "error_kind": None, "error_msg": None, "usage": None,
}  # fmt: skip
MOVE = {
    "request_id": UUID, "session_id": None, "decision": None, "by": None, "reason": None,
    "commit_hash": None, "at_ms": 1,
}  # fmt: skip
TURN = {
    "id": UUID, "message_id": UUID, "parent_id": None, "thread_id": None, "session_id": None,
    "turn_kind": "user", "content": PAYLOAD, "occurred_at_ms": None, "actor": None, "model": None,
    "usage": None, "attributes": None,
}  # fmt: skip


def finished(connection: Any, status: str) -> dict[str, Any]:
    """The key and session of a tool call of the history in this state."""
    sql = (
        "SELECT request_id, call_id, session_id FROM tool_calls"
        " WHERE status = ? AND superseded_by IS NULL"
    )
    names = ("request_id", "call_id", "session_id")
    return dict(zip(names, connection.execute(sql, (status,)).fetchone(), strict=True))


FORGERIES = {
    "a finish nobody requested": ("tool_call.completed", lambda _: END),
    "a second finish": ("tool_call.completed", lambda c: END | finished(c, "completed")),
    "a finish in another session": (
        "tool_call.completed",
        lambda c: END | finished(c, "requested") | {"session_id": "b-open"},
    ),
    "a late result of what was not given up": (
        "tool_call.late",
        lambda c: END | finished(c, "completed"),
    ),
    "a status that is not the kind's": (
        "tool_call.failed",
        lambda c: END | finished(c, "requested"),
    ),
    "a retraction of nothing": ("turn.retracted", lambda _: {"id": UUID, "reason": None}),
    "an application of nothing": ("proposal.applied", lambda _: MOVE),
    "a decision about nothing": ("proposal.decided", lambda _: MOVE | {"decision": "denied"}),
    "a turn in a sealed session": ("turn.asserted", lambda _: TURN | {"session_id": "a-sealed"}),
    "a turn in an ended session": ("turn.asserted", lambda _: TURN | {"session_id": "a-ended"}),
    "a turn in no session": ("turn.asserted", lambda _: TURN | {"session_id": "nowhere"}),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_no_call_could_have_written_is_found(victim: Path, name: str) -> None:
    kind, body_of = FORGERIES[name]
    with tampering(victim) as connection:
        entry = forge(connection, kind, dict(body_of(connection)))
        view = VIEW_OF_KIND[kind]
        index = connection.execute("SELECT max(log_index) FROM log").fetchone()[0]
        if kind == "turn.asserted":
            put_row(
                connection, view.derive(index, entry, {"content": Payload("forged", SALT)}, None)
            )
    found = told(audit(victim))
    assert {code for code, place, _ in found if place == index} & {"chain_broken", "seal_mismatch"}
    assert all(place == index for _, place, _ in found), found


def test_the_entries_of_a_session_are_all_counted_by_its_seal(victim: Path) -> None:
    """Turns, calls and proposals of a session are in its entries tree, from views and log alike."""
    from affidavit.stores.sqlite.reading import SESSION_ENTRIES, SqliteReader

    with looking(victim) as connection:
        for session in ("a-silent", "b-silent", "a-sealed", "a-late"):
            (start,) = connection.execute(
                "SELECT log_index FROM sessions WHERE session_id = ?", (session,)
            ).fetchone()
            values = {"session_id": session, "end": 2**62}
            by_views = [row[0] for row in connection.execute(SESSION_ENTRIES, values)]
            in_log = SqliteReader(connection).session_entries(session, start)
            assert by_views == [one.log_index for one in in_log]
            assert len(by_views) > (8 if session.endswith("silent") else 4)
