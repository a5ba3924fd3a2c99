"""The walk over a whole ledger: log, tree, both chains, seals, views and payloads, in one pass.

Everything is derived again from the log and compared with what the views say. Memory stays
constant: chain ends are kept for the tasks and sessions seen last, others are looked up in rows
that the walk has already proved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from affidavit.core.entry import Entry, decode_entry
from affidavit.core.merkle import Digest, complete_levels, leaf_hash
from affidavit.core.session import METADATA_KEYS, genesis
from affidavit.core.thought import ZERO_HASH
from affidavit.core.views import ROW_OF_KIND, thought_row
from affidavit.errors import InputError
from affidavit.verify.findings import UNCHECKED_ENGINE, UNCHECKED_TAIL, Findings, Report
from affidavit.verify.ports import LeaveAlone, LedgerSource, RawRow, Repairer
from affidavit.verify.rows import RowCheck
from affidavit.verify.sessions import SessionState, check_seal
from affidavit.verify.thoughts import ThoughtChecker, diagnose
from affidavit.verify.tree import TreeCheck

_TASKS_MAX: Final = 50_000
_SESSIONS_MAX: Final = 2_000
_LEAVES_MAX: Final = 200_000

Progress = Callable[[int, int], None]


def verify_ledger(
    source: LedgerSource,
    progress: Progress | None = None,
    *,
    repairer: Repairer | None = None,
) -> Report:
    """Check all that the ledger alone can tell; with a repairer, put views right."""
    return _Walk(source, progress, repairer or LeaveAlone()).run()


class _Walk:
    """One pass over one snapshot."""

    def __init__(self, source: LedgerSource, progress: Progress | None, repairer: Repairer) -> None:
        self._source = source
        self._progress = progress
        self._repairer = repairer
        self._findings = Findings()
        self._rows = RowCheck(source, self._findings, repairer)
        self._tree = TreeCheck(source, self._findings, repairer)
        self._thoughts = ThoughtChecker()
        self._task_tips: dict[str, str] = {}
        self._sessions: dict[str, SessionState | None] = {}
        self._leaves_kept = 0
        self._last_at = 0
        self._unknown = 0

    def run(self) -> Report:
        """Walk the log once, then look for rows that belong to no entry."""
        for difference in self._source.schema_differences():
            self._findings.add("schema_changed", None, "schema", difference)
        size = self._walk_log(self._source.size())
        self._rows.check_extras()
        self._tree.check_strays(size)
        checked = {"entries": size, **self._rows.checked, "nodes": self._tree.checked}
        return self._findings.report(checked, self._unchecked())

    def _walk_log(self, size: int) -> int:
        take, expected = self._rows.thoughts.take, 0
        for index, entry, kept in self._source.log():
            if index != expected:
                self._say_gap(expected, index)
            expected = index + 1
            leaf = leaf_hash(entry)
            if leaf != kept:
                said = "the entry is not the one that was hashed when it was written"
                self._findings.add("entry_changed", index, "log", said)
            self._tree.add(leaf)
            row = take(index)
            if row is None:
                self._check_other(index, entry, leaf)
            else:
                self._check_thought(index, entry, leaf, row)
            if self._progress is not None and not index & 1023:
                self._progress(index, size)
        return expected

    def _unchecked(self) -> list[str]:
        said = [UNCHECKED_TAIL, UNCHECKED_ENGINE]
        if self._unknown:
            said.append(f"{self._unknown} entries of kinds this version does not know")
        return said

    def _say_gap(self, expected: int, index: int) -> None:
        if index < expected:
            self._findings.add("index_gap", index, "log", "an entry has a negative index")
        elif index == expected + 1:
            self._findings.add("index_gap", expected, "log", f"entry {expected} is missing")
        else:
            said = f"entries {expected} to {index - 1} are missing"
            self._findings.add("index_gap", expected, "log", said)

    def _check_thought(self, index: int, entry: bytes, leaf: Digest, row: RawRow) -> None:
        """A record: entry and row against each other and against both chains."""
        task_id, session_id = row[3], row[10]
        prev = self._task_tips.get(task_id)
        if prev is None:
            prev = self._source.task_hash_before(task_id, index) or ZERO_HASH
        state, parent, next_seq = None, None, 0
        if session_id is not None:
            state = self._session(session_id, index)
            if state is not None:
                parent, next_seq = state.chain_hash, state.next_seq
        self._rows.count("thought_records")
        if self._thoughts.is_intact(entry, row, prev, parent, next_seq):
            self._check_time(index, row[15])
        elif not self._check_broken(index, entry, leaf, row, (prev, parent, next_seq)):
            return
        # The next record must link to what this one says, so that one break is told once.
        self._keep_tip(task_id, row[8])
        if state is not None:
            if state.closed_at is not None:
                self._say_late(index, state)
            chain = row[13] or state.chain_hash
            state.add_thought(leaf, chain, state.is_closing(row[2], row[3]), index)
            self._bound_leaves()

    def _bound_leaves(self) -> None:
        """Leaves wait for a seal that may never come: past a limit, read them again if it does."""
        self._leaves_kept += 1
        if self._leaves_kept > _LEAVES_MAX:
            self._leaves_kept = 0
            for state in self._sessions.values():
                if state is not None:
                    state.forget_leaves()

    def _keep_tip(self, task_id: str, hash_: str) -> None:
        if len(self._task_tips) > _TASKS_MAX:
            self._task_tips.clear()
        self._task_tips[task_id] = hash_

    def _check_broken(
        self,
        index: int,
        entry: bytes,
        leaf: Digest,
        row: RawRow,
        links: tuple[str, str | None, int],
    ) -> bool:
        """Say what is wrong with a record; False if the entry is of another kind."""
        broken = diagnose(entry, row, *links)
        self._findings.add(broken.code, index, broken.place, broken.message)
        read = _read(entry)
        if read is None:
            return True
        if read.kind != "thought.recorded":
            self._repairer.delete_row("thought_records", index)
            self._check_other(index, entry, leaf)
            return False
        self._check_time(index, read.at)
        self._repairer.put_row(thought_row(index, read, row[5]))
        return True

    def _check_time(self, index: int, at: int) -> None:
        if at < self._last_at:
            said = "the entry is older than the one before it"
            self._findings.add("time_backwards", index, "log.entry at", said)
        else:
            self._last_at = at

    def _session(self, session_id: str, index: int) -> SessionState | None:
        if session_id not in self._sessions:
            state = self._source.session_before(session_id, index)
            self._keep_session(session_id, state)
        return self._sessions[session_id]

    def _keep_session(self, session_id: str, state: SessionState | None) -> None:
        if len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[session_id] = state

    def _say_late(self, index: int, state: SessionState) -> None:
        code, what = ("seal_mismatch", "sealed") if state.sealed else ("chain_broken", "ended")
        said = f"names a session that was {what} at entry {state.closed_at}"
        self._findings.add(code, index, "log", said)

    def _check_other(self, index: int, entry: bytes, leaf: Digest) -> None:
        """An entry without a thought row: read it and check what its kind calls for."""
        try:
            read = decode_entry(entry)
        except InputError as error:
            self._findings.add("entry_not_canonical", index, "log.entry", error.message)
            return
        self._check_time(index, read.at)
        if (read.kind == "ledger.created") != (index == 0):
            said = "ledger.created must be the first entry, and only the first"
            self._findings.add("entry_changed", index, "log.entry", said)
        if read.kind == "thought.recorded":
            self._say_lost(index, read)
        elif read.kind in ROW_OF_KIND:
            self._rows.check(index, read)
        elif read.kind not in ("ledger.created", "session.ended"):
            self._unknown += 1
        self._follow_session(index, read, leaf)

    def _say_lost(self, index: int, read: Entry) -> None:
        said = "the record has no row, so its content is lost"
        self._findings.add("view_missing", index, "thought_records", said)
        self._repairer.put_row(thought_row(index, read, ""))
        self._keep_tip(read.body["task_id"], read.body["hash"])

    def _follow_session(self, index: int, read: Entry, leaf: Digest) -> None:
        """What an entry means for the session it names."""
        if read.kind == "session.started":
            self._start_session(index, read, leaf)
            return
        session_id = read.body.get("session_id")
        if not isinstance(session_id, str):
            return
        state = self._session(session_id, index)
        if state is None:
            said = f"there is no session {session_id!r:.100}"
            self._findings.add("chain_broken", index, "log", said)
        elif read.kind == "session.sealed":
            self._check_seal(index, read, state)
            state.close(index, sealed=True)
        elif read.kind == "session.ended":
            self._rows.check_end(index, read)
            state.close(index, sealed=False)
            state.add_entry(leaf)
        else:
            self._add_to_session(index, read, leaf, state)

    def _add_to_session(self, index: int, read: Entry, leaf: Digest, state: SessionState) -> None:
        if state.closed_at is not None:
            self._say_late(index, state)
        if read.kind != "thought.recorded":
            state.add_entry(leaf)
            return
        body = read.body
        chain = body["chain_hash"] or state.chain_hash
        closes = state.is_closing(body["type"], body["task_id"])
        state.add_thought(leaf, chain, closes, index)

    def _start_session(self, index: int, read: Entry, leaf: Digest) -> None:
        body = read.body
        if genesis({name: body[name] for name in METADATA_KEYS}) != body["genesis"]:
            said = "the genesis is not that of the session's metadata"
            self._findings.add("chain_broken", index, "log.entry genesis", said)
        session_id = body["session_id"]
        if self._sessions.get(session_id) is not None:
            said = f"session {body['session_id']!r:.100} started before"
            self._findings.add("chain_broken", index, "log", said)
        closing_task = body["task_id"] if body["proof_grade"] else None
        state = SessionState(body["genesis"], 0, closing_task)
        state.add_entry(leaf)
        self._keep_session(session_id, state)

    def _check_seal(self, index: int, read: Entry, state: SessionState) -> None:
        if state.sealed:
            said = f"the session was sealed before, at entry {state.closed_at}"
            self._findings.add("seal_mismatch", index, "log", said)
            return
        own = self._leaves(state.thought_leaves, read, index, thoughts=True)
        entries = self._leaves(state.entry_leaves, read, index, thoughts=False)
        levels = complete_levels(own)
        for place, said in check_seal(read.body, state, levels, entries):
            self._findings.add("seal_mismatch", index, place, said)
        self._tree.check_session(index, levels[1:])
        state.forget_leaves()

    def _leaves(
        self, kept: Sequence[Digest] | None, read: Entry, index: int, *, thoughts: bool
    ) -> Sequence[Digest]:
        """The leaves of a session below its seal, as the walk saw them or read again."""
        if kept is not None:
            return kept
        session_id = read.body["session_id"]
        return self._source.session_leaves(session_id, index, thoughts=thoughts)


def _read(entry: bytes) -> Entry | None:
    try:
        return decode_entry(entry)
    except InputError:
        return None
