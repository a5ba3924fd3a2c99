"""What calls answer with: frozen values, the promised fields first, then ours."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from affidavit.core.note import VerifierKey
from affidavit.core.views.sessions import SealRow, SessionRow
from affidavit.core.views.tasks import TaskRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.verify.findings import Finding


class Result(Struct, frozen=True):
    """A frozen answer that can be turned into plain JSON values."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as dicts, lists and plain values."""
        shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return shown


class ThoughtRecord(Result, frozen=True, gc=False):
    """One decision record; without content it was erased, or its content is lost."""

    id: str
    type: str
    task_id: str
    agent_id: str
    content: str | None
    timestamp: str
    prev_hash: str
    hash: str
    session_id: str | None
    index: int
    at: int
    content_hash: str | None
    chain_hash: str | None
    parent_chain_hash: str | None
    session_seq: int | None
    erased: bool = False


class Session(Result, frozen=True):
    """One session: how it started and where it stands."""

    session_id: str
    intent: str | None
    caller: str | None
    task_id: str | None
    started_at: str
    genesis: str
    proof_grade: bool
    state: str
    record_count: int
    continues: str | None
    project: str | None
    model: str | None
    root: str | None
    finalized_at: str | None
    ended_at: str | None
    end_reason: str | None
    index: int
    at: int


class Seal(Result, frozen=True):
    """What seals a session."""

    session_id: str
    root: str
    record_count: int
    finalized_at: str
    chain_hash: str
    closing_reflection: bool
    entries_root: str
    entry_count: int
    first_index: int
    last_index: int
    index: int
    at: int
    already_finalized: bool = False
    warnings: tuple[str, ...] = ()


class SessionEnd(Result, frozen=True):
    """How a session ended."""

    session_id: str
    ended_at: str
    record_count: int
    sealed: bool
    reason: str
    index: int


class Task(Result, frozen=True):
    """One task as it is, or as it was at one entry."""

    id: str
    project_id: str | None
    title: str | None
    description: str | None
    status: str
    priority: str | None
    assignee: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None
    attempt: int
    index: int
    at: int


class TaskList(Result, frozen=True):
    """A page of tasks and how many there are in all."""

    tasks: tuple[Task, ...]
    total_count: int


class LogEntry(Result, frozen=True):
    """An entry of the log with what was written in it; one that cannot be read says `damage`."""

    index: int
    at: int | None
    kind: str | None
    body: dict[str, Any]
    auth: str | None
    client: str | None
    via: str | None
    texts: dict[str, str | None]
    cut: tuple[str, ...] = ()
    damage: str | None = None


class SearchHit(Result, frozen=True):
    """A text that was found: where it stands, what it is about, and a piece of it."""

    index: int
    kind: str
    field: str
    excerpt: str
    session_id: str | None
    task_id: str | None
    id: str | None
    at: int
    score: float


class Found(Result, frozen=True):
    """What a search found, the best first."""

    hits: tuple[SearchHit, ...]


class ErasurePlan(Result, frozen=True):
    """What an erasure would take away; `named_in` counts entries that hold the words in a name.

    Names are part of the log and cannot be erased.
    """

    fields: tuple[tuple[int, str], ...]
    field_count: int
    bytes: int
    kinds: dict[str, int]
    named_in: int


class Erasure(Result, frozen=True):
    """What was erased; with `scrub: pending` a later opener cleans the file."""

    field_count: int
    indices: tuple[int, ...]
    scrub: str


class NounSize(Result, frozen=True):
    """How much the entries about one thing take, in the log and as texts beside it."""

    noun: str
    entries: int
    log_bytes: int
    text_bytes: int


class Size(Result, frozen=True):
    """What takes the space; without a rate the ledger is younger than an hour."""

    entries: int
    log_bytes: int
    nouns: tuple[NounSize, ...]
    file_bytes: int
    wal_bytes: int
    search_bytes: int
    span_us: int
    year_bytes: int | None


class Step(Result, frozen=True):
    """A step of two sessions: `=` alike, `~` with other texts, `-` and `+` in one of them alone."""

    how: str
    kind: str
    what: str
    index: int | None
    other_index: int | None
    texts: dict[str, str | None]
    other_texts: dict[str, str | None]


class Retained(Result, frozen=True):
    """What was erased because it was too old, by kind."""

    erased: dict[str, int]
    scrub: str


class Overdue(Result, frozen=True):
    """A kind with texts older than their period allows; the oldest, and by how much."""

    kind: str
    index: int
    overdue_us: int


class Rebuild(Result, frozen=True):
    """What deriving the views anew found, and what of it remains; valid when nothing does."""

    valid: bool
    difference_count: int
    differences: tuple[Finding, ...]
    repaired: bool
    remaining_count: int


class SignedCheckpoint(Result, frozen=True):
    """A checkpoint of the log, and the signed note that says so."""

    origin: str
    size: int
    root: str
    note: str


class Published(Result, frozen=True):
    """What is published of a log, and where; `written` files are new there."""

    origin: str
    size: int
    root: str
    place: str
    written: int


class SessionProof(Result, frozen=True):
    """That a record is in a sealed session: its path to the root that the seal names."""

    session_id: str
    root: str
    record_count: int
    position: int
    path: tuple[str, ...]
    seal_index: int
    seal_entry: str
    seal_proof: str


class RecordProof(Result, frozen=True):
    """That a record is in the log: its entry, and a proof that ends in a signed checkpoint.

    `session` is null where the record belongs to none, or to one that is not sealed.
    """

    id: str
    index: int
    entry: str
    origin: str
    size: int
    root: str
    proof: str
    session: SessionProof | None


class GrowthProof(Result, frozen=True):
    """That the log of `old_size` entries is the beginning of the one of `new_size`."""

    origin: str
    old_size: int
    old_root: str
    new_size: int
    new_root: str
    hashes: tuple[str, ...]


class Key(Result, frozen=True):
    """A key that signs for the log, or did; `here` says whether its secret is on this machine."""

    vkey: str
    state: str
    added_index: int
    retired_index: int | None
    here: bool


def key(verifier: VerifierKey, added: int, retired: int | None, *, here: bool) -> Key:
    """A key as callers see it."""
    state = "active" if retired is None else "retired"
    return Key(str(verifier), state, added, retired, here)


def thought_record(row: ThoughtRow) -> ThoughtRecord:
    """A record as callers see it."""
    (
        index, id_, type_, task_id, agent_id, content, timestamp, prev_hash, hash_, _created_at,
        session_id, seq, content_hash, chain_hash, parent, at, erased_at,
    ) = row  # fmt: skip
    # Nobody can record an empty content: where it is empty it was erased, or it is lost.
    return ThoughtRecord(
        id_, type_, task_id, agent_id, content or None, timestamp, prev_hash, hash_, session_id,
        index, at, content_hash, chain_hash, parent, seq, erased_at is not None,
    )  # fmt: skip


def session(row: SessionRow, seal: SealRow | None, record_count: int) -> Session:
    """A session as callers see it."""
    state = "ended" if row.ended_index is not None else "sealed" if seal else "open"
    return Session(
        session_id=row.session_id,
        intent=row.intent,
        caller=row.caller,
        task_id=row.task_id,
        started_at=row.started_at,
        genesis=row.genesis,
        proof_grade=bool(row.proof_grade),
        state=state,
        record_count=record_count,
        continues=row.continues_session_id,
        project=row.project,
        model=row.model,
        root=seal.root if seal else None,
        finalized_at=seal.finalized_at if seal else None,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
        index=row.log_index,
        at=row.at,
    )


def seal(row: SealRow, *, already: bool, warnings: tuple[str, ...] = ()) -> Seal:
    """A seal as callers see it."""
    return Seal(
        session_id=row.session_id,
        root=row.root,
        record_count=row.record_count,
        finalized_at=row.finalized_at,
        chain_hash=row.chain_hash,
        closing_reflection=bool(row.closing_reflection),
        entries_root=row.entries_root,
        entry_count=row.entry_count,
        first_index=row.first_index,
        last_index=row.last_index,
        index=row.log_index,
        at=row.at,
        already_finalized=already,
        warnings=warnings,
    )


def task(row: TaskRow) -> Task:
    """A task as callers see it; the row must carry its texts."""
    return Task(
        id=row.id,
        project_id=row.project_id,
        title=row.title,
        description=row.description,
        status=row.status,
        priority=row.priority,
        assignee=row.assignee,
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted_at=row.deleted_at,
        attempt=row.attempt,
        index=row.log_index,
        at=row.at,
    )
