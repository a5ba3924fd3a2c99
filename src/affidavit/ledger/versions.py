"""Writing and reading versions of turns, tool calls and proposals, all in the same way."""

from __future__ import annotations

from typing import Any, Final

from affidavit.core.entry import Entry, Source, encode_entry
from affidavit.core.views import TABLES, VIEWS, View
from affidavit.core.views.payload import Payload
from affidavit.core.views.proposals import ProposalRow
from affidavit.core.views.tasks import TaskRow
from affidavit.core.views.tool_calls import ApprovalRow, ToolCallRow
from affidavit.core.views.turns import TurnRow
from affidavit.errors import ConflictError, InputError
from affidavit.ledger.ports import Reader, Writer
from affidavit.ledger.thoughts import open_session

_BY_TABLE: Final = {view.table: view for view in VIEWS}
TURNS: Final[View] = _BY_TABLE[TABLES[TurnRow]]
TOOL_CALLS: Final[View] = _BY_TABLE[TABLES[ToolCallRow]]
PROPOSALS: Final[View] = _BY_TABLE[TABLES[ProposalRow]]
APPROVALS: Final[View] = _BY_TABLE[TABLES[ApprovalRow]]
TASKS: Final[View] = _BY_TABLE[TABLES[TaskRow]]


def append_version(
    tx: Writer,
    view: View,
    kind: str,
    body: dict[str, Any],
    payloads: dict[str, Payload],
    before: Any,
    src: Source,
) -> Any:
    """Write an entry and its row, and link the version before it."""
    entry = Entry(tx.at, kind, body, src)
    row = view.derive(tx.size(), entry, payloads, before)
    index = tx.append(encode_entry(*entry), row)
    if before is not None and row.superseded_by is None:
        tx.supersede(before, index)
    return row


def check_session(tx: Writer, session_id: str | None) -> None:
    """That a session that is named takes new facts."""
    if session_id is not None:
        open_session(tx, session_id)


def session_if_open(tx: Writer, session_id: str | None) -> str | None:
    """The session a later move may still name: none once it is sealed or ended."""
    head = None if session_id is None else tx.session_head(session_id)
    is_open = head is not None and head.sealed_index is None and head.ended_index is None
    return session_id if is_open else None


def find_place(
    reader: Reader, view: View, after: int | None, order: tuple[str, str]
) -> tuple[int, int] | None:
    """Where a list goes on: behind the version whose index the caller saw last."""
    if after is None:
        return None
    row = reader.version_at(view, after)
    if row is None:
        raise InputError(
            f"after: entry {after} is none of this list",
            code="ERR_NOT_FOUND",
            hint="Give the index of the last item of the page before.",
            field="after",
        )
    return getattr(row, order[0]), getattr(row, order[1])


def invalid_lifecycle(
    what: str, status: str | None, to: str, allowed: tuple[str, ...], hint: str = ""
) -> ConflictError:
    """A move that is not one of the lifecycle's."""
    ways = ", ".join(allowed)
    said = "it does not exist" if status is None else f"it is {status}"
    fallback = f"Allowed now: {ways}." if ways else f"{status} is final."
    return ConflictError(
        f"{what} cannot become {to}: {said}",
        code="ERR_INVALID_LIFECYCLE",
        hint=hint or fallback,
        allowed=list(allowed),
        status=status,
    )
