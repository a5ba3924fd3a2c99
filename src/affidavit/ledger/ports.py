"""What the use cases ask of a store and of the outside world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from affidavit.core.checkpoint import TreeHead
from affidavit.core.entry import Entry
from affidavit.core.merkle import Digest, Node
from affidavit.core.note import VerifierKey
from affidavit.core.views import Row, View
from affidavit.core.views.captures import CaptureRow, DroppedRow, LinkRow
from affidavit.core.views.payload import Payload
from affidavit.core.views.sessions import SealRow, SessionRow
from affidavit.core.views.tasks import TaskRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.core.views.tool_calls import ApprovalRow
from affidavit.errors import AffidavitError
from affidavit.verify.findings import ChainReport
from affidavit.verify.ledger import StretchReport
from affidavit.verify.ports import LedgerSource, Repairer, Stretch

T = TypeVar("T")

Clock = Callable[[], int]


class SessionHead(NamedTuple):
    """What decides whether a session takes another record, and what that record links to."""

    ended_index: int | None
    sealed_index: int | None
    chain_hash: str
    next_seq: int


class TaskTip(NamedTuple):
    """The newest record of a task chain."""

    hash: str
    type: str


class SessionEntry(NamedTuple):
    """An entry that names a session, as the log has it."""

    log_index: int
    leaf: Digest
    is_thought: bool


class KeyUse(NamedTuple):
    """What an idempotency key stood for the first time."""

    operation: str
    salt: bytes
    input_digest: bytes
    first_index: int
    last_index: int


class WordQuery(NamedTuple):
    """What a search looks for: all of these words, in texts that are about something."""

    tokens: tuple[str, ...]
    kind: str | None
    session_id: str | None
    task_id: str | None
    since: int
    until: int
    limit: int


class Hit(NamedTuple):
    """A text that was found; the lower the rank, the better."""

    log_index: int
    field: str
    rank: float


class Remembered(NamedTuple):
    """An erasure as it is known outside of the ledger: fields with the hashes of their entries."""

    log_index: int
    leaf: str
    erased_by: str
    fields: tuple[tuple[int, str, str], ...]


class TaskFilter(NamedTuple):
    """Which tasks a list wants; `by_project` tells "without a project" from "any"."""

    status: str | None
    project_id: str | None
    by_project: bool
    include_deleted: bool
    open_only: bool = False
    # Tasks as they were when the log had so many entries.
    end: int | None = None


class Listing(NamedTuple):
    """Which versions a list wants: those in force at a moment, in the order of a time.

    A turn has the place of its first version with the same time, and with what `equal` asks for.
    """

    view: View
    order: tuple[str, str]
    equal: Mapping[str, Any]
    limit: int
    moment: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    after: tuple[int, int] | None = None
    newest_first: bool = True


class Reader(Protocol):
    """One snapshot of a ledger: everything read through it belongs to one moment."""

    def size(self) -> int: ...
    def last_at(self) -> int: ...
    def has_views(self) -> bool: ...
    def entry(self, index: int) -> Entry: ...
    def entry_indices(self, *, session_id: str | None, task_id: str | None) -> list[int]: ...
    def newest_thoughts(self, limit: int) -> list[int]: ...
    def texts(self, index: int, kind: str, bytes_max: int) -> dict[str, bytes | None]: ...
    def text_sizes(self, index: int, kind: str) -> dict[str, int]: ...
    def texts_holding(self, text: str) -> dict[int, set[str]]: ...
    def older_texts(self, tables: Sequence[str], before_us: int, limit: int) -> list[int]: ...
    def log_bytes(self) -> int: ...
    def view_bytes(self, table: str) -> tuple[int, int, int]: ...
    def turn_indices(self, turn_id: str) -> list[int]: ...
    def call_ends(self, request_id: str, call_id: str) -> list[int]: ...
    def call_requests(self, request_id: str, call_id: str) -> list[int]: ...
    def calls_behind(self, indices: Sequence[int]) -> list[int]: ...
    def count_entries_holding(self, text: str) -> int: ...
    def leaf(self, index: int) -> Digest: ...
    def entries(self, start: int, end: int) -> Iterator[tuple[int, bytes]]: ...
    def payloads(self, start: int, end: int) -> dict[int, dict[str, Payload]]: ...
    def read_log_nodes(self, nodes: Sequence[Node]) -> list[Digest]: ...
    def find_thought(self, record_id: str) -> ThoughtRow | None: ...
    def thoughts_between(self, first: int, last: int) -> list[ThoughtRow]: ...
    def thoughts(
        self,
        *,
        task_id: str | None,
        session_id: str | None,
        type: str | None,
        after: int,
        end: int,
        limit: int | None,
    ) -> list[ThoughtRow]: ...
    def find_session(self, session_id: str) -> SessionRow | None: ...
    def session_at(self, index: int) -> SessionRow: ...
    def sessions(
        self,
        *,
        task_id: str | None,
        state: str | None,
        continues: str | None,
        before: int,
        limit: int | None,
    ) -> list[SessionRow]: ...
    def idle_sessions(self, before_us: int) -> list[str]: ...
    def session_head(self, session_id: str) -> SessionHead | None: ...
    def session_entries(self, session_id: str, start: int) -> list[SessionEntry]: ...
    def record_count(self, session_id: str, end: int = ...) -> int: ...
    def find_seal(self, session_id: str) -> SealRow | None: ...
    def task_tip(self, task_id: str) -> TaskTip | None: ...
    def find_task(self, task_id: str) -> TaskRow | None: ...
    def task_version(self, index: int) -> TaskRow: ...
    def with_texts(self, row: TaskRow) -> TaskRow: ...
    def tasks(
        self, wanted: TaskFilter, limit: int | None, offset: int
    ) -> tuple[list[TaskRow], int]: ...
    def task_version_indices(self, task_id: str) -> list[int]: ...
    def erasures(self) -> list[tuple[int, Entry]]: ...
    def find_version(self, view: View, name: tuple[str, ...], moment: int | None) -> Any: ...
    def versions(self, view: View, name: tuple[str, ...]) -> list[Any]: ...
    def version_before(self, view: View, name: tuple[str, ...], index: int) -> Any: ...
    def version_at(self, view: View, index: int) -> Any: ...
    def list_versions(self, wanted: Listing) -> list[Any]: ...
    def usage(
        self, by: str, since_ms: int | None, until_ms: int | None
    ) -> list[tuple[str | None, str, int]]: ...
    def approvals(self, name: tuple[str, str]) -> list[ApprovalRow]: ...
    def find_linked(self, source: str, external_id: str) -> SessionRow | None: ...
    def links(self, session_id: str) -> list[LinkRow]: ...
    def captures(self, session_id: str | None) -> list[CaptureRow]: ...
    def dropped(self) -> list[DroppedRow]: ...
    def at_of(self, index: int) -> int: ...
    def end_of(self, moment: int) -> int: ...
    def setting_changes(self, end: int) -> list[Entry]: ...
    def identity_changes(self) -> list[tuple[int, Entry]]: ...
    def find_key(self, key: str) -> KeyUse | None: ...


class Writer(Reader, Protocol):
    """One unit of writing: a single call's facts, all with the same time, all or nothing."""

    at: int

    def append(self, entry: bytes, row: Row | None) -> int: ...
    def append_thoughts(
        self,
        linked: Sequence[tuple[bytes, ThoughtRow]],
        tips: Mapping[str, TaskTip],
        heads: Mapping[str, SessionHead],
    ) -> None: ...
    def end_session(self, row: SessionRow) -> None: ...
    def supersede(self, row: Any, by: int) -> None: ...
    def add_levels(self, tree: int, levels: Sequence[Sequence[Digest]]) -> None: ...
    def add_key(self, key: str, use: KeyUse) -> None: ...
    def erase(self, table: str, index: int, name: str, erased_at: str) -> None: ...
    def forget_inputs(self, indices: Sequence[int]) -> None: ...
    def check_session(self, session_id: str) -> ChainReport: ...
    def cached(self, name: str, load: Callable[[], Any]) -> Any: ...


# From the size of an older tree to the proof that the newer one begins with it.
ProveGrowth = Callable[[int], Sequence[Digest]]


class Signers(Protocol):
    """Who signs for this user: a folder of keys, or a process of another user that has them."""

    def has(self, key: VerifierKey) -> bool:
        """Whether the secret of this key is there."""
        ...

    def make(self, origin: str) -> VerifierKey:
        """A new key; it is on disk when this returns."""
        ...

    def sign(self, head: TreeHead, keys: Sequence[VerifierKey], prove: ProveGrowth) -> bytes:
        """The checkpoint with a signature by each of these keys; all of them are there."""
        ...


class Guard(Protocol):
    """What this machine last signed under one origin, held for one process at a time."""

    def read(self) -> bytes | None:
        """The newest note signed here."""
        ...

    def write(self, note: bytes) -> None:
        """Remember a note; it is on disk when this returns."""
        ...

    def keep_evidence(self, name: str, data: bytes) -> str:
        """Keep what shows that a history was replaced; answers with its place."""
        ...


class GuardFolder(Protocol):
    """Where this machine keeps its guards."""

    def look(self, origin: str) -> bytes | None:
        """The newest note signed here, without waiting for who is signing."""
        ...

    def hold(self, origin: str, *, patient: bool = True) -> AbstractContextManager[Guard]:
        """The guard of an origin; nobody else of this user signs while it is held."""
        ...


class Publication(Protocol):
    """A place where a log is published, held for one process at a time."""

    place: str

    def read(self, path: str) -> bytes | None:
        """A file, if it is there."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Put a file in place; it survives a power cut after the next `sync`."""
        ...

    def remove_partials(self, path: str) -> None:
        """Take away the partial forms of a tile or bundle that is there as a whole."""
        ...

    def sync(self) -> None:
        """Wait until everything written is on disk."""
        ...


class Publications(Protocol):
    """Places where logs are published."""

    def hold(self, place: str) -> AbstractContextManager[Publication]:
        """One of them; nobody else publishes there while it is held."""
        ...


class Crew(Protocol):
    """Processes that verify stretches of a ledger at the same time."""

    def count(self) -> int:
        """How many there may be at once."""
        ...

    def verify(
        self, location: str, stretches: Sequence[Stretch], progress: Callable[[int], None] | None
    ) -> list[StretchReport] | None:
        """The verdict over each stretch; None where they could not do it."""
        ...


class ErasureMemory(Protocol):
    """What this machine remembers of erasures, outside of every ledger."""

    def hold(self, ledger_id: str, *, patient: bool = True) -> AbstractContextManager[None]:
        """For one who erases at a time; the impatient is refused when somebody does already."""
        ...

    def mark(self, ledger_id: str) -> None:
        """Something is about to be erased; the file is to be cleaned, whatever happens."""
        ...

    def unmark(self, ledger_id: str) -> None:
        """The file is clean."""
        ...

    def is_marked(self, ledger_id: str) -> bool:
        """Whether somebody was stopped before the file was clean."""
        ...

    def remember(self, ledger_id: str, notes: Sequence[Remembered]) -> None:
        """Keep what was erased; it is on disk when this returns."""
        ...

    def newest(self, ledger_id: str) -> Remembered | None:
        """The erasure remembered last."""
        ...

    def recall(self, ledger_id: str) -> list[Remembered]:
        """Every erasure remembered, oldest first."""
        ...


class Store(Protocol):
    """Where a ledger is kept."""

    location: str
    readonly: bool

    @property
    def is_open(self) -> bool:
        """Whether it was not closed yet."""
        ...

    def write(self, unit: Callable[[Writer], T], clock: Clock, *, quick: bool = False) -> T:
        """Run a unit under the write lock and return its answer once it is durable.

        Others may be held up for a unit that says it is quick.
        """
        ...

    def write_soon(self, unit: Callable[[Writer], None], clock: Clock) -> None:
        """Have a unit go with the next commit, a second later at most; it waits for nothing."""
        ...

    def flush(self) -> None:
        """Commit now what was to be written soon."""
        ...

    def write_alone(self, unit: Callable[[Writer], T], clock: Clock) -> T:
        """The same, once, and with no other unit in its commit: it may wait for its caller."""
        ...

    def read(self) -> AbstractContextManager[Reader]:
        """One snapshot."""
        ...

    def explain(self, error: Exception) -> AffidavitError | None:
        """What an error of the database means; None where it is no such error."""
        ...

    def glance(self, ask: Callable[[Reader], T]) -> T:
        """Ask for rows that never change once they are there: no snapshot over statements."""
        ...

    def audit(self) -> AbstractContextManager[LedgerSource]:
        """One snapshot as a verifier reads it."""
        ...

    def rebuild(self, repair: Callable[[LedgerSource, Repairer], T]) -> T:
        """Run a repair of the views in one transaction, with the guards lifted."""
        ...

    def query(self, sql: str, params: Sequence[Any] | Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of one statement that only reads, within limits."""
        ...

    def check_scrubbable(self) -> None:
        """That something may be erased here."""
        ...

    def search(self, wanted: WordQuery) -> AbstractContextManager[tuple[Reader, list[Hit]]]:
        """What holds all the words, and the snapshot it was found in."""
        ...

    def scrub(self, fields: Sequence[tuple[int, str]]) -> bool:
        """Leave nothing of what was erased in the files; whether nobody was in the way."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Facts about the store for a person: file, versions, sizes."""
        ...

    def close(self) -> None: ...
