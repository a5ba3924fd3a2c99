"""`affidavit show` and `affidavit why`: stories in a terminal, that no text in them can spoil."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid

import pytest

import affidavit
from affidavit.core.entry import Source
from affidavit.ledger.handle import acting_for

HOSTILE = "\x1b[2J\x1b[31m\r\u202e\x9b1;1H\x07 #1 (hook)\n2026-01-01T00:00:00.000Z  seen"
NAME = "\u202e2026-01-01 [31m"
MOVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def session(cli, path):
    """A session with words, a call with a large answer, an edit, a claim and a dead call."""
    cli("init")
    with affidavit.open(path) as ledger:
        ledger.start_session(session_id="s1", intent=HOSTILE, caller=NAME)
        seen = acting_for(ledger, Source(auth="none", client=None, via="hook"))
        ledger.record_thought(
            type="decision", task_id="t", agent_id=NAME, content="B fits", session_id="s1"
        )
        call(seen, 1, "Bash", {"command": HOSTILE}, outcome={"stdout": "x" * 20_000})
        call(
            seen,
            2,
            "Edit",
            {"file_path": "a.py", "old_string": "1\n2", "new_string": "1\n" + HOSTILE},
        )
        name = str(uuid.UUID(int=9))
        seen.upsert_turn(name, name, "assistant", "Done. All tests pass.", session_id="s1")
        call(seen, 3, NAME, {}, ends=False, started_at_ms=1)
    return "s1"


def call(ledger, number, tool, arguments, *, ends=True, outcome=None, **given):
    name = {"request_id": str(uuid.UUID(int=number)), "call_id": f"c{number}"}
    ledger.request_tool_call(
        **name, vendor="v", tool_name=tool, arguments=arguments, session_id="s1", **given
    )
    if ends:
        ledger.finish_tool_call(**name, status="completed", outcome=outcome, latency_ms=2_340)


def test_a_story_says_when_who_what_and_what_to_doubt(cli, session):
    out = cli("show", session).out
    lines = out.splitlines()
    assert "B fits" in out
    [told] = [line for line in lines if "Bash: completed, 2.3 s" in line]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  seen  ", told)
    assert any("  said  Decision" in line for line in lines)
    assert "outcome, 20,013 bytes: {" in out
    assert "x" * 200 not in out
    assert "      -2\n" in out
    assert "!! unproven: says tests pass: no run of tests is recorded since the edit" in out
    assert "!! dead: nobody finished this call" in out
    assert "6 steps, 2 marks." in out
    assert "x" * 20_000 in cli("show", session, "--full").out


def test_hostile_text_moves_no_cursor_and_passes_for_no_line_of_ours(cli, session):
    for words in (("show", session), ("show", session, "--full"), ("why", "a.py")):
        out = cli(*words).out
        assert not MOVES.search(out), words
        stamps = [line for line in out.splitlines() if line.startswith("2026-01-01")]
        assert stamps == []


def test_the_document_holds_the_whole_story(cli, session, path):
    data = cli("show", session, "--json").data
    with affidavit.open(path, readonly=True) as ledger:
        entries = [entry.index for entry in ledger.list_entries(session_id=session)]
    assert [step["entry"]["index"] for step in data["steps"]] == entries
    assert data["session"]["session_id"] == session
    later = cli("show", session, "--after", str(entries[3]), "--json").data
    assert [step["entry"]["index"] for step in later["steps"]] == entries[4:]
    refused = cli("show", "nobody", "--json")
    assert (refused.code, refused.error["code"]) == (2, "ERR_SESSION_NOT_FOUND")


def test_a_long_story_is_printed_as_it_is_read(cli, path):
    cli("init")
    with affidavit.open(path) as ledger:
        ledger.start_session(session_id="long", intent="x")
        ledger.record_thoughts(
            {"type": "plan", "task_id": "t", "agent_id": "a", "session_id": "long", "content": "y"}
            for _ in range(1_000)
        )
    words = [sys.executable, "-m", "affidavit", "show", "long", "--ledger", path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"Session long is open\n"
        process.stdout.close()
        assert process.wait(20) == 141
        assert process.stderr.read() == b""
    assert len(cli("show", "long", "--json").data["steps"]) == 1_001


def test_a_line_is_traced_to_the_edit_the_decision_and_the_proof(
    cli, session, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("0\n1\n\nnobody\n", encoding="utf-8")
    out = cli("why", "a.py:2").out
    assert "No recorded edit wrote a.py:2" in out  # it stayed as it was
    out = cli("why", "a.py").out
    assert "Edit: completed" in out
    assert "after the decision of" in out
    assert "B fits" in out
    assert "sealed   no" in out
    cli("session", "seal", session)
    data = cli("why", "a.py", "--json").data
    [edit] = data["edits"]
    assert (edit["root"] is not None, edit["session_id"]) == (True, session)
    assert data["signed"] > edit["index"]
    assert "in the checkpoint of" in cli("why", "a.py").out
    assert cli("why", "a.py:4").out == "No recorded edit wrote a.py:4.\n"
    for place in ("a.py:3", "a.py:99", "b.py:1"):
        assert cli("why", place).code == 2
    assert cli("why", "a.py", "--limit", "0").code == 2


def test_a_damaged_entry_is_told_as_such_and_the_rest_as_it_is(cli, session, tamper):
    tamper("UPDATE log SET entry = x'00ff' WHERE log_index = 3")
    ran = cli("show", session)
    assert ran.code == 0
    assert "!! damaged: entry 3 of the log is damaged" in ran.out
    assert "All tests pass." in ran.out
    assert cli("why", "a.py").code == 0
