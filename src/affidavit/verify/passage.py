"""The entries of an evidence file in their order: chains, sessions, seals, and what is missing.

What can be told depends on what the file is of. A range has every entry of it; a session every
entry that names it, and its seal counts them; a task every record of it, each naming the one
before; a record stands alone. Where a record before may be absent, its link is not judged.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from typing import Final

from affidavit.core.bundle import (
    ENTRIES,
    MANIFEST,
    Scope,
    SessionPart,
    parse_range,
    session_path,
)
from affidavit.core.entry import Entry
from affidavit.core.merkle import Digest, complete_levels
from affidavit.core.session import METADATA_KEYS, chain_hash, genesis
from affidavit.core.thought import ZERO_HASH
from affidavit.verify.findings import Findings
from affidavit.verify.session_state import SessionState
from affidavit.verify.sessions import AFTER_SEAL, find_wrong_claim
from affidavit.verify.thoughts import find_broken_link

_THOUGHT: Final = "thought.recorded"
_STARTED: Final = "session.started"
_SEALED: Final = "session.sealed"
_ENDED: Final = "session.ended"


class Walk:
    """Where every chain stands; `is_whole` where every entry of the file is believed."""

    def __init__(
        self, scope: Scope, parts: Collection[SessionPart], is_whole: bool, findings: Findings
    ) -> None:
        self._scope = scope
        self._findings = findings
        self._is_range = is_whole and scope.kind == "range"
        self._whole = {part.session_id for part in parts if part.whole}
        self._is_whole = is_whole
        # Where every session that is named started before, in the file.
        self._has_starts = is_whole and (scope.kind != "range" or scope.id.startswith("0:"))
        self._unstarted: set[str] = set()
        self._tips: dict[str, str] = {}
        self._loose = self._loose_seals = 0
        self.states: dict[str, SessionState] = {}
        # Those of sessions that are told of by nothing but their entries.
        self.seals = 0
        self.links = 0

    def follow(self, index: int, entry: Entry, leaf: Digest) -> None:
        """The next entry."""
        session_id = entry.body.get("session_id")
        if entry.kind != _STARTED and isinstance(session_id, str):
            self._check_started(index, session_id)
        if entry.kind == _THOUGHT:
            self._follow_thought(index, entry, leaf)
        elif entry.kind == _STARTED:
            self._start(index, entry, leaf)
        elif isinstance(session_id, str) and (state := self.states.get(session_id)) is not None:
            self._follow_other(index, entry, leaf, state)
        elif entry.kind == _SEALED:
            self._loose_seals += 1

    def _check_started(self, index: int, session_id: str) -> None:
        """That there is none of a session before its start; told once."""
        known = session_id in self.states or session_id in self._unstarted
        if self._has_starts and not known:
            self._unstarted.add(session_id)
            self._say("chain_broken", index, f"session {session_id!r:.100} had not started")

    def _say(self, code: str, index: int, said: str) -> None:
        self._findings.add(code, index, ENTRIES, said)

    def _start(self, index: int, entry: Entry, leaf: Digest) -> None:
        body = entry.body
        if genesis({name: body[name] for name in METADATA_KEYS}) != body["genesis"]:
            self._say("chain_broken", index, "the genesis is not that of the session's metadata")
        if body["session_id"] in self.states:
            self._say("chain_broken", index, f"session {body['session_id']!r:.100} started before")
            return
        closing_task = body["task_id"] if body["proof_grade"] else None
        state = SessionState(index, body["genesis"], 0, closing_task)
        state.add_entry(leaf)
        self.states[body["session_id"]] = state

    def _follow_other(self, index: int, entry: Entry, leaf: Digest, state: SessionState) -> None:
        if entry.kind == _SEALED:
            if state.sealed_at is not None:
                said = f"the session was sealed before, at entry {state.sealed_at}"
                self._say("seal_mismatch", index, said)
                return
            if self._is_range:
                self._check_seal(index, entry, state)
            state.sealed_at = index
            return
        self._check_open(index, entry.kind, state)
        if entry.kind == _ENDED:
            if state.ended_at is not None:
                said = f"the session ended before, at entry {state.ended_at}"
                self._say("chain_broken", index, said)
            state.ended_at = index
        if state.sealed_at is None:
            state.add_entry(leaf)

    def _check_seal(self, index: int, entry: Entry, state: SessionState) -> None:
        """Of a session that began in a range all is there that its seal may count."""
        levels = complete_levels(state.thought_leaves or ())
        wrong = find_wrong_claim(entry.body, state, levels, state.entry_leaves or ())
        state.forget_leaves()
        if wrong is None:
            self.seals += 1
        else:
            self._findings.add("seal_mismatch", index, f"{ENTRIES} {wrong[0]}", wrong[1])

    def _check_open(self, index: int, kind: str, state: SessionState) -> None:
        if not state.is_open and kind not in AFTER_SEAL:
            how = "was sealed" if state.sealed_at is not None else "had ended"
            code = "seal_mismatch" if state.sealed_at is not None else "chain_broken"
            self._say(code, index, f"names a session that {how} before")

    def _follow_thought(self, index: int, entry: Entry, leaf: Digest) -> None:
        body = entry.body
        session_id, parent, next_seq = body["session_id"], None, 0
        seq = -1 if body["session_seq"] is None else body["session_seq"]
        state = None if session_id is None else self.states.get(session_id)
        if state is not None:
            self._check_open(index, entry.kind, state)
            if seq <= state.next_seq or self._knows_all(session_id):
                parent, next_seq = state.chain_hash, state.next_seq
        prev = self._prev_of(body["task_id"], body["prev_hash"])
        broken = find_broken_link(body, prev, parent, next_seq)
        if broken is not None:
            self._findings.add(broken.code, index, f"{ENTRIES} {broken.place}", broken.message)
        elif not _binds(entry):
            self._say("chain_broken", index, "its chain hash does not follow from its content hash")
        self.links += (prev is not None) + (parent is not None)
        self._loose += prev is None
        self._tips[body["task_id"]] = body["hash"]
        if state is not None:
            state.next_seq = max(seq, 0)
            state.add_thought(leaf, body["type"], body["task_id"], body["chain_hash"] or "", index)

    def _knows_all(self, session_id: str) -> bool:
        """Whether every record of a session is in the file, so that a gap is a break."""
        return self._is_whole and (self._is_range or session_id in self._whole)

    def _prev_of(self, task_id: str, claimed: str) -> str | None:
        """What a record must link to; None where the one before it may be elsewhere."""
        known = self._tips.get(task_id)
        if not self._is_whole:
            return None
        if self._scope == Scope("task", task_id):
            return known or ZERO_HASH
        if self._is_range:
            return known or (ZERO_HASH if self._scope.id.startswith("0:") else None)
        # Another record of the task may stand between; but it cannot begin again.
        return known if claimed in (ZERO_HASH, known) else None

    def unchecked(self) -> list[str]:
        """Links that lead to records outside of the file."""
        said = []
        if self._loose:
            said.append(f"the record before, in its task, of {self._loose:,} records")
        if self._loose_seals:
            said.append(f"{self._loose_seals:,} seals of sessions that began before the range")
        if self._scope.kind == "task":
            said.append("whether the task has records behind the last one here")
        return said


def _binds(entry: Entry) -> bool:
    """Whether the hashes of a record that need no content follow from each other."""
    body = entry.body
    own = (body["content_hash"], body["chain_hash"], body["parent_chain_hash"], body["session_seq"])
    if body["session_id"] is None:
        return own == (None,) * 4
    if None in own:
        return False
    link: str = body["chain_hash"]
    return chain_hash(body["content_hash"], body["parent_chain_hash"]) == link


class ScopeCheck:
    """That the file holds what it says it is of, and nothing else."""

    def __init__(self, scope: Scope, parts: Mapping[int, SessionPart], findings: Findings) -> None:
        self._scope = scope
        self._parts = parts
        self._findings = findings
        self._named = {part.session_id for part in parts.values()}
        self._range = parse_range(scope.id) if scope.kind == "range" else (0, 0)
        self._wanted = 0
        # The sessions that a record or task leads to.
        self._led_to: set[str] = set()
        # Those that belong there only if an erasure is theirs to tell of.
        self._others = array("Q")
        self._missing: int | None = None
        self._expected = self._range[0]

    def follow(self, index: int, entry: Entry) -> None:
        """The next entry."""
        if not self._is_of(index, entry):
            self._others.append(index)
            return
        self._count(entry)
        if self._missing is None and index != self._expected:
            self._missing = self._expected
        self._expected = index + 1

    def _count(self, entry: Entry) -> None:
        """One that was asked for; start and seal of a session are there for its records alone."""
        if self._scope.kind not in ("task", "record"):
            self._wanted += 1
        elif entry.kind == _THOUGHT:
            self._wanted += 1
            self._led_to.add(entry.body["session_id"])
        elif entry.kind not in (_STARTED, _SEALED):
            self._wanted += 1

    def finish(self, erasers: Collection[int]) -> None:
        """What is missing, and what is there beside."""
        kind, id_ = self._scope
        if kind == "range":
            self._check_range()
        if not self._wanted:
            said = f"nothing of {kind} {id_!r:.100} is in the file"
            self._findings.add("view_differs", None, f"{MANIFEST} scope", said)
            return
        for index in self._others:
            if index not in erasers:
                said = f"the entry does not belong to {kind} {id_!r:.100}"
                self._findings.add("view_extra", index, ENTRIES, said)
        for start, part in self._parts.items():
            whose = {"session": {id_}, "range": set[str]()}.get(kind, self._led_to)
            if part.session_id not in whose or part.whole != (kind == "session"):
                said = f"session {part.session_id!r:.100} does not belong to {kind} {id_!r:.100}"
                self._findings.add("view_extra", start, session_path(start), said)

    def _check_range(self) -> None:
        first, end = self._range
        if self._wanted != end - first:
            missing = self._expected if self._missing is None else self._missing
            said = (
                f"{end - first - self._wanted:,} entries of the range are missing, the first here"
            )
            self._findings.add("index_gap", missing, ENTRIES, said)

    def _is_of(self, index: int, entry: Entry) -> bool:
        """Whether an entry is one that a file of this scope holds."""
        kind, id_ = self._scope
        if kind == "range":
            return self._range[0] <= index < self._range[1]
        body = entry.body
        if kind == "session":
            return bool(body.get("session_id") == id_)
        if entry.kind == _THOUGHT:
            return bool(body["id" if kind == "record" else "task_id"] == id_)
        if kind == "task" and entry.kind.startswith("task."):
            return bool(body.get("task_id") == id_)
        return entry.kind in (_STARTED, _SEALED) and body["session_id"] in self._named
