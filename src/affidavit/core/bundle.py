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
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from affidavit.core.archive import encode_archive
from affidavit.core.canonical import (
    canonicalize_value,
    decode_utf8,
    hex_digest,
)
from affidavit.core.checkpoint import TreeHead
from affidavit.core.kinds import PAYLOAD_FIELDS
from affidavit.core.merkle import Digest
from affidavit.core.note import encode_base64
from affidavit.errors import InputError

SCOPES: Final = ("session", "task", "record", "range")
MANIFEST: Final = "manifest.json"
POLICY: Final = "policy.txt"
CHECKPOINT: Final = "checkpoint"
ENTRIES: Final = "entries.jsonl"
PAYLOADS: Final = "payloads.jsonl"
# One proof a file, and so many files fit into an archive.
BUNDLE_ENTRIES_MAX: Final = 50_000

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
    records: tuple[RecordPath, ...]


class Manifest(NamedTuple):
    """What the file claims to be: claims, until checkpoint and contents agree."""

    origin: str
    size: int
    root: str
    scope: Scope


class Evidence(NamedTuple):
    """What is in the file, by log index where it belongs to an entry."""

    scope: Scope
    policy: bytes
    checkpoint: bytes
    entries: Mapping[int, bytes]
    payloads: Mapping[int, Mapping[str, Shown]]
    proofs: Mapping[int, bytes]
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


def encode_evidence(evidence: Evidence, head: TreeHead) -> bytes:
    """The bytes of an evidence file; the same evidence gives the same bytes."""
    files = {
        POLICY: evidence.policy,
        CHECKPOINT: evidence.checkpoint,
        ENTRIES: _lines(encode_entry_line(*item) for item in sorted(evidence.entries.items())),
        PAYLOADS: _lines(
            canonicalize_value({"fields": encode_fields(fields), "index": index})
            for index, fields in sorted(evidence.payloads.items())
        ),
        **{proof_path(index): proof for index, proof in evidence.proofs.items()},
        **{
            session_path(index): canonicalize_value(_encode_session(part)).encode()
            for index, part in evidence.sessions.items()
        },
    }
    manifest = {
        "files": {name: hex_digest(data) for name, data in files.items()},
        "origin": head.origin,
        "root": head.root.hex(),
        "scope": evidence.scope._asdict(),
        "size": head.size,
        "v": 1,
    }
    return encode_archive({MANIFEST: canonicalize_value(manifest).encode(), **files})


def _lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


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


def _encode_session(part: SessionPart) -> dict[str, Any]:
    records = [
        {"index": index, "path": [digest.hex() for digest in path]} for index, path in part.records
    ]
    return {**part._asdict(), "records": records}
