"""Putting together an evidence file: which entries it takes, and the proofs of each.

Everything is read from one snapshot and ends at one signed checkpoint: what came later is left out,
so the same part of the same checkpoint gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from affidavit.core.bundle import (
    BUNDLE_ENTRIES_MAX,
    Evidence,
    Progress,
    RecordPath,
    Scope,
    SessionPart,
    Shown,
    encode_fields,
    parse_range,
    payload_fields,
    write_evidence,
)
from affidavit.core.canonical import canonicalize_value, decode_utf8
from affidavit.core.checkpoint import Checkpoint
from affidavit.core.entry import Entry, decode_entry
from affidavit.core.kinds import PAYLOAD_FIELDS
from affidavit.core.merkle import Digest, LeafTree, Node, prove_inclusion
from affidavit.core.session import METADATA_KEYS
from affidavit.core.tlog_proof import TlogProof, encode_proof
from affidavit.core.views.payload import NO_PAYLOAD, Payload
from affidavit.core.views.sessions import SessionRow
from affidavit.errors import InputError, IntegrityViolation, invalid
from affidavit.ledger import checkpoints
from affidavit.ledger.context import Context
from affidavit.ledger.keys import read_identity
from affidavit.ledger.ports import Reader, SessionEntry
from affidavit.ledger.thoughts import session_not_found

T = TypeVar("T")

# What may be kept back.
FIELDS: Final = frozenset(("content", *(name for kind in PAYLOAD_FIELDS.values() for name in kind)))
_PAGE: Final = 512
_NODES_MAX: Final = 100_000
_SAYS_MORE: Final = "Keep the file as it is; `affidavit verify` says more."


def export(
    context: Context, scope: Scope, withhold: Collection[str], progress: Progress | None = None
) -> Iterator[bytes]:
    """The evidence file of a part of the log in pieces, as signed now.

    It ends at a checkpoint that is signed for it where the log has grown.
    """
    while True:
        signed = checkpoints.checkpoint(context)
        with context.store.read() as reader:
            found = _Collector(reader, signed, withhold).collect(scope)
            if found is not None:
                yield from write_evidence(found, signed.head, progress)
                return


def iter_lines(reader: Reader) -> Iterator[bytes]:
    """Every entry with its payloads, a line of RFC 8785 text each, in constant memory."""
    size = reader.size()
    for start in range(0, size, _PAGE):
        end = min(start + _PAGE, size)
        kept = reader.payloads(start, end)
        for index, raw in reader.entries(start, end):
            shown = {
                name: Shown(text, salt)
                for name, (text, salt) in kept.get(index, {}).items()
                if text is not None
            }
            line = {"entry": decode_utf8(raw, "entry"), "fields": encode_fields(shown)}
            yield f"{canonicalize_value({**line, 'index': index})}\n".encode()


class _Remembered:
    """The log's tree, its nodes read once as long as they are near each other."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[Node, Digest] = {}

    def read_hashes(self, nodes: Sequence[Node]) -> list[Digest]:
        """The hashes of these nodes."""
        if len(self._known) > _NODES_MAX:
            self._known.clear()
        missing = [node for node in nodes if node not in self._known]
        self._known.update(zip(missing, self._reader.read_log_nodes(missing), strict=True))
        return [self._known[node] for node in nodes]


class _Again(Generic[T]):
    """What is made anew whenever it is asked for, so that it is never there as a whole."""

    def __init__(self, make: Callable[[], Iterator[T]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[T]:
        return self._make()


class _Read(NamedTuple):
    """An entry of the file: its bytes, what they say, and the payloads kept for it."""

    raw: bytes
    entry: Entry
    kept: dict[str, Payload]


class _Collector:
    """Reads one snapshot up to one checkpoint."""

    def __init__(self, reader: Reader, signed: Checkpoint, withhold: Collection[str]) -> None:
        self._reader = reader
        self._note = signed.note.encode()
        self._end = signed.head.size
        self._withhold = frozenset(withhold)
        self._erasures: dict[tuple[int, str], int] | None = None
        self._tree = _Remembered(reader)

    def collect(self, scope: Scope) -> Evidence | None:
        """The evidence; None where something it must name came after the checkpoint."""
        chosen, sessions = self._choose(scope)
        present, with_payloads = set[int](), list[int]()
        while chosen:
            present |= chosen
            erasers = set[int]()
            for index, shown in self._shown(sorted(chosen)):
                with_payloads.append(index)
                erasers |= {one.erased for one in shown.values() if one.erased is not None}
            chosen = erasers - present
            if any(index >= self._end for index in chosen):
                return None
        indices = sorted(present)
        with_payloads.sort()
        return Evidence(
            scope,
            self._policy(),
            self._note,
            _Again(lambda: self._raws(indices)),
            _Again(lambda: self._shown(with_payloads)),
            indices,
            self._prove,
            sessions,
        )

    def _raws(self, indices: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        for start, end in _stretches(indices):
            yield from self._reader.entries(start, end)

    def _shown(self, indices: Sequence[int]) -> Iterator[tuple[int, dict[str, Shown]]]:
        for index, found in self._read(indices):
            if shown := self._show(index, found):
                yield index, shown

    def _prove(self, index: int) -> bytes:
        path = tuple(prove_inclusion(index, self._end, self._tree))
        return encode_proof(TlogProof(index, path, self._note))

    def _policy(self) -> bytes:
        keys = read_identity(self._reader).keys
        return "".join([*(f"log {key}\n" for key in keys), "quorum none\n"]).encode()

    def _choose(self, scope: Scope) -> tuple[set[int], dict[int, SessionPart]]:
        if scope.kind == "range":
            chosen = self._choose_range(scope.id), dict[int, SessionPart]()
        elif scope.kind == "session":
            chosen = self._choose_session(scope.id)
        else:
            chosen = self._choose_records(scope)
        if len(chosen[0]) > BUNDLE_ENTRIES_MAX:
            raise InputError(
                f"{scope.kind}: {len(chosen[0]):,} entries, one file takes {BUNDLE_ENTRIES_MAX:,}",
                code="ERR_TOO_LARGE",
                hint="Export ranges of entries, or give the whole ledger.",
                field=scope.kind,
            )
        return chosen

    def _choose_range(self, text: str) -> set[int]:
        first, end = parse_range(text)
        if end > self._end:
            raise invalid("range", f"{text} goes beyond the log, which has {self._end:,} entries")
        return set(range(first, min(end, first + BUNDLE_ENTRIES_MAX + 1)))

    def _choose_session(self, session_id: str) -> tuple[set[int], dict[int, SessionPart]]:
        row = self._reader.find_session(session_id)
        if row is None or row.log_index >= self._end:
            raise session_not_found(session_id)
        named = self._named(row)
        present = {one.log_index for one in named}
        return present, {row.log_index: self._describe(row, named, present, whole=True)}

    def _choose_records(self, scope: Scope) -> tuple[set[int], dict[int, SessionPart]]:
        """A record, or a task's records and its own entries; start and seal of their sessions."""
        if scope.kind == "record":
            record = self._reader.find_thought(scope.id)
            records = [] if record is None else [record]
            own = set[int]()
        else:
            records = self._reader.thoughts(
                task_id=scope.id, session_id=None, type=None, after=-1, end=self._end, limit=None
            )
            own = {n for n in self._reader.task_version_indices(scope.id) if n < self._end}
        present = own | {row.log_index for row in records if row.log_index < self._end}
        if not present:
            raise invalid(
                scope.kind,
                f"there is no {scope.kind} {scope.id!r:.100}",
                hint="`affidavit thoughts` and `affidavit task list` show what is there.",
                code="ERR_NOT_FOUND",
            )
        sessions, indices = {}, set(present)
        for session_id in dict.fromkeys(row.session_id for row in records):
            if session_id is not None and (row := self._reader.find_session(session_id)):
                part = self._describe(row, self._named(row), present, whole=False)
                sessions[row.log_index] = part
                indices |= {row.log_index, part.seal_index or row.log_index}
        return indices, sessions

    def _named(self, row: SessionRow) -> list[SessionEntry]:
        found = self._reader.session_entries(row.session_id, row.log_index)
        return [one for one in found if one.log_index < self._end]

    def _describe(
        self, row: SessionRow, named: Sequence[SessionEntry], present: set[int], *, whole: bool
    ) -> SessionPart:
        """What the file says of a session: roots and paths where it is sealed, else counts only."""
        metadata = self._reader.entry(row.log_index).body
        own = [one for one in named if one.log_index in present]
        records = [one.log_index for one in own if one.is_thought]
        part = SessionPart(
            session_id=row.session_id,
            metadata={key: metadata[key] for key in METADATA_KEYS},
            genesis=row.genesis,
            seal_index=None,
            root=None,
            record_count=len(records),
            entries_root=None,
            entry_count=len(own) if whole else len(own) + 1,
            whole=whole,
            records=tuple(RecordPath(index, ()) for index in records),
        )
        seal = self._reader.find_seal(row.session_id)
        if seal is None or seal.log_index >= self._end:
            return part
        sealed = [one for one in named if one.is_thought and one.log_index < seal.log_index]
        leaves = [one.leaf for one in sealed]
        shown = [(n, one.log_index) for n, one in enumerate(sealed) if one.log_index in present]
        return part._replace(
            seal_index=seal.log_index,
            root=seal.root,
            record_count=seal.record_count,
            entries_root=seal.entries_root,
            entry_count=seal.entry_count,
            records=_Again(lambda: _prove_records(leaves, shown)),
        )

    def _read(self, indices: Sequence[int]) -> Iterator[tuple[int, _Read]]:
        for start, end in _stretches(indices):
            kept = self._reader.payloads(start, end)
            for index, raw in self._reader.entries(start, end):
                try:
                    entry = decode_entry(raw)
                except InputError as error:
                    raise IntegrityViolation(
                        f"entry {index} of the log is damaged ({error.message})",
                        hint=_SAYS_MORE,
                        index=index,
                    ) from None
                yield index, _Read(raw, entry, kept.get(index, {}))

    def _show(self, index: int, found: _Read) -> dict[str, Shown]:
        names = payload_fields(found.entry.kind, found.entry.body)
        return {name: self._show_field(index, name, found) for name in names}

    def _show_field(self, index: int, name: str, found: _Read) -> Shown:
        text, salt = found.kept.get(name, NO_PAYLOAD)
        if text is None:
            return Shown(erased=self._find_erasure(index, name))
        return Shown() if name in self._withhold else Shown(text, salt)

    def _find_erasure(self, index: int, name: str) -> int:
        if self._erasures is None:
            self._erasures = {
                (field[0], field[1]): at
                for at, entry in self._reader.erasures()
                for field in entry.body.get("fields", ())
            }
        at = self._erasures.get((index, name))
        if at is None:
            raise IntegrityViolation(
                f"the {name} of entry {index} is gone, and no entry says that it was erased",
                hint=_SAYS_MORE,
                index=index,
            )
        return at


def _prove_records(
    leaves: Sequence[Digest], shown: Sequence[tuple[int, int]]
) -> Iterator[RecordPath]:
    """The path of each record the file holds, by its place in the tree of all the session's."""
    tree = LeafTree(leaves)
    for place, index in shown:
        yield RecordPath(index, tuple(prove_inclusion(place, len(leaves), tree)))


def _stretches(indices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Half-open runs of neighbouring indices, none of them long."""
    start = end = -1
    for index in indices:
        if index != end or index - start >= _PAGE:
            if end > start:
                yield start, end
            start = index
        end = index + 1
    if end > start:
        yield start, end
