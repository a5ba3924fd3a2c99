"""The views: what every ordinary table must hold, derived from the log and the payloads alone.

A row is a pure function of its entry, the payloads beside it and, where a thing has versions, the
version before it. Recording writes exactly these rows, verification compares against them,
rebuilding restores them: one derivation for all three. The field names are the column names of
every store. `VIEWS` is the table of them: a new noun brings a module with its row and its function,
and one more line here.

Two kinds of columns are not functions of the row's own entry: payload columns (erasable, never
invented) and links set by a later entry (`superseded_by`, and how a session ended).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.kinds import PAYLOAD_FIELDS
from affidavit.core.views.calls import CallRow, call_row
from affidavit.core.views.captures import (
    CaptureRow,
    DroppedRow,
    LinkRow,
    capture_row,
    dropped_row,
    link_row,
)
from affidavit.core.views.erasures import ErasureRow, erasure_row
from affidavit.core.views.payload import NO_PAYLOAD, Payload
from affidavit.core.views.proposals import ProposalRow, find_proposal_misfit, proposal_row
from affidavit.core.views.sessions import SealRow, SessionRow, seal_row, session_row
from affidavit.core.views.settings import SettingRow, setting_row
from affidavit.core.views.signing import KeyRow, OriginRow, key_row, origin_row
from affidavit.core.views.tasks import TaskRow, find_task_misfit, task_row
from affidavit.core.views.thoughts import ThoughtRow, thought_row
from affidavit.core.views.tool_calls import (
    ApprovalRow,
    ToolCallRow,
    approval_row,
    find_tool_call_misfit,
    tool_call_row,
)
from affidavit.core.views.turns import TurnRow, find_turn_misfit, turn_row

Payloads = Mapping[str, Payload]
# From an entry, its index, its payloads and the version before it, where there is one.
Derive = Callable[[int, Entry, Payloads, Any], Any]


class View(NamedTuple):
    """One table: whose rows it holds, which entries have one, and what such a row is.

    `links` are the columns a later entry sets. Where a thing has versions, `key` pairs the columns
    that name it with the keys of the body that do, `superseded_by` links each to the next, and
    `find_misfit` says why an entry cannot come after a version. A row that changes nothing of what
    is in force stands aside: its link is its own index.
    """

    row: type[Any]
    table: str
    counted: str
    kinds: tuple[str, ...]
    derive: Derive
    links: tuple[str, ...] = ()
    key: tuple[tuple[str, str], ...] = ()
    find_misfit: Callable[[Entry, Any], str | None] = lambda _, __: None

    def name_of(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """What an entry says it is a version of."""
        return tuple(body[name] for _, name in self.key)

    def name_in(self, row: Any) -> tuple[str, ...]:
        """What a row says it is a version of."""
        return tuple(getattr(row, column) for column, _ in self.key)


def _reason(payloads: Payloads) -> Payload:
    return payloads.get("reason", NO_PAYLOAD)


VIEWS: Final = (
    View(
        ThoughtRow, "thought_records", "thoughts", ("thought.recorded",),
        lambda index, entry, payloads, _: thought_row(index, entry, payloads["content"].text or ""),
    ),
    View(
        SessionRow, "sessions", "sessions", ("session.started",),
        lambda index, entry, payloads, _: session_row(
            index, entry, payloads.get("intent", NO_PAYLOAD)
        ),
        links=("ended_index", "ended_at", "end_reason"),
    ),
    View(
        SealRow, "seals", "seals", ("session.sealed",),
        lambda index, entry, _, __: seal_row(index, entry),
    ),
    View(
        TaskRow, "task_versions", "tasks", ("task.created", "task.updated", "task.deleted"),
        task_row, ("superseded_by",), (("id", "task_id"),), find_task_misfit,
    ),
    View(
        SettingRow, "setting_changes", "settings", ("setting.changed",),
        lambda index, entry, _, __: setting_row(index, entry),
    ),
    View(
        KeyRow, "key_changes", "keys", ("key.added", "key.retired"),
        lambda index, entry, payloads, _: key_row(index, entry, _reason(payloads)),
    ),
    View(
        OriginRow, "origin_changes", "origins", ("origin.changed",),
        lambda index, entry, payloads, _: origin_row(index, entry, _reason(payloads)),
    ),
    View(
        CallRow, "calls", "calls", ("call.finished", "call.failed"),
        lambda index, entry, payloads, _: call_row(
            index, entry, payloads.get("args_sha256", NO_PAYLOAD)
        ),
    ),
    View(
        TurnRow, "conversation_turns", "turns", ("turn.asserted", "turn.retracted"),
        turn_row, ("superseded_by",), (("id", "id"),), find_turn_misfit,
    ),
    View(
        ToolCallRow, "tool_calls", "tool_calls",
        ("tool_call.requested", "tool_call.completed", "tool_call.failed", "tool_call.late"),
        tool_call_row, ("superseded_by",),
        (("request_id", "request_id"), ("call_id", "call_id")), find_tool_call_misfit,
    ),
    View(
        ProposalRow, "code_edit_proposals", "proposals",
        ("proposal.created", "proposal.decided", "proposal.applied", "proposal.reverted"),
        proposal_row, ("superseded_by",), (("request_id", "request_id"),), find_proposal_misfit,
    ),
    View(
        ApprovalRow, "approvals", "approvals", ("approval.decided",),
        lambda index, entry, payloads, _: approval_row(index, entry, payloads),
    ),
    View(
        LinkRow, "session_links", "links", ("session.linked",),
        lambda index, entry, _, __: link_row(index, entry),
    ),
    View(
        CaptureRow, "captures", "captures", ("capture.started", "capture.stopped"),
        lambda index, entry, _, __: capture_row(index, entry),
    ),
    View(
        DroppedRow, "dropped_events", "dropped", ("events.dropped",),
        lambda index, entry, _, __: dropped_row(index, entry),
    ),
    View(
        ErasureRow, "erasures", "erasures", ("payload.erased",),
        lambda index, entry, payloads, _: erasure_row(index, entry, _reason(payloads)),
    ),
)  # fmt: skip

# A row of any view: a named tuple that begins with the index of its entry.
Row = tuple[Any, ...]

TABLES: Final[dict[type[Any], str]] = {view.row: view.table for view in VIEWS}
# The view an entry of a kind has its row in; `session.ended` only sets links.
VIEW_OF_KIND: Final[dict[str, View]] = {kind: view for view in VIEWS for kind in view.kinds}
# Whose rows name the session that their entry names.
SESSION_VIEWS: Final = tuple(view for view in VIEWS if "session_id" in view.row._fields)
# Columns a later entry sets.
LINKS: Final[dict[str, tuple[str, ...]]] = {view.table: view.links for view in VIEWS if view.links}


def find_differing(actual: Any, expected: Any) -> Iterator[str]:
    """The columns in which two rows differ, in value or in type: 1.0 is not what was written."""
    for name, is_value, must_be in zip(actual._fields, actual, expected, strict=True):
        if is_value != must_be or type(is_value) is not type(must_be):
            yield name


def payload_columns(kind: str) -> tuple[str, ...]:
    """The payload fields of a kind's body, each with a column for its text and one for its salt."""
    return PAYLOAD_FIELDS.get(kind, ())


def text_columns(kind: str) -> tuple[str, ...]:
    """The payload fields of a kind, a record's content among them."""
    return ("content",) if kind == "thought.recorded" else payload_columns(kind)
