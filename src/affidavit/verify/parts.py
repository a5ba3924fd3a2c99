"""What an evidence file says of each session: compared with its entries, its trees with its seal.

A sealed session that is there as a whole is complete, or its seal says so: the two roots count
every record and every entry. Of one that is there in part, each record is proved under the root.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from affidavit.core.bundle import ENTRIES, RecordPath, Scope, SessionPart, session_path
from affidavit.core.entry import Entry
from affidavit.core.merkle import Digest, check_inclusion, complete_levels
from affidavit.core.session import METADATA_KEYS
from affidavit.errors import IntegrityViolation
from affidavit.verify.findings import Findings
from affidavit.verify.session_state import SessionState
from affidavit.verify.sessions import find_wrong_claim

_FROM_SEAL: Final = ("root", "record_count", "entries_root", "entry_count")


class _Kept:
    """What is kept of a session's entries: a few numbers for each."""

    def __init__(self) -> None:
        self.indices = array("Q")
        self.thoughts = array("Q")
        self.seqs = array("q")
        self.leaves: list[Digest] = []


class PartCheck:
    """Checks the sessions of a file one by one, when its entries have gone by."""

    def __init__(
        self, scope: Scope, parts: Mapping[int, SessionPart], is_whole: bool, findings: Findings
    ) -> None:
        self._parts = parts
        self._is_whole = is_whole
        self._findings = findings
        self._lists = is_whole and scope.kind != "range"
        self._kept = {part.session_id: _Kept() for part in parts.values()}
        self._undescribed: set[str] = set()
        # Starts and seals, which claims are compared with.
        self._bodies: dict[int, Mapping[str, Any]] = {}
        self.seals = self.complete = 0
        self.unchecked: list[str] = []

    def follow(self, index: int, entry: Entry, leaf: Digest) -> None:
        """The next entry."""
        name = entry.body.get("session_id")
        if not isinstance(name, str):
            return
        kept = self._kept.get(name)
        if kept is None:
            self._say_undescribed(index, name)
            return
        kept.indices.append(index)
        if entry.kind == "thought.recorded":
            seq = entry.body["session_seq"]
            kept.thoughts.append(index)
            kept.seqs.append(-1 if seq is None else seq)
            kept.leaves.append(leaf)
        elif entry.kind in ("session.started", "session.sealed"):
            self._bodies[index] = entry.body

    def _say_undescribed(self, index: int, name: str) -> None:
        """Every session that starts or is named in the file is described in it."""
        if self._lists and name not in self._undescribed:
            said = f"session {name!r:.100} is not described"
            self._findings.add("view_missing", index, "sessions", said)
            self._undescribed.add(name)

    def check(self, start: int, state: SessionState | None, records: Iterator[RecordPath]) -> None:
        """Compare a session's claims with its start, its seal and its records."""
        part = self._parts[start]
        name, place = f"session {part.session_id!r:.100}", session_path(start)
        if state is None or state.start_index != start:
            if self._is_whole:
                said = f"{name} does not start there in the file"
                self._findings.add("entry_missing", start, ENTRIES, said)
            return
        body, kept = self._bodies[start], self._kept[part.session_id]
        claims = {"metadata": {key: body[key] for key in METADATA_KEYS}, "genesis": body["genesis"]}
        claims["seal_index"] = state.sealed_at
        claims |= self._counted(kept, state)
        for key, is_so in claims.items():
            if getattr(part, key) != is_so and self._is_whole:
                said = f"{key} is not what the entries of {name} say"
                self._findings.add("view_differs", start, f"{place} {key}", said)
        self._check_records(start, kept, state.sealed_at, records)
        if state.sealed_at is None:
            self.unchecked.append(
                f"whether entries of {name} are missing: no seal of it is in the file"
            )
            return
        self.seals += 1
        if part.whole and self._is_whole:
            self._check_complete(part, state, state.sealed_at)

    def _counted(self, kept: _Kept, state: SessionState) -> dict[str, Any]:
        """Roots and counts: those of the seal, or what is there where none was made."""
        if state.sealed_at is not None:
            return {key: self._bodies[state.sealed_at][key] for key in _FROM_SEAL}
        return {
            "root": None, "record_count": len(kept.thoughts),
            "entries_root": None, "entry_count": len(kept.indices),
        }  # fmt: skip

    def _check_records(
        self, start: int, kept: _Kept, sealed_at: int | None, records: Iterator[RecordPath]
    ) -> None:
        """That the records are those of the file, each in the sealed tree."""
        place = session_path(start)
        seal = None if sealed_at is None else self._bodies[sealed_at]
        end = len(kept.thoughts) if sealed_at is None else bisect_left(kept.thoughts, sealed_at)
        wrong, are_same = array("Q"), True
        for number, record in zip_longest(range(end), records):
            if number is None or record is None or record.log_index != kept.thoughts[number]:
                are_same = False
            elif seal is None and record.path:
                wrong.append(record.log_index)
            elif seal is not None:
                seq, leaf = kept.seqs[number], kept.leaves[number]
                if not _is_under(seq, leaf, record.path, seal):
                    wrong.append(record.log_index)
        if not are_same:
            if self._is_whole:
                said = "the records listed are not those that are there"
                self._findings.add("view_differs", start, f"{place} records", said)
            return
        if seal is None and not self._is_whole:
            return  # the seal may be what could not be believed
        for index in wrong:
            said = "the path does not lead to the root of the session's seal"
            self._findings.add("seal_mismatch", index, f"{place} records", said)

    def _check_complete(self, part: SessionPart, state: SessionState, sealed_at: int) -> None:
        """That nothing the seal counts is missing, and nothing else was counted."""
        levels = complete_levels(state.thought_leaves or ())
        seal = dict(self._bodies[sealed_at])
        wrong = find_wrong_claim(seal, state, levels, state.entry_leaves or ())
        if wrong is not None:
            place, said = wrong
            self._findings.add("seal_mismatch", sealed_at, f"{ENTRIES} {place}", said)
            return
        self.complete += 1
        indices = self._kept[part.session_id].indices
        behind = len(indices) - bisect_right(indices, sealed_at)
        if behind:
            self.unchecked.append(
                f"whether more entries name session {part.session_id!r:.100} behind its seal than "
                f"the {behind:,} here"
            )


def _is_under(seq: int, leaf: Digest, path: tuple[Digest, ...], seal: Mapping[str, Any]) -> bool:
    try:
        check_inclusion(seq, seal["record_count"], leaf, path, bytes.fromhex(seal["root"]))
    except IntegrityViolation:
        return False
    return True
