"""A real ledger against a naive model of it: whatever is called in whatever order, both agree.

The model keeps plain lists and dicts and computes every hash by the formats' words. Each rule makes
the call, says what the model expects (an answer or a refusal's code), and compares.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import affidavit
from contract.calls import HOUR_US
from contract.model import NEXT, STATES, TYPES, Model, Session
from contract.oracle import ZEROS, canonical, chain_hash, content_hash, digest, log, root, task_hash

types = st.sampled_from(TYPES)
states = st.sampled_from(STATES)
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1)
picks = st.integers(0, 11)
names = st.sampled_from(["p1", "p2", None])
OMITTED = object()
omitted = st.just(OMITTED)


class LedgerMachine(RuleBasedStateMachine):
    """Calls in any order."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.path = str(Path(self.folder) / "trail.db")
        self.model = Model()
        self.minted = 0
        self.kept = []
        self.ledger = None
        self.open()

    def open(self):
        self.ledger = affidavit.open(self.path, clock=lambda: self.model.now, id_fn=self.mint)

    def mint(self):
        self.minted += 1
        return f"i{self.minted}"

    def expect(self, code, call):
        """Make a call that must be refused with this code, or answered where it is None."""
        if code is None:
            return call()
        with pytest.raises(affidavit.AffidavitError) as caught:
            call()
        assert caught.value.code == code, caught.value
        return None

    def session_id(self, pick):
        """Mostly a session there is, sometimes none, now and then a typo."""
        if pick == 0:
            return "typo"
        known = [*self.model.sessions]
        return known[pick % len(known)] if known and pick > 3 else None

    def task_id(self, pick):
        known = [*self.model.tasks, "label"]
        return known[pick % len(known)]

    def known_task(self, pick):
        """A task id, its state in the model (None where absent) and the code that absence gives."""
        known = [*self.model.tasks]
        task_id = known[pick % len(known)] if known and pick else "typo"
        task = self.model.tasks.get(task_id)
        if task is None or task["deleted"]:
            return task_id, None, "ERR_NOT_FOUND"
        return task_id, task, None

    # Decisions

    def refusal(self, session_id):
        if session_id is None:
            return None
        session = self.model.sessions.get(session_id)
        if session is None:
            return "ERR_SESSION_NOT_FOUND"
        if session.sealed:
            return "ERR_SESSION_SEALED"
        return "ERR_SESSION_ENDED" if session.ended else None

    def check_thought(self, record, given, at, index):
        newest = self.model.newest(given["task_id"])
        assert {name: getattr(record, name) for name in given} == given
        assert (record.at, record.index) == (at, index)
        assert record.prev_hash == (newest.hash if newest else ZEROS)
        assert record.hash == task_hash(record)
        session = self.model.sessions.get(record.session_id)
        if session is None:
            assert record.content_hash is record.chain_hash is record.session_seq is None
        else:
            assert record.session_seq == len(session.thoughts)
            assert record.parent_chain_hash == session.tip
            assert record.content_hash == content_hash(record)
            assert record.chain_hash == chain_hash(record.content_hash, session.tip)
            session.tip, session.at = record.chain_hash, at
            session.thoughts.append(record)
        self.model.thoughts.append(record)

    def given(self, kind, task, session, content):
        return {
            "type": kind,
            "task_id": self.task_id(task),
            "agent_id": "a1",
            "content": content,
            "session_id": self.session_id(session),
        }

    @rule(kind=types, task=picks, session=picks, content=texts, keyed=st.booleans())
    def record(self, kind, task, session, content, keyed):
        given = self.given(kind, task, session, content)
        code = self.refusal(given["session_id"])
        key = f"k{len(self.kept)}" if keyed and code is None else None
        call = self.ledger.record_thought
        record = self.expect(code, lambda: call(**given, idempotency_key=key))
        if record is not None:
            self.check_thought(record, given, *self.model.step())
            if key:
                self.kept.append(("record_thought", {**given, "idempotency_key": key}, record))

    @rule(drafts=st.lists(st.tuples(types, picks, picks, texts), min_size=1, max_size=4))
    def record_batch(self, drafts):
        given = [self.given(*one) for one in drafts]
        codes = [self.refusal(one["session_id"]) for one in given]
        code = next((code for code in codes if code), None)
        records = self.expect(code, lambda: self.ledger.record_thoughts(given))
        if records is not None:
            at, first = self.model.step(len(given))
            for place, (record, one) in enumerate(zip(records, given, strict=True)):
                self.check_thought(record, one, at, first + place)

    # Sessions

    @rule(task=picks, earlier=picks, goes_on=st.booleans(), proof_grade=st.booleans())
    def start(self, task, earlier, goes_on, proof_grade):
        self.start_one(task, earlier, goes_on, proof_grade)

    def start_one(self, task, earlier, goes_on, proof_grade):
        model = self.model
        continues = self.session_id(earlier) if goes_on else None
        before, code = model.sessions.get(continues), None
        if continues is not None and before is None:
            code = "ERR_SESSION_NOT_FOUND"
        elif before is not None and before.state == "open":
            code = "ERR_SESSION_OPEN"
        given = {"task_id": self.task_id(task), "proof_grade": proof_grade}
        call = self.ledger.start_session
        session = self.expect(code, lambda: call(intent="x", continues=continues, **given))
        if session is None:
            return
        at, index = model.step()
        metadata = {
            "caller": None,
            "continues": before and {"chain_hash": before.tip, "session_id": continues},
            "ledger_id": self.ledger.ledger_id,
            "session_id": session.session_id,
            "started_at": session.started_at,
            **given,
        }
        assert session.genesis == digest(canonical(metadata))
        assert (session.at, session.index, session.state) == (at, index, "open")
        model.sessions[session.session_id] = Session(
            session.genesis, index, given["task_id"], proof_grade, at
        )

    @rule(session=picks)
    def seal(self, session):
        session_id = self.session_id(session) or "typo"
        found, code = self.model.sessions.get(session_id), None
        if found is None:
            code = "ERR_SESSION_NOT_FOUND"
        elif found.sealed is None and not found.thoughts:
            code = "ERR_NO_RECORDS"
        elif found.sealed is None and found.proof_grade and not found.is_closed():
            code = "ERR_CLOSING_REFLECTION_REQUIRED"
        seal = self.expect(code, lambda: self.ledger.seal_session(session_id))
        if seal is None:
            return
        assert seal.already_finalized == bool(found.sealed)
        if not found.sealed:
            found.at, index = self.model.step()
            found.sealed = seal
            assert seal.index == index
            assert (seal.record_count, seal.chain_hash) == (len(found.thoughts), found.tip)
            assert seal.closing_reflection == found.is_closed()
            entries = log(self.path)
            assert seal.root == root([entries[one.index].raw for one in found.thoughts])
            own = [one.raw for one in entries[:index] if one.body.get("session_id") == session_id]
            assert (seal.entry_count, seal.entries_root) == (len(own), root(own))
        assert seal.root == found.sealed.root

    @rule(session=picks, reason=st.sampled_from(["done", "failed", "lost"]))
    def end(self, session, reason):
        session_id = self.session_id(session) or "typo"
        found = self.model.sessions.get(session_id)
        code = "ERR_SESSION_NOT_FOUND" if found is None else None
        end = self.expect(code, lambda: self.ledger.end_session(session_id, reason=reason))
        if end is None:
            return
        if not found.ended:
            _, index = self.model.step()
            found.ended = (reason, index)
        assert (end.reason, end.index) == found.ended
        assert end.record_count == len(found.thoughts)

    # Tasks

    def show(self, task):
        """A task's answer in the words of the model."""
        return {
            "title": task.title,
            "description": task.description,
            "project_id": task.project_id,
            "status": task.status,
            "attempt": task.attempt,
            "deleted": task.deleted_at is not None,
        }

    def finish(self, task_id, answer, expected):
        if answer is None:
            return
        at, index = self.model.step()
        assert (answer.at, answer.index) == (at, index)
        assert self.show(answer) == expected
        self.model.tasks[task_id] = expected

    @rule(title=texts, status=states, project=names)
    def create_task(self, title, status, project):
        self.create_one(title, status, project)

    def create_one(self, title, status, project):
        model, code, coming = self.model, None, f"i{self.minted + 1}"
        if model.settings["transitions"] == "strict" and status != "INIT":
            code = "ERR_INVALID_TRANSITION"
        elif status == "DONE" and not model.gate_is_open(coming):
            code = "ERR_WRITEBACK_REQUIRED"
        call = self.ledger.create_task
        task = self.expect(code, lambda: call(title=title, status=status, project_id=project))
        expected = {
            "title": title,
            "description": None,
            "project_id": project,
            "status": status,
            "attempt": 1,
            "deleted": False,
        }
        self.finish(coming, task, expected)

    def move(self, task, status):
        """The task in another state."""
        again = (task["status"], status) == ("VERIFY", "GATHER")
        return {**task, "status": status, "attempt": task["attempt"] + again}

    @rule(
        pick=picks,
        status=omitted | states,
        title=omitted | texts,
        description=omitted | st.none() | texts,
        project=omitted | names,
    )
    def update_task(self, pick, status, title, description, project):
        model = self.model
        task_id, task, code = self.known_task(pick)
        given = {
            "status": status,
            "title": title,
            "description": description,
            "project_id": project,
        }
        patch = {name: value for name, value in given.items() if value is not OMITTED}
        expected = None
        if task is not None:
            to = patch.get("status", task["status"])
            if to != task["status"]:
                strict = model.settings["transitions"] == "strict"
                if strict and (to not in model.allowed(task["status"]) or to == "CANCELLED"):
                    code = "ERR_INVALID_TRANSITION"
                elif to == "DONE" and not model.gate_is_open(task_id):
                    code = "ERR_WRITEBACK_REQUIRED"
            expected = {**task, **patch, **self.move({**task, **patch}, to)}
            expected["attempt"] = self.move(task, to)["attempt"]
        key = f"k{len(self.kept)}" if code is None else None
        call = self.ledger.update_task
        answer = self.expect(code, lambda: call(task_id, **patch, idempotency_key=key))
        if patch or answer is None:
            self.finish(task_id, answer, expected)
        else:
            assert self.show(answer) == task
        if key:
            again = {"id": task_id, **patch, "idempotency_key": key}
            self.kept.append(("update_task", again, answer))

    @rule(pick=picks, to=states, reason=st.none() | texts)
    def transition_task(self, pick, to, reason):
        task_id, task, code = self.known_task(pick)
        if task is not None:
            if to not in self.model.allowed(task["status"]):
                code = "ERR_INVALID_TRANSITION"
            elif to == "CANCELLED" and reason is None:
                code = "INVALID_PARAMS"
            elif to == "DONE" and not self.model.gate_is_open(task_id):
                code = "ERR_WRITEBACK_REQUIRED"
        call = self.ledger.transition_task
        answer = self.expect(code, lambda: call(task_id, to=to, reason=reason))
        self.finish(task_id, answer, task and self.move(task, to))

    @rule(pick=picks)
    def delete_task(self, pick):
        task_id, task, code = self.known_task(pick)
        answer = self.expect(code, lambda: self.ledger.delete_task(task_id))
        self.finish(task_id, answer, task and {**task, "deleted": True})

    # The world

    @rule(
        change=st.sampled_from(
            [
                ("writeback", "any"),
                ("writeback", "reflection"),
                ("transitions", "open"),
                ("transitions", "strict"),
            ]
        )
    )
    def set(self, change):
        name, value = change
        if self.model.settings[name] != value:
            self.model.step()
        self.model.settings[name] = value
        answer = self.ledger.set(**{name: value})
        assert {key: answer[key] for key in self.model.settings} == self.model.settings

    @rule(hours=st.sampled_from([-1, 0, 0, 1, 23, 25]))
    def time_passes(self, hours):
        self.model.now += hours * HOUR_US

    @rule()
    def open_anew(self):
        """Open sessions idle for a day are lost; sealed ones stay as they are."""
        self.ledger.close()
        limit = self.model.now - 24 * HOUR_US
        self.open()
        lost = 0
        for session_id, session in self.model.sessions.items():
            found = self.ledger.get_session(session_id)
            if session.state == "open" and session.at < limit:
                assert (found.state, found.end_reason) == ("ended", "lost")
                session.ended = ("lost", self.model.size + lost)
                lost += 1
        if lost:
            self.model.step(lost)

    @rule(pick=picks)
    def retry(self, pick):
        """A repeated call with its key gives its first answer and writes nothing."""
        if self.kept:
            name, given, answer = self.kept[pick % len(self.kept)]
            assert getattr(self.ledger, name)(**given) == answer

    @rule(task=picks, session=picks, kind=st.none() | types, limit=st.none() | st.integers(1, 5))
    def list_thoughts(self, task, session, kind, limit):
        wanted = {
            "task_id": [None, self.task_id(task)][task % 2],
            "session_id": self.session_id(session),
            "type": kind,
        }
        expected = [
            one
            for one in self.model.thoughts
            if all(value is None or getattr(one, name) == value for name, value in wanted.items())
        ]
        assert self.ledger.list_thoughts(**wanted, limit=limit) == expected[:limit]
        assert list(self.ledger.iter_thoughts(**wanted)) == expected

    @rule(status=st.none() | states, project=omitted | names, deleted=st.booleans(), offset=picks)
    def list_tasks(self, status, project, deleted, offset):
        wanted = {} if project is OMITTED else {"project_id": project}
        page = self.ledger.list_tasks(
            status=status, include_deleted=deleted, limit=3, offset=offset, **wanted
        )
        expected = [
            (task_id, task)
            for task_id, task in self.model.tasks.items()
            if status in (None, task["status"])
            and project in (OMITTED, task["project_id"])
            and (deleted or not task["deleted"])
        ]
        assert page.total_count == len(expected)
        assert [(one.id, self.show(one)) for one in page.tasks] == expected[offset : offset + 3]

    @rule()
    def look_at_everything_else(self):
        model = self.model
        assert [one.session_id for one in self.ledger.list_sessions()] == [*model.sessions][::-1]
        for session_id, session in model.sessions.items():
            found = self.ledger.get_session(session_id)
            assert (found.state, found.record_count) == (session.state, len(session.thoughts))
            assert found.root == (session.sealed.root if session.sealed else None)
        unfinished = [
            task_id
            for task_id, task in model.tasks.items()
            if not task["deleted"] and NEXT[task["status"]]
        ]
        assert [one.id for one in self.ledger.next_actions().tasks] == unfinished

    @initialize(proof_grade=st.booleans())
    def begin(self, proof_grade):
        self.create_one("first", "INIT", None)
        self.create_one("second", "VERIFY", "p1")
        self.start_one(0, 0, False, proof_grade)
        self.start_one(1, 0, False, False)

    @invariant()
    def the_log_has_as_many_entries_as_the_model(self):
        assert len(self.ledger) == self.model.size

    def teardown(self):
        try:
            report, chains = self.ledger.verify(), self.ledger.verify_chain()
            assert report.valid, report.findings
            assert chains.valid, chains.reason
            assert chains.record_count == len(self.model.thoughts)
            assert self.ledger.rebuild(check=True).valid
        finally:
            self.ledger.close()
            shutil.rmtree(self.folder)


LedgerMachine.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
test_a_ledger_and_its_model_agree = LedgerMachine.TestCase
