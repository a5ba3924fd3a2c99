"""What an agent records through our server stands in the session of the run it works in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import affidavit
from affidavit.apps.hook import open_spool
from affidavit.capture.claude_names import SOURCE
from affidavit.capture.hooks.own_calls import take_run
from surfaces.claude_events import CLEARED, RUN, START, used
from surfaces.hook_desk import Desk

# As the real client introduces itself, and calls a tool.
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}, "elicitation": {}},
    "clientInfo": {
        "name": "claude-code",
        "title": "Claude Code",
        "version": "2.1.197",
        "description": "Anthropic's agentic coding tool",
    },
}
SAID = {"type": "decision", "task_id": "t1", "content": "B, because A is slow"}
TOOL = "mcp__affidavit__thought_record"


def serve(
    path: str, *calls: tuple[str, dict[str, Any], str], run: str | None = RUN, bind: str = "auto"
) -> list[Any]:
    """The server as the client starts it; its answers to the calls, one after the other."""
    words = [sys.executable, "-EP", "-m", "affidavit", "--ledger", path, "mcp", "--bind", bind]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, env=environment(run)) as server:
        ask(server, "initialize", HELLO, 0)
        answers = []
        for number, (name, given, call_id) in enumerate(calls, 1):
            meta = {"claudecode/toolUseId": call_id, "progressToken": number}
            params = {"name": name, "arguments": given, "_meta": meta}
            answers.append(ask(server, "tools/call", params, number)["structuredContent"])
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(30) == 0
    return answers


def ask(server: subprocess.Popen[bytes], method: str, params: Any, number: int) -> Any:
    assert server.stdin is not None
    assert server.stdout is not None
    said = {"jsonrpc": "2.0", "method": method, "params": params, "id": number}
    server.stdin.write(json.dumps(said).encode() + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())["result"]


def environment(run: str | None) -> dict[str, str]:
    known = {key: value for key, value in os.environ.items() if key != "CLAUDE_CODE_SESSION_ID"}
    return known if run is None else {**known, "CLAUDE_CODE_SESSION_ID": run}


def hook(path: str, says: Any) -> None:
    """One event, by the command that the client runs."""
    subprocess.run(
        [sys.executable, "-EP", "-m", "affidavit", "hook", "claude-code", "--ledger", path],
        input=json.dumps(says).encode(), timeout=60, check=True,
    )  # fmt: skip


def test_a_decision_stands_in_the_session_of_its_run(desk: Desk) -> None:
    desk.take(START).close()
    [answer] = serve(desk.path, ("thought_record", SAID, "toolu_1"))
    with affidavit.open(desk.path, readonly=True) as ledger:
        [session] = ledger.list_sessions()
        assert answer["data"]["session_id"] == session.session_id
        assert ledger.find_linked(SOURCE, RUN).session_id == session.session_id
        [thought] = ledger.list_thoughts(session_id=session.session_id)
        assert (thought.content, thought.agent_id) == ("B, because A is slow", "claude-code")


def test_it_begins_the_session_where_hooks_are_late_and_they_find_it(desk: Desk) -> None:
    [answer] = serve(desk.path, ("thought_record", SAID, "toolu_1"))
    with desk.take(START) as ledger:
        [session] = ledger.list_sessions()
        assert session.session_id == answer["data"]["session_id"]
        kinds = [entry.kind for entry in ledger.list_entries(session_id=session.session_id)]
    assert kinds.count("session.linked") == 1


def test_after_the_end_it_goes_into_a_session_that_continues(desk: Desk) -> None:
    end = {**START, "hook_event_name": "SessionEnd", "reason": "other"}
    desk.take(START, end).close()
    [answer] = serve(desk.path, ("thought_record", SAID, "toolu_1"))
    with affidavit.open(desk.path, readonly=True) as ledger:
        second, first = ledger.list_sessions()
        assert answer["data"]["session_id"] == second.session_id
        assert second.continues == first.session_id


def test_the_hook_before_the_call_knows_the_run_better(desk: Desk) -> None:
    """A client that resumes another session keeps its servers, whose environment is of before."""
    hook(desk.path, used("PreToolUse", TOOL, "toolu_1", SAID) | {"session_id": CLEARED})
    [answer] = serve(desk.path, ("thought_record", SAID, "toolu_1"))
    with affidavit.open(desk.path, readonly=True) as ledger:
        assert ledger.find_linked(SOURCE, CLEARED).session_id == answer["data"]["session_id"]
        assert ledger.find_linked(SOURCE, RUN) is None
    assert take_run(open_spool(desk.path).folder, "toolu_1") is None


def test_what_names_its_session_is_left_alone_and_nothing_seals_a_run(desk: Desk) -> None:
    desk.take(START).close()
    with affidavit.open(desk.path) as ledger:
        mine = ledger.start_session(intent="mine").session_id
    named, unbound, sealed = serve(
        desk.path,
        ("thought_record", {**SAID, "session_id": mine}, "toolu_1"),
        ("thought_record", {**SAID, "session_id": None}, "toolu_2"),
        ("merkle_finalize", {}, "toolu_3"),
    )
    assert named["data"]["session_id"] == mine
    assert unbound["data"]["session_id"] is None
    assert sealed["ok"] is False


def test_a_session_of_its_own_comes_before_the_run(desk: Desk) -> None:
    desk.take(START).close()
    started, said = serve(
        desk.path,
        ("audit_session_start", {"intent": "provable"}, "toolu_1"),
        ("thought_record", SAID, "toolu_2"),
    )
    assert said["data"]["session_id"] == started["data"]["session_id"]


def test_without_a_run_or_the_wish_nothing_is_bound(desk: Desk, tmp_path: Path) -> None:
    given = {**SAID, "agent_id": "a"}
    for options in ({"run": None}, {"bind": "none"}):
        [answer] = serve(desk.path, ("thought_record", given, "toolu_1"), **options)
        assert answer["data"]["session_id"] is None
    other = str(tmp_path / "other.db")
    [answer] = serve(other, ("thought_record", given, "toolu_1"), run="x" * 5_000)
    assert answer["data"]["session_id"] is not None
