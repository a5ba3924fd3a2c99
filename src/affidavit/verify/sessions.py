"""Sessions as a walk over the log meets them: where each stands, and what seals claim of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from affidavit.core.entry import Entry
from affidavit.core.merkle import Digest, complete_levels, levels_root
from affidavit.core.session import METADATA_KEYS, genesis
from affidavit.core.views import LINKS, SESSION_VIEWS
from affidavit.core.views.sessions import SessionRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.verify.findings import Findings
from affidavit.verify.ports import LedgerSource, Repairer
from affidavit.verify.session_state import SessionState
from affidavit.verify.tree import TreeCheck

# What may still name a session after its seal; after an end without one, a seal too.
AFTER_SEAL: Final = frozenset(
    (
        "session.ended",
        "capture.stopped",
        "tool_call.completed",
        "tool_call.failed",
        "tool_call.late",
    )
)
# Kinds whose entries can be found again through the views; others only in the log itself.
_IN_VIEWS: Final = frozenset(
    ("session.ended", *(kind for view in SESSION_VIEWS for kind in view.kinds))
)


class SessionBook:
    """The sessions met lately; others are looked up in rows that the walk has already proved."""

    def __init__(
        self,
        source: LedgerSource,
        findings: Findings,
        repairer: Repairer,
        tree: TreeCheck,
        *,
        sessions_max: int,
        leaves_max: int,
        forgot: bool,
    ) -> None:
        self._source = source
        self._findings = findings
        self._repairer = repairer
        self._tree = tree
        self._sessions_max = sessions_max
        self._leaves_max = leaves_max
        self._states: dict[str, SessionState] = {}
        # What came before a walk that starts in the middle is as unknown as what was forgotten.
        self._forgot = forgot
        # Whether an entry named a session that no view has: then views do not lead to all of them.
        self.must_scan = False
        self._leaves_kept = 0
        self.ledger_id: str | None = None

    def find(self, session_id: str, index: int) -> SessionState | None:
        """Where a session stands before an entry; None where it never started."""
        state = self._states.get(session_id)
        if state is None and self._forgot:
            state = self._source.session_before(session_id, index)
            if state is not None:
                self._keep(session_id, state)
        return state

    def _keep(self, session_id: str, state: SessionState) -> None:
        if len(self._states) >= self._sessions_max:
            del self._states[next(iter(self._states))]
            self._forgot = True
        self._states[session_id] = state

    def count_leaf(self) -> None:
        """Leaves wait for a seal that may never come: past a limit, read them again if it does."""
        self._leaves_kept += 1
        if self._leaves_kept > self._leaves_max:
            self._leaves_kept = 0
            for state in self._states.values():
                state.forget_leaves()

    def follow_thought(self, index: int, body: dict[str, Any], leaf: Digest) -> None:
        """A record went by; the next one must link to what this one says, so a break tells once."""
        state = self._named(index, body["session_id"], body["parent_chain_hash"] or "")
        self._check_open(index, state, "thought.recorded")
        seq = body["session_seq"]
        state.next_seq = seq if type(seq) is int else state.next_seq
        chain = body["chain_hash"] or state.chain_hash
        state.add_thought(leaf, body["type"], body["task_id"], chain, index)
        self.count_leaf()

    def _named(self, index: int, session_id: str, chain_hash: str) -> SessionState:
        """The session an entry names; that there is none is told once."""
        state = self.find(session_id, index)
        if state is None:
            said = f"there is no session {session_id!r:.100}"
            place = "thought_records.session_id" if chain_hash else "log"
            self._findings.add("chain_broken", index, place, said)
            state = SessionState(index, chain_hash)
            self._keep(session_id, state)
        return state

    def _check_open(self, index: int, state: SessionState, kind: str) -> None:
        if state.is_open or kind in AFTER_SEAL:
            return
        if state.sealed_at is not None:
            said = f"names a session that was sealed at entry {state.sealed_at}"
            self._findings.add("seal_mismatch", index, "log", said)
        else:
            said = f"names a session that ended at entry {state.ended_at}"
            self._findings.add("chain_broken", index, "log", said)

    def start(self, index: int, read: Entry, leaf: Digest, link: int | bool | None) -> None:
        """`session.started`, and where the session's row says that it ended."""
        body = read.body
        session_id = body["session_id"]
        for place, said in self._wrong_start(index, body):
            self._findings.add("chain_broken", index, place, said)
        if self.find(session_id, index) is not None:
            said = f"session {session_id!r:.100} started before"
            self._findings.add("chain_broken", index, "log", said)
            return
        closing_task = body["task_id"] if body["proof_grade"] else None
        state = SessionState(index, body["genesis"], 0, closing_task)
        state.link = link
        state.add_entry(leaf)
        self._keep(session_id, state)

    def _wrong_start(self, index: int, body: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if genesis({name: body[name] for name in METADATA_KEYS}) != body["genesis"]:
            yield "log.entry genesis", "the genesis is not that of the session's metadata"
        if self.ledger_id not in (None, body["ledger_id"]):
            yield "log.entry ledger_id", "the session is of another ledger"
        if (continues := body["continues"]) is not None:
            before = self.find(continues["session_id"], index)
            name = f"session {continues['session_id']!r:.100}"
            if before is None or before.is_open:
                what = "did not start before" if before is None else "was still open"
                yield "log.entry continues", f"{name}, which it continues, {what}"
            elif before.chain_hash != continues["chain_hash"]:
                yield "log.entry continues", f"the chain hash is not the last one of {name}"

    def trust_start(self, row: SessionRow, leaf: Digest) -> None:
        """The entry cannot be read; its row says where the session begins."""
        closing_task = row.task_id if row.proof_grade else None
        state = SessionState(row.log_index, row.genesis, 0, closing_task)
        state.add_entry(leaf)
        self._keep(row.session_id, state)

    def trust_seal(self, session_id: str, index: int) -> None:
        """The entry cannot be read; its row says which session was sealed."""
        if (state := self.find(session_id, index)) is not None:
            state.sealed_at = index

    def trust_end(self, index: int, leaf: Digest) -> None:
        """The entry cannot be read, and the row of a session says that it ended here."""
        for state in self._states.values():
            if state.link is not True and state.link == index:
                state.ended_at = index
                state.add_entry(leaf)

    def trust_thought(self, row: ThoughtRow, leaf: Digest) -> None:
        """The entry cannot be read; its row says what the chain goes on from."""
        if row.session_id is None or row.chain_hash is None:
            return
        if (state := self.find(row.session_id, row.log_index)) is not None:
            state.add_thought(leaf, row.type, row.task_id, row.chain_hash, row.log_index)

    def follow(self, index: int, read: Entry, leaf: Digest) -> None:
        """An entry of any other kind, for the session it names."""
        session_id = read.body.get("session_id")
        if not isinstance(session_id, str):
            return
        state = self._named(index, session_id, "")
        if read.kind not in _IN_VIEWS:
            self.must_scan = True
        if read.kind == "session.sealed":
            self._check_seal(index, read.body, state)
            return
        if read.kind == "session.ended":
            self._end(index, read, state)
        else:
            self._check_open(index, state, read.kind)
        state.add_entry(leaf)

    def _end(self, index: int, read: Entry, state: SessionState) -> None:
        if state.ended_at is not None:
            said = f"the session ended before, at entry {state.ended_at}"
            self._findings.add("chain_broken", index, "log", said)
            return
        state.ended_at = index
        if state.link == index and state.link is not True:
            return
        if state.link is not True:
            place, said = "sessions.ended_index", f"the session ended at entry {index}"
            self._findings.add("view_differs", state.start_index, place, said)
        links = (index, read.body["ended_at"], read.body["reason"])
        self._repairer.put_links(
            "sessions", state.start_index, dict(zip(LINKS["sessions"], links, strict=True))
        )

    def _check_seal(self, index: int, body: dict[str, Any], state: SessionState) -> None:
        if state.sealed_at is not None:
            said = f"the session was sealed before, at entry {state.sealed_at}"
            self._findings.add("seal_mismatch", index, "log", said)
            return
        own = self._leaves(state.thought_leaves, body, index, thoughts=True)
        entries = self._leaves(state.entry_leaves, body, index, thoughts=False)
        levels = complete_levels(own)
        wrong = find_wrong_claim(body, state, levels, entries)
        if wrong is not None:
            self._findings.add("seal_mismatch", index, *wrong)
        if wrong is None or wrong[0] != "seals.root":
            # The nodes are those of the seal's tree: where that is another one, it is told.
            self._tree.check_session(index, levels[1:])
        state.sealed_at = index
        state.forget_leaves()

    def _leaves(
        self, kept: Sequence[Digest] | None, body: dict[str, Any], index: int, *, thoughts: bool
    ) -> Sequence[Digest]:
        """The leaves of a session below its seal, as the walk saw them or read again."""
        if kept is not None:
            return kept
        return self._source.session_leaves(
            body["session_id"], index, thoughts=thoughts, scan=self.must_scan
        )


def find_wrong_claim(
    body: dict[str, Any],
    state: SessionState,
    thoughts: Sequence[Sequence[Digest]],
    entries: Sequence[Digest],
) -> tuple[str, str] | None:
    """The first claim of a seal that does not hold, given the levels of its records' tree."""
    holds = {
        "root": levels_root(thoughts).hex(),
        "record_count": len(thoughts[0]),
        "chain_hash": state.chain_hash,
        "closing_reflection": state.reflects,
        "entries_root": levels_root(complete_levels(entries)).hex(),
        "entry_count": len(entries),
        "first_index": state.first_index,
        "last_index": state.last_index,
    }
    for key, value in holds.items():
        if body[key] != value:
            said = f"{key} is {body[key]!r:.80}, the log gives {value!r:.80}"
            return f"seals.{key}", said
    return None
