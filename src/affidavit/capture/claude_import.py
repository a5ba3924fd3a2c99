"""Claude Code's transcripts, brought into a ledger: each fact once, however often it is told.

What is in the ledger already says how far an import came, so there is no other memory to lose or
to disagree: a turn has the id of its message, a tool call that of its use. What hooks recorded is
known by the same names, or, for turns, by saying the same in the same run.

Facts go in by the batch, each batch one transaction that holds the lock for a moment.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from affidavit.capture.claude_names import OWN_TOOLS, SOURCE, VENDOR, request_id_of
from affidavit.capture.claude_transcripts import Answered, Asked, Said, Told
from affidavit.capture.edits import EDITING, propose, settle
from affidavit.capture.sightings import has_ended
from affidavit.core.entry import Source
from affidavit.core.redact import redact_text
from affidavit.errors import AffidavitError, IntegrityViolation, StoreError
from affidavit.ledger.handle import acting_for
from affidavit.ledger.ledger import Ledger

CHANNEL: Final = "import"
_PAGE: Final = 500
_INTENT_CHARS: Final = 300
_DENIED: Final = "The user doesn't want to proceed with this tool use"
# A run that nobody went on with for so long is over.
_QUIET_MS: Final = 24 * 3_600_000


@dataclass
class Counts:
    """What became of the facts of an import."""

    turns: int = 0
    calls: int = 0
    results: int = 0
    known: int = 0
    seen_live: int = 0
    unmatched: int = 0
    refused: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def recorded(self) -> int:
        """How many are new in the ledger."""
        return self.turns + self.calls + self.results

    @property
    def facts(self) -> int:
        """How many there were."""
        return self.recorded + self.known + self.seen_live + self.unmatched + self.refused


@dataclass
class _Run:
    """One session of Claude Code: what hooks heard in it, and what was added to it now."""

    heard: Counter[str]
    intent: str | None = None
    newest_ms: int = 0
    added: Counter[str] = field(default_factory=Counter)


class Import:
    """Brings facts into one ledger."""

    def __init__(self, ledger: Ledger, client: str) -> None:
        self.counts = Counts()
        self._ledger = ledger
        self._source = Source(auth="none", client=client, via=CHANNEL)
        self._runs: dict[str, _Run] = {}
        self._own: set[str] = set()

    def record(self, batch: Iterable[Told], root: str | None) -> None:
        """Record what is new of some facts, all of one folder of work; then it is on disk."""
        facts = list(batch)
        for told in facts:
            self._note_run(told)
        try:
            self._record_together(facts, root)
        except (StoreError, IntegrityViolation):
            raise
        except AffidavitError:
            self._record_each(facts, root)

    def _record_together(self, facts: list[Told], root: str | None) -> None:
        ledger = acting_for(self._ledger, self._source, project_root=root)
        unit = _Unit(self._runs, self._own)
        with ledger.transaction() as tx:
            for told in facts:
                unit.record(tx, told)
        self._add(unit)

    def _record_each(self, facts: list[Told], root: str | None) -> None:
        """One that a ledger refuses keeps no other out."""
        for told in facts:
            try:
                self._record_together([told], root)
            except (StoreError, IntegrityViolation):
                raise
            except AffidavitError as error:
                self.counts.refused += 1
                self.counts.reasons[error.code] += 1

    def _add(self, unit: _Unit) -> None:
        """Count what is committed, and remember what a turn of a hook stood for."""
        for name in ("turns", "calls", "results", "known", "seen_live", "unmatched"):
            setattr(self.counts, name, getattr(self.counts, name) + unit.done[name])
        for run, heard in unit.used.items():
            self._runs[run].heard.subtract(heard)
        for run, added in unit.added.items():
            self._runs[run].added.update(added)

    def _note_run(self, told: Told) -> None:
        name = told.origin.session
        if name is None:
            return
        run = self._runs.get(name)
        if run is None:
            run = self._runs[name] = _Run(Counter(_heard(self._ledger, name)))
        run.newest_ms = max(run.newest_ms, told.origin.at_ms or 0)
        if run.intent is None and isinstance(told.fact, Said) and told.fact.kind == "user":
            run.intent = told.fact.text[:_INTENT_CHARS].strip() or None

    def finish(self, now_ms: int) -> None:
        """Say how much came in, and end the runs that only an import began and that are over."""
        ledger = acting_for(self._ledger, self._source)
        for name, run in self._runs.items():
            for session_id, count in run.added.items():
                ledger.stop_capture(CHANNEL, SOURCE, session_id=session_id, count=count)
            session = ledger.find_linked(SOURCE, name)
            if session is None or session.state != "open" or run.newest_ms > now_ms - _QUIET_MS:
                continue
            [started] = ledger.list_entries(
                session_id=session.session_id, after=session.index - 1, limit=1, text_bytes_max=1
            )
            if started.via == CHANNEL:
                ledger.end_session(session.session_id)

    @property
    def sessions(self) -> int:
        """How many sessions of Claude Code were told of."""
        return len(self._runs)


class _Unit:
    """What one transaction does; it counts only once that is committed."""

    def __init__(self, runs: dict[str, _Run], own: set[str]) -> None:
        self._runs = runs
        self._own = own
        self._sessions: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self.used: dict[str, Counter[str]] = {}
        self.added: dict[str, Counter[str]] = {}

    def record(self, tx: Ledger, told: Told) -> None:
        """Record one fact, unless the ledger has it."""
        fact = told.fact
        if isinstance(fact, Said):
            done = self._say(tx, told, fact)
        elif isinstance(fact, Asked):
            done = self._ask(tx, told, fact)
        else:
            done = self._answer(tx, told, fact)
        self.done[done] += 1

    def _say(self, tx: Ledger, told: Told, fact: Said) -> str:
        if tx.has_turn(fact.turn_id):
            return "known"
        if self._was_heard(told, fact):
            return "seen_live"
        tx.upsert_turn(
            fact.turn_id,
            fact.message_id,
            fact.kind,
            fact.text,
            thread_id=fact.thread,
            occurred_at_ms=told.origin.at_ms,
            session_id=self._enter(tx, told, fact.model),
            actor=_actor(fact),
            model=fact.model,
            usage=fact.usage,
            attributes=fact.attributes or None,
        )
        return "turns"

    def _was_heard(self, told: Told, fact: Said) -> bool:
        """Whether a hook heard the same in this run, and it stands for no other turn yet."""
        name = told.origin.session
        if name is None or fact.kind not in ("user", "assistant"):
            return False
        used, said = self.used.setdefault(name, Counter()), _digest(fact.kind, fact.text)
        if self._runs[name].heard[said] - used[said] <= 0:
            return False
        used[said] += 1
        return True

    def _ask(self, tx: Ledger, told: Told, fact: Asked) -> str:
        if fact.tool.startswith(OWN_TOOLS):
            self._own.add(fact.call_id)
            return "known"
        request_id = request_id_of(fact.call_id)
        if tx.get_tool_call(request_id, fact.call_id) is not None:
            return "known"
        session_id = self._enter(tx, told, fact.model)
        tx.request_tool_call(
            request_id,
            fact.call_id,
            vendor=VENDOR,
            tool_name=fact.tool,
            arguments=fact.arguments,
            started_at_ms=told.origin.at_ms,
            session_id=session_id,
            actor=fact.thread or SOURCE,
            model=fact.model,
        )
        if fact.tool in EDITING:
            propose(tx, request_id, fact.tool, _value_of(fact.arguments), session_id)
        return "calls"

    def _answer(self, tx: Ledger, told: Told, fact: Answered) -> str:
        if fact.call_id in self._own:
            return "known"
        name = request_id_of(fact.call_id), fact.call_id
        pair = tx.get_tool_call(*name)
        if pair is None:
            return "unmatched"
        request, done = pair
        if has_ended(done):
            return "known"
        kind = None if fact.error is None else "tool_error"
        if fact.error is not None and fact.error.startswith(_DENIED):
            kind = "denied"
            tx.decide_call(*name, kind, "user")
        tx.finish_tool_call(
            *name,
            "completed" if fact.error is None else "failed",
            outcome=fact.outcome,
            error_kind=kind,
            error_msg=fact.error,
            ended_at_ms=told.origin.at_ms,
        )
        settle(tx, name[0], SOURCE, told.origin.at_ms, kind)
        self._count(told, request.session_id)
        return "results"

    def _enter(self, tx: Ledger, told: Told, model: str | None) -> str | None:
        """The session of a run; a new one where the last is sealed or ended."""
        name = told.origin.session
        if name is None:
            return None
        if name not in self._sessions:
            session = tx.enter_session(
                SOURCE,
                name,
                intent=self._runs[name].intent or "Claude Code, from its transcript",
                caller=SOURCE,
                project=_last_part(told.origin.cwd),
                model=model,
            )
            version = told.origin.version
            session_id = self._sessions[name] = session.session_id
            tx.start_capture(CHANNEL, SOURCE, version=version, session_id=session_id)
        self._count(told, self._sessions[name])
        return self._sessions[name]

    def _count(self, told: Told, session_id: str | None) -> None:
        if told.origin.session is not None and session_id is not None:
            self.added.setdefault(told.origin.session, Counter())[session_id] += 1


def _value_of(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def _actor(fact: Said) -> str | None:
    """Who said it: what a subagent is asked comes from the agent."""
    if fact.kind == "system":
        return None
    is_of_user = fact.kind == "user" and "sidechain" not in fact.attributes
    return "user" if is_of_user else SOURCE


def _last_part(cwd: str | None) -> str | None:
    return None if cwd is None else cwd.replace("\\", "/").rstrip("/").rpartition("/")[2] or None


def _digest(kind: str, text: str) -> str:
    """What two turns that say the same have in common, secrets removed."""
    plain, _ = redact_text(text)
    return hashlib.sha256(f"{kind} {plain.strip()}".encode("utf-8", "replace")).hexdigest()


def _heard(ledger: Ledger, run: str) -> Iterator[str]:
    """What was said in the sessions of a run and did not come in by an import."""
    session = ledger.find_linked(SOURCE, run)
    while session is not None:
        after: int | None = None
        while page := ledger.list_entries(
            session_id=session.session_id, after=after, limit=_PAGE, text_bytes_max=1
        ):
            for entry in page:
                if entry.kind == "turn.asserted" and entry.via != CHANNEL:
                    [whole] = ledger.list_entries(after=entry.index - 1, limit=1)
                    text = whole.texts.get("content") or ""
                    yield _digest(str(entry.body.get("turn_kind")), text)
            after = page[-1].index
        links = ledger.list_links(session.continues) if session.continues else []
        is_same = any((link.source, link.external_id) == (SOURCE, run) for link in links)
        session = ledger.get_session(session.continues) if is_same and session.continues else None
