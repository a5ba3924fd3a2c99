"""A ledger with every kind of entry, the same bytes each time it is made.

Three like episodes, so that every table has rows under each kept node of the log and behind the
last one; between them, thoughts that belong to no session.
"""

from __future__ import annotations

import itertools
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import affidavit
from affidavit.apps import wiring
from affidavit.core.entry import Source
from affidavit.ledger.handle import acting_for, leave_entry
from affidavit.ledger.served import ServedCall
from tamper.observed import observe

FIRST_AT_US = 1_776_384_000_000_000
STEP_US = 1_500_003
EPISODES = ("a", "b", "c")
ODD_TEXTS = (
    'quotes " and \\ and / here',
    "tab\tnewline\nreturn\rbell\x07escape\x1b",
    "naïve Ωmega 🦉 e\u0301 \u2028 \ufeff",
    "  spaces around, and a delete \x7f ",
)


def record_history(path: Path | str, *, slip: str = "") -> None:
    """Make the ledger; `slip` is put behind one word in the middle of it."""
    clock = itertools.count(FIRST_AT_US, STEP_US)
    ids = itertools.count()
    salts = itertools.count()

    with TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AFFIDAVIT_HOME", home)
        patch.setattr(wiring, "new_salt", lambda: sha256(b"%d" % next(salts)).digest())
        with affidavit.open(
            path,
            clock=lambda: next(clock),
            id_fn=lambda: f"id-{next(ids):05d}",
            settings={"payloads": "keep"},
        ) as ledger:
            for name in EPISODES:
                _live(ledger, name, slip)


def _live(ledger: Any, name: str, slip: str) -> None:
    _change_settings(ledger, name)
    _work_on_tasks(ledger, name)
    _hold_sessions(ledger, name)
    made = _sign(ledger, name) + _serve(ledger, name) + observe(ledger, name)
    _think_alone(ledger, name, 190 - made, slip if name == "b" else "")


def _serve(ledger: Any, name: str) -> int:
    """Calls as a server answers them; how many entries that made."""
    before = len(ledger)

    def call(tool: str, caller: str | None, args: str, took_us: int) -> Any:
        digest = sha256(args.encode()).hexdigest() if args else None
        salt = sha256(f"{name} {tool} {took_us}".encode()).digest()
        served = ServedCall(tool, caller, digest, salt, lambda: took_us)
        return acting_for(ledger, Source("claimed", caller, "mcp"), served)

    said = {"type": "decision", "task_id": "t-9", "agent_id": "a1", "content": f"Served {name}."}
    call("thought_record", f"client/{name}", "one", 700).record_thought(**said)
    call("thought_record", "émile/2", "two", 800).record_thought(**said)
    leave_entry(call("task_create", f"client/{name}", "three", 90), "INVALID_PARAMS", reads=False)
    leave_entry(call("merkle_root", None, "", 120), "ERR_NOT_FINALIZED", reads=False)
    return len(ledger) - before


def _sign(ledger: Any, name: str) -> int:
    """Sign, and change keys and name; how many entries that made."""
    before = len(ledger)
    ledger.checkpoint()
    first = ledger.list_keys()[-1]
    ledger.add_key(by=f"owner {name}", reason=f"The old one is old {name}.")
    ledger.retire_key(first.vkey, reason="Now there is a new one.")
    ledger.recover("new-origin", reason=f"Moved to another machine {name}.")
    if name == "a":
        ledger.erase(matching=f"Moved to another machine {name}", by=f"owner {name}")
    ledger.retire_key(ledger.add_key().vkey, by="émile")
    ledger.recover("new-origin")
    return len(ledger) - before


def _change_settings(ledger: Any, name: str) -> None:
    hours = 48 + EPISODES.index(name)
    ledger.set(session_idle_hours=hours, by=f"owner {name}", idempotency_key=f"{name}-hours")
    ledger.set(writeback="reflection", transitions="strict")
    ledger.set(writeback="any", transitions="open", by="émile")


def _work_on_tasks(ledger: Any, name: str) -> None:
    first = ledger.create_task(
        title=f"Choose an index {name}",
        description="Measure both.",
        project_id=f"project {name}",
        priority="high",
        assignee="agent-1",
        idempotency_key=f"{name}-task",
    )
    second = ledger.create_task(title='A "quoted" title 🦉')
    ledger.create_task(title=f"Never touched again {name}", description="Waits.", status="PLAN")
    ledger.erase(matching=f"Never touched again {name}", by="émile")
    ledger.update_task(first.id, title="Choose the index", priority=None)
    ledger.update_task(second.id, description="Now it has one.", assignee="agent-2")
    ledger.transition_task(first.id, to="GATHER", reason="The data is here.")
    ledger.update_task(second.id, status="VERIFY")
    ledger.update_task(first.id, description=None, project_id=None)
    ledger.update_task(second.id, status="GATHER", description="Once more.")
    ledger.record_thought(type="plan", task_id=first.id, agent_id="a1", content="Begin.")
    ledger.transition_task(first.id, to="CANCELLED", reason="Nobody needs it.")
    ledger.delete_task(first.id, reason="Made by mistake.")
    ledger.record_thought(type="reflection", task_id=second.id, agent_id="a1", content="It holds.")
    ledger.update_task(second.id, status="DONE", title="A finished title")
    third = ledger.create_task(title="Gone without a word")
    ledger.delete_task(third.id)


def _hold_sessions(ledger: Any, name: str) -> None:
    def start(kind: str, **options: Any) -> str:
        session_id = f"{name}-{kind}"
        ledger.start_session(intent=f"{kind} it", session_id=session_id, **options)
        return session_id

    def think(session_id: str, task_id: str, content: str, type: str = "decision") -> None:
        ledger.record_thought(
            type=type,
            task_id=task_id,
            agent_id="agent 2",
            content=content,
            session_id=session_id,
        )

    sealed = start("sealed", caller="agent-1", task_id="t-1", project="p", model="m-1")
    opened = start("open", caller="émile", task_id="t-2")
    ended = start("ended", idempotency_key=f"{name}-ended")
    for turn, text in enumerate((*ODD_TEXTS, "one more", "and another", "the sixth")):
        think(sealed, f"t-{turn % 2 + 1}", text, "analysis")
        think(opened, "t-2", f"meanwhile {turn}")
        if turn % 3 == 0:
            think(ended, "t-3", f"{text} {turn}")
            ledger.record_thought(type="plan", task_id="t-1", agent_id="x", content=f"alone {turn}")
    think(sealed, "t-1", "So it was.", "reflection")
    ledger.seal_session(sealed, idempotency_key=f"{name}-seal")
    ledger.end_session(ended)
    ledger.end_session(sealed, idempotency_key=f"{name}-end")
    _hold_more_sessions(ledger, name, start, think)


def _hold_more_sessions(ledger: Any, name: str, start: Any, think: Any) -> None:
    proof = start("proof", proof_grade=True, task_id="t-4", continues=f"{name}-sealed")
    for turn in range(4):
        think(proof, "t-4" if turn % 2 else "t-1", f"step {turn}")
    think(proof, "t-4", "All steps hold.", "reflection")
    ledger.seal_session(proof)
    late = start("late", continues=f"{name}-ended", model="m-2")
    for turn in range(3):
        think(late, "t-5", f"before the end {turn}")
    ledger.end_session(late, reason="failed")
    ledger.seal_session(late)
    ledger.erase(session_id=late, by=f"owner {name}", reason=f"A wish of {name}.")
    lost = start("lost", project="p-2")
    think(lost, "t-6", "Is anybody there?")
    ledger.end_session(lost, reason="lost")
    start("silent", caller="agent-3")
    silenced = start("silenced")
    ledger.end_session(silenced)
    think(start("heir", continues=silenced), "t-6", "Goes on from a session without records.")


def _think_alone(ledger: Any, name: str, count: int, slip: str) -> None:
    texts = [f"{text} {n}" for n, text in enumerate((ODD_TEXTS * count)[:count])]
    texts[60] += slip
    ledger.record_thoughts(
        [
            {
                "type": ("plan", "analysis", "decision", "reflection")[n % 4],
                "task_id": f"alone-{n % 9}",
                "agent_id": f"agent-{n % 3}",
                "content": text,
            }
            for n, text in enumerate(texts)
        ],
        idempotency_key=f"{name}-alone",
    )
