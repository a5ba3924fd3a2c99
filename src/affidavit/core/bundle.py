r"""The evidence file: entries of a log with all it takes to check them, in one archive.

    manifest.json               what the file claims to hold, and the hash of every other file
    policy.txt                  the keys the sender claims; never a source of trust
    checkpoint                  the signed note that every proof leads to
    entries.jsonl               {"entry","index"}: the exact text of each entry
    payloads.jsonl              {"fields","index"}: texts and salts, or what became of them
    proofs/<index>.tlog-proof   that the entry stands in the log
    sessions/<index>.json       the trees of a session, by the index of its start

Here it is written; `bundle_reading` reads it, and whether what it says is true is for
`affidavit.verify.evidence`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

from affidavit.core.archive import Written, write_archive
from affidavit.core.canonical import canonicalize_value, decode_utf8
from affidavit.core.checkpoint import TreeHead
from affidavit.core.kinds import PAYLOAD_FIELDS
from affidavit.core.merkle import Digest
from affidavit.core.note import encode_base64
from affidavit.errors import InputError

T = TypeVar("T")
Progress = Callable[[int, int], None]

SCOPES: Final = ("session", "task", "record", "range")
MANIFEST: Final = "manifest.json"
POLICY: Final = "policy.txt"
CHECKPOINT: Final = "checkpoint"
ENTRIES: Final = "entries.jsonl"
PAYLOADS: Final = "payloads.jsonl"
# One proof a file, and so many files fit into an archive.
BUNDLE_ENTRIES_MAX: Final = 1_000_000

_RECORDS: Final = ',"records":[]'
_RANGE = re.compile(r"(0|[1-9][0-9]{0,15}):(0|[1-9][0-9]{0,15})\Z", re.ASCII)


class Scope(NamedTuple):
    """What was asked for: one session, task or record, or the entries `A:B`, B not included."""

    kind: str
    id: str


class Shown(NamedTuple):
    """A payload in the file: its text and salt, the entry that erased it, or withheld."""

    text: str | None = None
    salt: bytes | None = None
    erased: int | None = None

    @property
    def is_withheld(self) -> bool:
        """Whether the sender kept it back."""
        return self.text is None and self.erased is None


class RecordPath(NamedTuple):
    """A record of a session, and its audit path in the session's tree."""

    log_index: int
    path: tuple[Digest, ...]


class SessionPart(NamedTuple):
    """What the file says of one session; the roots are null where it was never sealed."""

    session_id: str
    metadata: Mapping[str, Any]
    genesis: str
    seal_index: int | None
    root: str | None
    record_count: int
    entries_root: str | None
    entry_count: int
    whole: bool
    records: Iterable[RecordPath]


class Manifest(NamedTuple):
    """What the file claims to be: claims, until checkpoint and contents agree."""

    origin: str
    size: int
    root: str
    scope: Scope


class Evidence(NamedTuple):
    """What is in the file, with log indices where it belongs to entries; in the order of the log.

    Nothing of it need be in memory: all is asked for twice, and may be made anew each time.
    """

    scope: Scope
    policy: bytes
    checkpoint: bytes
    entries: Iterable[tuple[int, bytes]]
    payloads: Iterable[tuple[int, Mapping[str, Shown]]]
    indices: Sequence[int]
    prove: Callable[[int], bytes]
    sessions: Mapping[int, SessionPart]


def payload_fields(kind: str, body: Mapping[str, Any]) -> list[str]:
    """The payload fields an entry has: by its kind, or of a kind not known here by their shape."""
    if kind == "thought.recorded":
        return ["content"]
    if kind in PAYLOAD_FIELDS:
        return [name for name in PAYLOAD_FIELDS[kind] if body[name] is not None]
    return [
        name
        for name, value in body.items()
        if isinstance(value, dict) and value.keys() == {"bytes", "commit"}
    ]


def parse_range(text: str) -> tuple[int, int]:
    """The half-open range that `A:B` says."""
    match = _RANGE.match(text)
    first, end = (int(match[1]), int(match[2])) if match else (0, 0)
    if first >= end:
        raise InputError(
            f"range: {text!r:.60} is not a range of entries such as 0:100",
            hint="The second index is not included.",
            field="range",
        )
    return first, end


def proof_path(index: int) -> str:
    """Where the proof of an entry stands."""
    return f"proofs/{index}.tlog-proof"


def session_path(start_index: int) -> str:
    """Where a session stands."""
    return f"sessions/{start_index}.json"


def write_evidence(
    evidence: Evidence, head: TreeHead, progress: Progress | None = None
) -> Iterator[bytes]:
    """An evidence file in pieces; how many of its steps are done is told at some of them.

    The manifest stands before what it lists, and a header before what it is of, so everything is
    asked for twice: to be measured, then to be written. What is kept of a file between is little.
    """
    order = sorted(evidence.indices, key=proof_path)
    sizes = _Sizes()
    steps = _Steps(len(order), progress)
    for _, pieces in _files(evidence, order, steps):
        sizes.measure(pieces)
    names = (name for name, _ in _files(evidence, order))
    manifest = b"".join(_encode_manifest(sizes.digests(names), evidence.scope, head))
    yield from write_archive(_written(_files(evidence, order, steps), sizes, manifest))


class _Steps:
    """Counts entries, their texts and their proofs, each of which goes by twice."""

    def __init__(self, entries: int, progress: Progress | None) -> None:
        self._progress = progress
        self._total = 6 * entries
        self._done = 0

    def count(self, items: Iterable[T]) -> Iterator[T]:
        """The same, counted."""
        for item in items:
            yield item
            self._done += 1
            if self._progress is not None and not self._done & 1023:
                self._progress(self._done, self._total)


_UNTOLD: Final = _Steps(0, None)


_Pieces = Iterable[bytes]


def _files(
    evidence: Evidence, order: Sequence[int], steps: _Steps = _UNTOLD
) -> Iterator[tuple[str, _Pieces]]:
    """Every file but the manifest, in the order of the archive, its bytes made when they come."""
    yield CHECKPOINT, (evidence.checkpoint,)
    yield (
        ENTRIES,
        (_line(encode_entry_line(*item)) for item in steps.count(evidence.entries)),
    )
    yield (
        PAYLOADS,
        (
            _line(canonicalize_value({"fields": encode_fields(fields), "index": index}))
            for index, fields in steps.count(evidence.payloads)
        ),
    )
    yield POLICY, (evidence.policy,)
    for index in steps.count(order):
        yield proof_path(index), map(evidence.prove, (index,))
    for index in sorted(evidence.sessions, key=session_path):
        yield session_path(index), _encode_session(evidence.sessions[index])


class _Sizes:
    """What has to be known of each file before it is written, in the order of the files."""

    def __init__(self) -> None:
        self._sizes = array("Q")
        self._crcs = array("L")
        self._hashes = bytearray()

    def measure(self, pieces: _Pieces) -> None:
        """The next file."""
        size, crc, digest = 0, 0, sha256()
        for piece in pieces:
            size, crc = size + len(piece), crc32(piece, crc)
            digest.update(piece)
        self._sizes.append(size)
        self._crcs.append(crc)
        self._hashes += digest.digest()

    def digests(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The digest of each file, by its name."""
        for number, name in enumerate(names):
            yield name, self._hashes[32 * number : 32 * number + 32].hex()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._crcs, self._sizes, strict=True)


def _written(
    files: Iterable[tuple[str, _Pieces]], sizes: _Sizes, manifest: bytes
) -> Iterator[Written]:
    for (name, pieces), (crc, size) in zip(files, sizes, strict=True):
        if name == PAYLOADS:  # before it in the order of names
            yield Written(MANIFEST, crc32(manifest), len(manifest), (manifest,))
        yield Written(name, crc, size, pieces)


def _encode_manifest(
    digests: Iterable[tuple[str, str]], scope: Scope, head: TreeHead
) -> Iterator[bytes]:
    """The manifest; its many files are not made one value first."""
    yield b'{"files":{'
    for number, (name, digest) in enumerate(digests):
        yield f'{"," if number else ""}"{name}":"{digest}"'.encode()
    rest = {
        "origin": head.origin,
        "root": head.root.hex(),
        "scope": scope._asdict(),
        "size": head.size,
        "v": 1,
    }
    yield f"}},{canonicalize_value(rest)[1:]}".encode()


def _line(text: str) -> bytes:
    return f"{text}\n".encode()


def encode_entry_line(index: int, entry: bytes) -> str:
    """The line of an entry."""
    return canonicalize_value({"entry": decode_utf8(entry, "entry"), "index": index})


def encode_fields(fields: Mapping[str, Shown]) -> dict[str, Any]:
    """The payloads of one entry as they stand in the file."""
    return {name: _encode_shown(shown) for name, shown in fields.items()}


def _encode_shown(shown: Shown) -> dict[str, Any]:
    if shown.text is None:
        return {"withheld": True} if shown.is_withheld else {"erased": shown.erased}
    if shown.salt is None:
        return {"text": shown.text}
    return {"salt": encode_base64(shown.salt), "text": shown.text}


def _encode_session(part: SessionPart) -> Iterator[bytes]:
    """A session; its many records are not made one value first."""
    before, _, after = canonicalize_value({**part._asdict(), "records": []}).partition(_RECORDS)
    yield f"{before}{_RECORDS[:-1]}".encode()
    for number, (index, path) in enumerate(part.records):
        hashes = ",".join(f'"{digest.hex()}"' for digest in path)
        yield f'{"," if number else ""}{{"index":{index},"path":[{hashes}]}}'.encode()
    yield f"]{after}".encode()
