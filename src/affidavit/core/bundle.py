r"""The evidence file: entries of a log with all it takes to check them, in one archive.

    manifest.json               what the file claims to hold, and the hash of every other file
    policy.txt                  the keys the sender claims; never a source of trust
    checkpoint                  the signed note that every proof leads to
    entries.jsonl               {"entry","index"}: the exact text of each entry
    payloads.jsonl              {"fields","index"}: texts and salts, or what became of them
    proofs/<index>.tlog-proof   that the entry stands in the log
    sessions/<index>.json       the trees of a session, by the index of its start

Here it is written and read; whether what it says is true is for `affidavit.verify.evidence`. JSON
is RFC 8785 text and nothing else: what is read encodes back to the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from affidavit.core.archive import decode_archive, encode_archive
from affidavit.core.canonical import (
    INTEGER_MAX,
    canonicalize_value,
    decode_utf8,
    hex_digest,
    parse_json,
)
from affidavit.core.checkpoint import TreeHead
from affidavit.core.entry import ENTRY_BYTES_MAX, SALT_BYTES
from affidavit.core.kinds import PAYLOAD_FIELDS
from affidavit.core.merkle import Digest
from affidavit.core.names import is_digest, is_name
from affidavit.core.note import decode_base64, encode_base64
from affidavit.errors import InputError

T = TypeVar("T")

SCOPES: Final = ("session", "task", "record", "range")
MANIFEST: Final = "manifest.json"
POLICY: Final = "policy.txt"
CHECKPOINT: Final = "checkpoint"
ENTRIES: Final = "entries.jsonl"
PAYLOADS: Final = "payloads.jsonl"
# One proof a file, and so many files fit into an archive.
BUNDLE_ENTRIES_MAX: Final = 50_000

_PATH_HASHES_MAX: Final = 63
_RANGE = re.compile(r"(0|[1-9][0-9]{0,15}):(0|[1-9][0-9]{0,15})\Z", re.ASCII)
_PROOF = re.compile(r"proofs/(0|[1-9][0-9]{0,15})\.tlog-proof\Z", re.ASCII)
_SESSION = re.compile(r"sessions/(0|[1-9][0-9]{0,15})\.json\Z", re.ASCII)


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
    files: Mapping[str, str]


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


def decode_evidence(data: bytes) -> tuple[Manifest, Evidence, dict[str, bytes]]:
    """Read an evidence file strictly: its claims, its contents, and the files as they are.

    Whether they agree is not asked here. What is not of its shape is an `InputError` whose field
    says in which file.
    """
    files = decode_archive(data)
    manifest = _read(files, MANIFEST, _read_manifest)
    if manifest.files.keys() != files.keys() - {MANIFEST}:
        odd = min(manifest.files.keys() ^ (files.keys() - {MANIFEST}))
        raise _malformed(MANIFEST, f"{odd!r:.200} is listed but not there, or there and not listed")
    entries = _read(files, ENTRIES, _read_entries)
    evidence = Evidence(
        manifest.scope,
        _read(files, POLICY, bytes),
        _read(files, CHECKPOINT, bytes),
        entries,
        _read(files, PAYLOADS, _read_payloads),
        {index: files[name] for index, name in _named(files, _PROOF)},
        {index: _read(files, name, _read_session) for index, name in _named(files, _SESSION)},
    )
    known = {MANIFEST, POLICY, CHECKPOINT, ENTRIES, PAYLOADS}
    known |= set(map(proof_path, evidence.proofs)) | set(map(session_path, evidence.sessions))
    if files.keys() != known:
        name = min(files.keys() - known)
        raise _malformed(name, "is no file of evidence")
    return manifest, evidence, files


def _named(files: Mapping[str, bytes], pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    matches = (pattern.match(name) for name in files)
    return sorted((int(match[1]), match[0]) for match in matches if match)


def _read(files: Mapping[str, bytes], name: str, read: Callable[[bytes], T]) -> T:
    if name not in files:
        raise _malformed(name, "is missing")
    try:
        return read(files[name])
    except InputError as error:
        raise _malformed(name, error.message) from None


def _malformed(place: str, message: str) -> InputError:
    return InputError(f"{place}: {message}", field=place)


def _decode_json(data: bytes) -> Any:
    """RFC 8785 text, and in it one value."""
    text = decode_utf8(data, "text")
    value = parse_json(text, "text")
    if canonicalize_value(value) != text:
        raise InputError("the JSON is not in its canonical form")
    return value


def _decode_lines(data: bytes) -> list[Any]:
    """The values of the lines, each for a greater index than the one before."""
    *lines, rest = data.split(b"\n")
    if rest:
        raise InputError("does not end in a newline")
    values, last = [], -1
    for number, line in enumerate(lines, start=1):
        try:
            value = _decode_json(line)
            if not isinstance(value, dict) or not _is_index(value.get("index")):
                raise InputError("has no index")
            if value["index"] <= last:
                raise InputError(f"entry {value['index']} is there twice, or out of order")
        except InputError as error:
            raise InputError(f"line {number}: {error.message}") from None
        last = value["index"]
        values.append(value)
    return values


def _is_index(value: Any) -> bool:
    return type(value) is int and 0 <= value <= INTEGER_MAX


def _is_index_or_null(value: Any) -> bool:
    return value is None or _is_index(value)


def _is_digest_or_null(value: Any) -> bool:
    return value is None or is_digest(value)


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _check_shape(value: Any, shape: Mapping[str, Callable[[Any], bool]], what: str) -> None:
    if not isinstance(value, dict) or value.keys() != shape.keys():
        raise InputError(f"{what} has not exactly the keys {', '.join(shape)}")
    for key, holds in shape.items():
        if not holds(value[key]):
            raise InputError(f"{key} of {what} is not of its shape")


_MANIFEST_SHAPE: Final = {
    "files": lambda value: isinstance(value, dict) and all(map(is_digest, value.values())),
    "origin": _is_text,
    "root": is_digest,
    "scope": _is_object,
    "size": _is_index,
    "v": lambda value: type(value) is int and value == 1,
}
_SESSION_SHAPE: Final = {
    "entries_root": _is_digest_or_null,
    "entry_count": _is_index,
    "genesis": is_digest,
    "metadata": _is_object,
    "record_count": _is_index,
    "records": _is_list,
    "root": _is_digest_or_null,
    "seal_index": _is_index_or_null,
    "session_id": is_name,
    "whole": _is_bool,
}


def _read_manifest(data: bytes) -> Manifest:
    value = _decode_json(data)
    _check_shape(value, _MANIFEST_SHAPE, "the manifest")
    scope = value["scope"]
    _check_shape(scope, {"id": is_name, "kind": lambda kind: kind in SCOPES}, "the scope")
    if scope["kind"] == "range":
        parse_range(scope["id"])
    return Manifest(
        value["origin"], value["size"], value["root"], Scope(**scope), dict(value["files"])
    )


def _read_entries(data: bytes) -> dict[int, bytes]:
    entries = {}
    for value in _decode_lines(data):
        _check_shape(value, {"entry": _is_text, "index": _is_index}, "a line")
        entry = value["entry"].encode()
        if len(entry) > ENTRY_BYTES_MAX:
            raise InputError(f"entry {value['index']} has more than {ENTRY_BYTES_MAX:,} bytes")
        entries[value["index"]] = entry
    return entries


def _read_payloads(data: bytes) -> dict[int, dict[str, Shown]]:
    payloads = {}
    for value in _decode_lines(data):
        _check_shape(value, {"fields": _is_object, "index": _is_index}, "a line")
        payloads[value["index"]] = {
            name: _read_shown(shown, f"{name} of entry {value['index']}")
            for name, shown in value["fields"].items()
        }
    return payloads


def _read_shown(value: Any, what: str) -> Shown:
    keys = value.keys() if isinstance(value, dict) else set()
    if keys == {"withheld"} and value["withheld"] is True:
        return Shown()
    if keys == {"erased"} and _is_index(value["erased"]):
        return Shown(erased=value["erased"])
    if keys in ({"text"}, {"salt", "text"}) and all(map(_is_text, value.values())):
        salt = decode_base64(value["salt"], "salt") if "salt" in value else None
        if salt is None or len(salt) == SALT_BYTES:
            return Shown(value["text"], salt)
    raise InputError(f"{what[:200]} is not a text with its salt, erased or withheld")


def _read_session(data: bytes) -> SessionPart:
    value = _decode_json(data)
    _check_shape(value, _SESSION_SHAPE, "the session")
    records = tuple(map(_read_record, value["records"]))
    return SessionPart(**{**value, "records": records})


def _read_record(value: Any) -> RecordPath:
    _check_shape(value, {"index": _is_index, "path": _is_list}, "a record")
    path: Sequence[Any] = value["path"]
    if len(path) > _PATH_HASHES_MAX or not all(map(is_digest, path)):
        raise InputError(f"the path of record {value['index']} is not of hashes")
    return RecordPath(value["index"], tuple(Digest(bytes.fromhex(one)) for one in path))
