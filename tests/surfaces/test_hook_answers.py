"""What a hook answers: one line after a choice, and a gate that asks for a reflection."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit.apps import hook as taking
from affidavit.apps.hook_drain import drain
from affidavit.capture.claude_names import SOURCE
from surfaces.hook_events import RUN, call, event

CHOSEN = call("PostToolUse", "AskUserQuestion", "toolu_q", {}, tool_response={"answers": {}})
PLANNED = call("PostToolUse", "ExitPlanMode", "toolu_p", {"plan": "Do."}, tool_response={})
START = event("SessionStart", source="startup")
PROMPT = event("UserPromptSubmit", prompt="Fix it.")
STOP = event("Stop", stop_hook_active=False, last_assistant_message="Done.", background_tasks=[])
COMPLETED = event("TaskCompleted", task_id="1", task_subject="Fix it")


class Client:
    """Runs a hook as Claude Code does."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.spool = taking.open_spool(path)

    def __call__(self, says: Any, *words: str) -> tuple[int, str, str]:
        ran = subprocess.run(
            [
                sys.executable, "-EP", "-m", "affidavit", "hook", "claude-code",
                "--ledger", self.path, *words,
            ],
            input=json.dumps(says), text=True, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        return ran.returncode, ran.stdout, ran.stderr

    def put(self, *events: Any) -> None:
        for says in events:
            self.spool.put(b"{}", json.dumps(says).encode())

    def settle(self) -> None:
        assert drain(self.path, self.spool, wait_s=30) is not None

    def refuses(self, says: Any) -> str | None:
        code, out, _ = self(says, "--gate")
        assert code == 0
        if not out:
            return None
        answer = json.loads(out)
        assert answer["decision"] == "block"
        return str(answer["reason"])

    def turns(self) -> list[str]:
        self.settle()
        with affidavit.open(self.path, readonly=True) as ledger:
            return [turn.content or "" for turn in ledger.list_turns()]

    def think(self, type_: str, task: str = "t") -> None:
        self.settle()
        with affidavit.open(self.path) as ledger:
            session = ledger.find_linked(SOURCE, RUN).session_id
            ledger.record_thought(
                type=type_, task_id=task, agent_id="a", content="why", session_id=session
            )


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    path = str(tmp_path / "trail.db")
    affidavit.open(path).close()
    return Client(path)


@pytest.mark.parametrize("chosen", [CHOSEN, PLANNED])
def test_after_a_choice_one_line_at_most_once_in_ten_minutes(client: Client, chosen: Any) -> None:
    with client.spool.hold():
        code, out, _ = client(chosen)
        answer = json.loads(out)["hookSpecificOutput"]
        assert (code, answer["hookEventName"]) == (0, "PostToolUse")
        assert "record the decision" in answer["additionalContext"]
        assert "\n" not in answer["additionalContext"]
        assert client(CHOSEN)[1] == ""
        assert client({**CHOSEN, "session_id": "another"})[1] != ""
        assert client(event("UserPromptSubmit", prompt='say "ExitPlanMode"'))[1] == ""
    [claim] = [path for path in (client.spool.folder / "claims").iterdir()
               if path.name == f"nudge-{taking._short(RUN)}"]  # fmt: skip
    claim.write_text(f"{float(claim.read_text()) - taking.NUDGE_EVERY_S:.3f}")
    assert client(CHOSEN)[1] != ""
    client.settle()


def test_a_stop_without_a_reflection_is_refused_once_a_turn(client: Client) -> None:
    client.put(START, PROMPT)
    client.settle()
    client.think("decision", "cart")
    said = client.refuses(STOP)
    assert said is not None
    assert "closing reflection of task 'cart'" in said
    with affidavit.open(client.path, readonly=True) as ledger:
        assert f'session_id "{ledger.find_linked(SOURCE, RUN).session_id}"' in said
    assert client.refuses(STOP) is None
    assert client.refuses({**STOP, "stop_hook_active": True}) is None
    client.put(event("UserPromptSubmit", prompt="And now?"))
    assert client.refuses(STOP) is not None
    client.put(event("UserPromptSubmit", prompt="Once more."))
    client.think("reflection", "cart")
    assert client.refuses(STOP) is None
    assert sum(said.startswith("GateRefused") for said in client.turns()) == 2


def test_a_reflection_that_went_through_our_server_counts(client: Client) -> None:
    client.put(START, PROMPT)
    with affidavit.open(client.path) as ledger:
        session = ledger.start_session(intent="by the server").session_id
        said = {"task_id": "t", "agent_id": "a", "content": "why", "session_id": session}
        ledger.record_thought(type="decision", **said)
    own = call("PostToolUse", "mcp__affidavit__thought_record", "o1", {},
               tool_response={"session_id": session})  # fmt: skip
    client.put(own)
    why = client.refuses(STOP)
    assert why is not None
    assert f'session_id "{session}"' in why
    with affidavit.open(client.path) as ledger:
        ledger.record_thought(type="reflection", **said)
    client.put(event("UserPromptSubmit", prompt="On."))
    assert client.refuses(STOP) is None
    client.settle()


def test_a_task_is_not_completed_in_the_way_that_event_has(client: Client) -> None:
    client.put(START, PROMPT)
    code, out, err = client(COMPLETED, "--gate")
    assert (code, out) == (2, "")
    assert "has no closing reflection" in err
    client.think("reflection")
    client.put(event("UserPromptSubmit", prompt="On."))
    assert client(COMPLETED, "--gate") == (0, "", "")
    client.settle()


def test_never_while_background_work_runs(client: Client) -> None:
    client.put(START, PROMPT)
    running = {**STOP, "background_tasks": [{"id": "b1", "status": "running"}]}
    assert client.refuses(running) is None
    client.put(event("SubagentStart", agent_id="a1", agent_type="Explore"))
    assert client.refuses(STOP) is None
    client.put(event("SubagentStop", agent_id="a1", agent_type="Explore"))
    over = {**STOP, "background_tasks": [{"id": "b1", "status": "completed"}]}
    assert client.refuses(over) is not None
    client.settle()


def test_a_gate_that_cannot_judge_lets_go_and_says_so(client: Client) -> None:
    away = Path(client.path).rename(client.path + ".away")
    Path(client.path).mkdir()
    assert client.refuses(STOP) is None
    assert "gate: StoreError" in (client.spool.folder / "hooks.log").read_text()
    Path(client.path).rmdir()
    away.rename(client.path)
    assert any(said.startswith("GateFailed: StoreError") for said in client.turns())


def test_without_the_gate_nothing_is_refused(client: Client) -> None:
    client.put(START, PROMPT)
    assert client(STOP) == (0, "", "")
    client.settle()
