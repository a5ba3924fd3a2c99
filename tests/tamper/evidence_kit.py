"""What an attacker with an evidence file can do: change any file of it, and all claims about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from affidavit.core.archive import decode_archive, encode_archive
from affidavit.core.bundle import (
    Evidence,
    Manifest,
    RecordPath,
    Scope,
    SessionPart,
    Shown,
    proof_path,
    write_evidence,
)
from affidavit.core.bundle_reading import BundleReader
from affidavit.core.canonical import canonicalize_value
from affidavit.core.checkpoint import TreeHead, sign_checkpoint
from affidavit.core.entry import Source, decode_entry, encode_entry
from affidavit.core.merkle import Digest, LeafTree, leaf_hash, prove_inclusion, tree_root
from affidavit.core.note import SigningKey, VerifierKey, decode_base64, parse_signing_key
from affidavit.core.session import METADATA_KEYS
from affidavit.core.tlog_proof import TlogProof, encode_proof
from affidavit.errors import InputError
from affidavit.verify.evidence import EvidenceReport, verify_evidence
from affidavit.verify.trust import Trust

VECTOR = json.loads(
    (Path(__file__).parents[1] / "vectors/data/affidavit-v1/log.json").read_text(encoding="utf-8")
)
KEY = parse_signing_key(VECTOR["test_signing_key"])
STRANGER = SigningKey(KEY.name, sha256(b"a stranger's").digest())
TRUST = Trust(keys=(KEY.verifier,))
SOURCE = Source()


class Whole(NamedTuple):
    """What is in a file, by log index where it belongs to an entry."""

    scope: Scope
    policy: bytes
    checkpoint: bytes
    entries: dict[int, bytes]
    payloads: dict[int, dict[str, Shown]]
    proofs: dict[int, bytes]
    sessions: dict[int, SessionPart]


def read_whole(data: bytes) -> tuple[Manifest, Whole]:
    """What is in a small file, all at once."""
    bundle = BundleReader(data)
    assert list(bundle.find_changed()) == []
    sessions = {
        start: part._replace(records=tuple(bundle.records(start)))
        for start, part in bundle.sessions.items()
    }
    parts = (dict(bundle.entries()), dict(bundle.payloads()), dict(bundle.proofs()), sessions)
    return bundle.manifest, Whole(bundle.scope, bundle.policy, bundle.checkpoint, *parts)


class Opened:
    """An evidence file taken apart, to be put together again with its hashes made right."""

    def __init__(self, data: bytes) -> None:
        self.files = decode_archive(data)

    def json(self, name: str) -> Any:
        return json.loads(self.files[name])

    def put_json(self, name: str, value: Any) -> None:
        self.files[name] = canonicalize_value(value).encode()

    def lines(self, name: str) -> dict[int, Any]:
        """The lines of a file, by the index each is about."""
        found = [json.loads(line) for line in self.files[name].splitlines()]
        return {value["index"]: value for value in found}

    def put_lines(self, name: str, values: Iterable[Any]) -> None:
        text = "".join(f"{canonicalize_value(value)}\n" for value in values)
        self.files[name] = text.encode()

    def change_line(self, name: str, index: int, change: Callable[[Any], None]) -> None:
        values = self.lines(name)
        change(values[index])
        self.put_lines(name, values.values())

    def drop_line(self, name: str, index: int) -> None:
        self.put_lines(name, [v for n, v in self.lines(name).items() if n != index])

    def change_json(self, name: str, change: Callable[[Any], None]) -> None:
        value = self.json(name)
        change(value)
        self.put_json(name, value)

    def drop_entry(self, index: int, *, listed: bool = False) -> None:
        """Take an entry away with all that speaks of it."""
        self.drop_line("entries.jsonl", index)
        self.drop_line("payloads.jsonl", index)
        self.files.pop(proof_path(index), None)
        for name in [name for name in self.files if name.startswith("sessions/") and not listed]:
            self.change_json(
                name,
                lambda part: part.update(
                    records=[r for r in part["records"] if r["index"] != index]
                ),
            )

    def sealed(self) -> bytes:
        """The file again, with the manifest's hashes made anew."""
        manifest = self.json("manifest.json")
        manifest["files"] = {
            name: sha256(data).hexdigest()
            for name, data in self.files.items()
            if name != "manifest.json"
        }
        self.put_json("manifest.json", manifest)
        return encode_archive(self.files)


class ForgedLog:
    """A log as whoever holds the key may write it, honest or not, in memory."""

    def __init__(self, entries: list[bytes], key: SigningKey = KEY) -> None:
        self.entries = entries
        self._key = key
        leaves = [leaf_hash(entry) for entry in entries]
        self._tree = LeafTree(leaves)
        self.head = TreeHead(key.name, len(entries), Digest(tree_root(leaves)))
        self.note = sign_checkpoint(self.head, [key])

    def proof(self, index: int) -> bytes:
        path = prove_inclusion(index, len(self.entries), self._tree)
        return encode_proof(TlogProof(index, tuple(path), self.note))

    def evidence(
        self,
        scope: Scope,
        indices: Iterable[int],
        payloads: Mapping[int, Any] | None = None,
        sessions: Mapping[int, SessionPart] | None = None,
    ) -> bytes:
        """An evidence file of these entries."""
        wanted = sorted(indices)
        evidence = Evidence(
            scope,
            f"log {self._key.verifier}\nquorum none\n".encode(),
            self.note,
            [(index, self.entries[index]) for index in wanted],
            sorted((payloads or {}).items()),
            wanted,
            self.proof,
            sessions or {},
        )
        return b"".join(write_evidence(evidence, self.head))

    def part(
        self, start: int, *, seal: int | None = None, present: Container[int] | None = None
    ) -> SessionPart:
        """What a file says of the session that starts at an index; `present` of it, or all."""
        body = decode_entry(self.entries[start]).body
        named = [n for n in range(len(self.entries)) if self._names(n, body["session_id"])]
        own = [n for n in named if seal is None or n < seal]
        records = [n for n in own if decode_entry(self.entries[n]).kind == "thought.recorded"]
        tree = LeafTree([leaf_hash(self.entries[n]) for n in records])
        sealed = {} if seal is None else decode_entry(self.entries[seal]).body
        paths = [
            prove_inclusion(place, len(records), tree) if sealed else ()
            for place in range(len(records))
        ]
        return SessionPart(
            session_id=body["session_id"],
            metadata={key: body[key] for key in METADATA_KEYS},
            genesis=body["genesis"],
            seal_index=seal,
            root=sealed.get("root"),
            record_count=sealed.get("record_count", len(records)),
            entries_root=sealed.get("entries_root"),
            entry_count=sealed.get("entry_count", len(own)),
            whole=present is None,
            records=tuple(
                RecordPath(n, tuple(path))
                for n, path in zip(records, paths, strict=True)
                if present is None or n in present
            ),
        )

    def _names(self, index: int, session_id: str) -> bool:
        try:
            return decode_entry(self.entries[index]).body.get("session_id") == session_id
        except InputError:
            return False


def told(report: EvidenceReport) -> list[tuple[str, int | None, str]]:
    """The findings without their words."""
    return [(found.code, found.index, found.place) for found in report.findings]


def judge(data: bytes, *keys: VerifierKey) -> EvidenceReport:
    """What an auditor with the log's key says."""
    return verify_evidence(data, Trust(keys=keys) if keys else TRUST)


def change_entry(entry: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The entry with something in it changed, in canonical form."""
    value = json.loads(entry)
    change(value)
    return encode_entry(value["at"], value["kind"], value["body"], Source(**value["src"]))


def entry(at: int, kind: str, **body: Any) -> bytes:
    """A new entry of the log."""
    return encode_entry(1_776_384_000_000_000 + at, kind, body, SOURCE)


# The log of the vectors, and behind it what may follow a seal: an end, and an erasure.
ENTRIES = [
    *(text.encode() for text in VECTOR["entries"]),
    entry(10, "session.ended", session_id="s1", ended_at="2026-04-17T00:00:10Z", reason="done"),
    entry(11, "payload.erased", by="owner", field_count=1, fields=[[1, "intent"]], reason=None),
]
SEAL, ENDED, ERASED = 9, 10, 11
PAYLOADS = {
    line["index"]: {
        name: Shown(one["text"], decode_base64(one["salt"], "salt") if "salt" in one else None)
        for name, one in line["fields"].items()
    }
    for line in VECTOR["payloads"]
}


def payloads_of(indices: Iterable[int]) -> dict[int, dict[str, Shown]]:
    return {index: PAYLOADS[index] for index in indices if index in PAYLOADS}


def session_file(log: ForgedLog, *, erased: bool = False) -> bytes:
    """Session s1 as a whole; or with its intent erased, and the entry that says so."""
    indices = [*range(1, 8), SEAL, ENDED]
    payloads = payloads_of(indices)
    if erased:
        indices.append(ERASED)
        payloads[1] = {"intent": Shown(erased=ERASED)}
    return log.evidence(Scope("session", "s1"), indices, payloads, {1: log.part(1, seal=SEAL)})


def task_file(log: ForgedLog, task_id: str = "t1") -> bytes:
    """A task's records, with start and seal of their session."""
    records = {"t1": [2, 3, 6, 7], "t2": [4, 8]}[task_id]
    indices = sorted([1, *records, SEAL])
    part = log.part(1, seal=SEAL, present=records)
    return log.evidence(Scope("task", task_id), indices, payloads_of(indices), {1: part})


def range_file(log: ForgedLog, first: int = 0, end: int = len(ENTRIES)) -> bytes:
    """Every entry of a stretch."""
    indices = range(first, end)
    return log.evidence(Scope("range", f"{first}:{end}"), indices, payloads_of(indices))
