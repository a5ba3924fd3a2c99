"""What an evidence file says of each session: compared with its entries, its trees with its seal.

A sealed session that is there as a whole is complete, or its seal says so: the two roots count
every record and every entry. Of one that is there in part, each record is proved under the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from affidavit.core.bundle import ENTRIES, Evidence, SessionPart, session_path
from affidavit.core.entry import Entry
from affidavit.core.merkle import check_inclusion, complete_levels, leaf_hash
from affidavit.core.session import METADATA_KEYS
from affidavit.errors import IntegrityViolation
from affidavit.verify.findings import Findings
from affidavit.verify.session_state import SessionState
from affidavit.verify.sessions import find_wrong_claim

Entries = Mapping[int, tuple[bytes, Entry]]
_FROM_SEAL: Final = ("root", "record_count", "entries_root", "entry_count")


class PartCheck:
    """Checks the sessions of a file one by one."""

    def __init__(
        self, evidence: Evidence, entries: Entries, is_whole: bool, findings: Findings
    ) -> None:
        self._entries = entries
        self._is_whole = is_whole
        self._findings = findings
        self._named = _by_session(evidence, entries)
        self.seals = self.complete = 0
        self.unchecked: list[str] = []
        if is_whole and evidence.scope.kind != "range":
            self._check_listed(evidence)

    def _check_listed(self, evidence: Evidence) -> None:
        """Every session that starts or is named in the file is described in it."""
        described = {part.session_id for part in evidence.sessions.values()}
        for index, (_, entry) in self._entries.items():
            name = entry.body.get("session_id")
            if isinstance(name, str) and name not in described:
                said = f"session {name!r:.100} is not described"
                self._findings.add("view_missing", index, "sessions", said)
                described.add(name)

    def check(self, start: int, part: SessionPart, state: SessionState | None) -> None:
        """Compare a session's claims with its start, its seal and its records."""
        name, place = f"session {part.session_id!r:.100}", session_path(start)
        if state is None or state.start_index != start:
            if self._is_whole:
                said = f"{name} does not start there in the file"
                self._findings.add("entry_missing", start, ENTRIES, said)
            return
        body = self._entries[start][1].body
        claims = {"metadata": {key: body[key] for key in METADATA_KEYS}, "genesis": body["genesis"]}
        claims["seal_index"] = state.sealed_at
        claims |= self._counted(part, state)
        for key, is_so in claims.items():
            if getattr(part, key) != is_so and self._is_whole:
                said = f"{key} is not what the entries of {name} say"
                self._findings.add("view_differs", start, f"{place} {key}", said)
        self._check_records(start, part, state)
        if state.sealed_at is None:
            self.unchecked.append(
                f"whether entries of {name} are missing: it was not sealed by this checkpoint"
            )
            return
        self.seals += 1
        if part.whole and self._is_whole:
            self._check_complete(part, state, state.sealed_at)

    def _counted(self, part: SessionPart, state: SessionState) -> dict[str, Any]:
        """Roots and counts: those of the seal, or what is there where none was made."""
        if state.sealed_at is not None:
            seal = self._entries[state.sealed_at][1].body
            return {key: seal[key] for key in _FROM_SEAL}
        named = self._named.get(part.session_id, [])
        thoughts = sum(self._entries[index][1].kind == "thought.recorded" for index in named)
        return {
            "root": None, "record_count": thoughts, "entries_root": None, "entry_count": len(named)
        }  # fmt: skip

    def _check_records(self, start: int, part: SessionPart, state: SessionState) -> None:
        """That the records are those of the file, each in the sealed tree."""
        place = session_path(start)
        end = state.sealed_at
        present = [
            index
            for index in self._named.get(part.session_id, [])
            if self._entries[index][1].kind == "thought.recorded" and (end is None or index < end)
        ]
        if [record.log_index for record in part.records] != present:
            if self._is_whole:
                said = "the records listed are not those that are there"
                self._findings.add("view_differs", start, f"{place} records", said)
            return
        seal = None if end is None else self._entries[end][1].body
        if seal is None and not self._is_whole:
            return  # the seal may be what could not be believed
        for index, path in part.records:
            raw, entry = self._entries[index]
            wrong = bool(path) if seal is None else not _is_under(raw, entry, path, seal)
            if wrong:
                said = "the path does not lead to the root of the session's seal"
                self._findings.add("seal_mismatch", index, f"{place} records", said)

    def _check_complete(self, part: SessionPart, state: SessionState, sealed_at: int) -> None:
        """That nothing the seal counts is missing, and nothing else was counted."""
        seal = self._entries[sealed_at][1].body
        levels = complete_levels(state.thought_leaves or ())
        wrong = find_wrong_claim(seal, state, levels, state.entry_leaves or ())
        if wrong is not None:
            place, said = wrong
            self._findings.add("seal_mismatch", sealed_at, f"{ENTRIES} {place}", said)
            return
        self.complete += 1
        behind = sum(index > sealed_at for index in self._named[part.session_id])
        if behind:
            self.unchecked.append(
                f"whether more entries name session {part.session_id!r:.100} behind its seal than "
                f"the {behind:,} here"
            )


def _by_session(evidence: Evidence, entries: Entries) -> dict[str, list[int]]:
    """Which entries name each session that is described."""
    named: dict[str, list[int]] = {part.session_id: [] for part in evidence.sessions.values()}
    for index, name in _names(entries):
        if name in named:
            named[name].append(index)
    return named


def _names(entries: Entries) -> Iterator[tuple[int, str]]:
    for index, (_, entry) in entries.items():
        name = entry.body.get("session_id")
        if isinstance(name, str):
            yield index, name


def _is_under(raw: bytes, entry: Entry, path: tuple[bytes, ...], seal: Mapping[str, Any]) -> bool:
    seq, root = entry.body["session_seq"], bytes.fromhex(seal["root"])
    if type(seq) is not int:
        return False
    try:
        check_inclusion(seq, seal["record_count"], leaf_hash(raw), path, root)
    except IntegrityViolation:
        return False
    return True
