"""Recording decisions: each a link of its task chain and, bound, of its session chain."""

from __future__ import annotations

from collections.abc import Callable

from affidavit.core.canonical import encode_string
from affidavit.core.entry import Source, encode_thought
from affidavit.core.moment import render_time
from affidavit.core.session import chain_hash, content_hash
from affidavit.core.thought import ZERO_HASH, task_hash
from affidavit.core.views import ThoughtRow
from affidavit.errors import ConflictError, InputError, invalid
from affidavit.ledger import results
from affidavit.ledger.inputs import (
    ListThoughts,
    RecordThought,
    read_id,
    read_timestamp,
)
from affidavit.ledger.ports import Reader, SessionHead, Writer
from affidavit.ledger.results import ThoughtRecord


class Draft:
    """A thought made ready before the write lock: checked, named, timed and encoded."""

    __slots__ = (
        "agent",
        "content",
        "given",
        "id",
        "id_json",
        "session",
        "task",
        "time",
        "timestamp",
    )

    def __init__(self, given: RecordThought, record_id: str, timestamp: str) -> None:
        self.given = given
        self.id = record_id
        self.timestamp = timestamp
        self.id_json = encode_string(record_id)
        self.time = encode_string(timestamp)
        self.content = encode_string(given.content)
        self.task = encode_string(given.task_id)
        self.agent = encode_string(given.agent_id)
        self.session = None if given.session_id is None else encode_string(given.session_id)


def draft(given: RecordThought, new_id: Callable[[], str], now: Callable[[], str]) -> Draft:
    """Everything about a record that does not depend on the chains."""
    return Draft(given, read_id(new_id()), read_timestamp(now()))


def write_thought(tx: Writer, item: Draft, src: Source) -> ThoughtRow:
    """Append one record, linked to what is newest at this moment."""
    given, index = item.given, tx.size()
    tip = tx.task_tip(given.task_id)
    prev = ZERO_HASH if tip is None else tip.hash
    own = task_hash(item.content, item.id_json, prev, item.task, item.time, given.type)
    fields = {
        "agent": item.agent, "task": item.task, "id": item.id_json, "timestamp": item.time,
        "type": given.type, "hash": own, "prev": prev, "session": "null", "seq": "null",
        "content_hash": "null", "chain": "null", "parent": "null",
    }  # fmt: skip
    seq = digest = link = parent = None
    if item.session is not None and given.session_id is not None:
        head = open_session(tx, given.session_id)
        seq, parent = head.next_seq, head.chain_hash
        digest = content_hash(
            item.agent, item.content, item.id_json, item.session, item.task, item.time, given.type
        )
        link = chain_hash(digest, parent)
        fields.update(
            session=item.session, seq=str(seq), content_hash=f'"{digest}"', chain=f'"{link}"',
            parent=f'"{parent}"',
        )  # fmt: skip
    row = ThoughtRow(
        index, item.id, given.type, given.task_id, given.agent_id, given.content, item.timestamp,
        prev, own, item.timestamp, given.session_id, seq, digest, link, parent, tx.at,
    )  # fmt: skip
    tx.append(encode_thought(tx.at, fields, src), row)
    return row


def open_session(tx: Writer, session_id: str) -> SessionHead:
    """The head of a session that still takes records."""
    head = tx.session_head(session_id)
    if head is None:
        raise session_not_found(session_id)
    if head.sealed_index is not None:
        raise ConflictError(
            f"session {session_id!r:.100} is sealed",
            code="ERR_SESSION_SEALED",
            hint="Start a new session with continues= this one.",
            session_id=session_id,
        )
    if head.ended_index is not None:
        raise ConflictError(
            f"session {session_id!r:.100} has ended",
            code="ERR_SESSION_ENDED",
            hint="Start a new session with continues= this one.",
            session_id=session_id,
        )
    return head


def session_not_found(session_id: str, field: str = "session_id") -> InputError:
    """A typo must not open a session."""
    return InputError(
        f"{field}: there is no session {session_id!r:.100}",
        code="ERR_SESSION_NOT_FOUND",
        hint="Start one first, or leave session_id out.",
        field=field,
    )


def find_place(reader: Reader, after: str | None) -> int:
    """The index of the record to go on behind; before the first one where none is named."""
    if after is None:
        return -1
    found = reader.find_thought(after)
    if found is None:
        raise invalid("after", "there is no record with this id", code="ERR_NOT_FOUND")
    return found.log_index


def list_thoughts(
    reader: Reader, wanted: ListThoughts, *, after: int, limit: int | None, end: int = 2**62
) -> list[ThoughtRecord]:
    """Records in log order, behind one index and below another."""
    rows = reader.thoughts(
        task_id=wanted.task_id,
        session_id=wanted.session_id,
        type=wanted.type,
        after=after,
        end=end,
        limit=limit,
    )
    return [results.thought_record(row) for row in rows]


def minted_time(clock: Callable[[], int]) -> Callable[[], str]:
    """Timestamps from the ledger's clock, for callers who inject none."""

    def now() -> str:
        return render_time(clock())

    return now
