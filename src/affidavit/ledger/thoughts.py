"""Recording decisions: each a link of its task chain and, bound, of its session chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from affidavit.core.canonical import encode_string as quote
from affidavit.core.entry import Source, encode_thought
from affidavit.core.redact import RULES, redact_text
from affidavit.core.session import chain_hash, content_hash
from affidavit.core.thought import ZERO_HASH, task_hash
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.errors import ConflictError, InputError, invalid
from affidavit.ledger import redaction, results
from affidavit.ledger.inputs import ListThoughts, RecordThought
from affidavit.ledger.ports import Reader, SessionHead, TaskTip, Writer
from affidavit.ledger.results import ThoughtRecord


class Draft(NamedTuple):
    """A thought made ready before the write lock: checked, named, timed and encoded."""

    given: RecordThought
    id: str
    timestamp: str
    id_json: str
    time_json: str
    content_json: str
    task_json: str
    agent_json: str
    removed: int = 0
    original: Draft | None = None


def draft(given: RecordThought, record_id: str, timestamp: str) -> Draft:
    """Everything about a record that does not depend on the chains."""
    text, removed = redact_text(given.content)
    original = _draft(given, record_id, timestamp)
    if not removed:
        return original
    cleaned = _draft(structs.replace(given, content=text), record_id, timestamp)
    return cleaned._replace(removed=removed, original=original)


def _draft(given: RecordThought, record_id: str, timestamp: str) -> Draft:
    return Draft(
        given,
        record_id,
        timestamp,
        quote(record_id),
        quote(timestamp),
        quote(given.content),
        quote(given.task_id),
        quote(given.agent_id),
    )


class _Chains:
    """Where the chains stand while a unit adds to them."""

    def __init__(self, tx: Writer) -> None:
        self._tx = tx
        self.tips: dict[str, TaskTip] = {}
        self.heads: dict[str, SessionHead] = {}

    def link(self, item: Draft, index: int, src: Source) -> tuple[bytes, ThoughtRow]:
        """The entry and the row of the next record."""
        if item.original is not None and redaction.is_off(self._tx):
            item = item.original
        given, at = item.given, self._tx.at
        _, id_, timestamp, id_json, time, text, task, agent, removed, _ = item
        note = f'"redaction":{{"count":{removed},"rules":"{RULES}"}},' if removed else ""
        type_, task_id, session_id = given.type, given.task_id, given.session_id
        tip = self.tips.get(task_id) or self._tx.task_tip(task_id)
        prev = ZERO_HASH if tip is None else tip[0]
        own = task_hash(text, id_json, prev, task, time, type_)
        self.tips[task_id] = TaskTip(own, type_)
        seq = digest = chain = parent = None
        session = seq_json = digest_json = chain_json = parent_json = "null"
        if session_id is not None:
            head = self.heads.get(session_id) or open_session(self._tx, session_id)
            seq, parent, session = head.next_seq, head.chain_hash, quote(session_id)
            digest = content_hash(agent, text, id_json, session, task, time, type_)
            chain = chain_hash(digest, parent)
            self.heads[session_id] = head._replace(chain_hash=chain, next_seq=seq + 1)
            seq_json, digest_json = str(seq), f'"{digest}"'
            chain_json, parent_json = f'"{chain}"', f'"{parent}"'
        entry = encode_thought(
            at, agent, chain_json, digest_json, own, id_json, parent_json, prev, session, seq_json,
            task, time, type_, src, note,
        )  # fmt: skip
        row = ThoughtRow(
            index, id_, type_, task_id, given.agent_id, given.content, timestamp, prev, own,
            timestamp, session_id, seq, digest, chain, parent, at,
        )  # fmt: skip
        return entry, row


def write_thoughts(tx: Writer, drafts: Sequence[Draft], src: Source) -> list[ThoughtRow]:
    """Append records in order, each linked to what is newest at its moment."""
    if not drafts:
        return []
    chains = _Chains(tx)
    linked = [chains.link(item, index, src) for index, item in enumerate(drafts, start=tx.size())]
    tx.append_thoughts(linked, chains.tips, chains.heads)
    return [row for _, row in linked]


def open_session(tx: Writer, session_id: str) -> SessionHead:
    """The head of a session that still takes records."""
    head = tx.session_head(session_id)
    if head is None:
        raise session_not_found(session_id)
    if head.sealed_index is None and head.ended_index is None:
        return head
    sealed = head.sealed_index is not None
    raise ConflictError(
        f"session {session_id!r:.100} {'is sealed' if sealed else 'has ended'}",
        code="ERR_SESSION_SEALED" if sealed else "ERR_SESSION_ENDED",
        hint="Start a new session with continues= this one.",
        session_id=session_id,
    )


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
