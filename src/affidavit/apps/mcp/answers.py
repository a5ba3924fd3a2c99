"""What tools answer with, where it is not the ledger's own result."""

from __future__ import annotations

from msgspec import Struct

from affidavit.ledger.results import Task, ThoughtRecord


class SessionStarted(Struct, frozen=True):
    """A session has begun."""

    session_id: str
    intent: str
    caller: str | None
    task_id: str | None
    started_at: str
    genesis: str
    proof_grade: bool


class SessionEnded(Struct, frozen=True):
    """A session has ended."""

    session_id: str
    ended_at: str
    record_count: int
    sealed: bool


class Root(Struct, frozen=True):
    """The root over the records of a sealed session."""

    session_id: str
    root: str
    record_count: int
    finalized_at: str


class Finalized(Struct, frozen=True):
    """A session is sealed, now or already."""

    session_id: str
    root: str
    record_count: int
    finalized_at: str
    already_finalized: bool
    warnings: tuple[str, ...]


class ChainCount(Struct, frozen=True):
    """The verdict over one chain among many."""

    valid: bool
    record_count: int
    broken_count: int


class ChainVerdict(Struct, frozen=True):
    """The verdict over one chain, or over every chain when none was named."""

    valid: bool
    record_count: int
    broken_count: int
    first_broken_index: int | None
    first_broken_at: str | None
    reason: str | None
    by_task: dict[str, ChainCount]
    by_session: dict[str, ChainCount]


class Records(Struct, frozen=True):
    """Records, oldest first."""

    records: list[ThoughtRecord]


class Tasks(Struct, frozen=True):
    """Tasks, oldest first, and how many there are in all."""

    tasks: list[Task]
    total_count: int


class Health(Struct, frozen=True):
    """Whether a write would succeed, and the facts this was told from."""

    status: str
    reasons: tuple[str, ...]
    version: str
    mode: str
    uptime_s: int
    ledger_id: str | None = None
    location: str | None = None
    schema_version: int | None = None
    entries: int | None = None
    last_checkpoint: int | None = None
    writers_waiting: int | None = None
    clock_ahead_us: int | None = None
    disk_free_bytes: int | None = None


class Pong(Struct, frozen=True):
    """The server is there."""

    pong: bool = True
