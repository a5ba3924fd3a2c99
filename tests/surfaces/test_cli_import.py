"""`affidavit import` as a person calls it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import affidavit
from contract.transcripts import Transcript


def test_the_clients_own_folder_is_found_and_a_ledger_made(cli, tmp_path, monkeypatch, path):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    script = Transcript(tmp_path / "claude" / "projects", "s1")
    script.ordinary()
    script.raw("{broken")
    script.line("mode")
    ran = cli("import", "claude-code")
    assert ran.code == 0
    assert "made a new ledger" in ran.err
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "recorded 2 turns, 2 tool calls, 2 results" in lines
    assert "left out 1 mode" in lines
    assert "broken: 1 line, the first is" in ran.out
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.list_tool_calls()[0][0].arguments is not None, "payloads are kept"
    data = cli("import", "claude-code", str(script.path), "--json").data
    assert (data["known"], sum(data["recorded"].values()), data["files"]) == (6, 0, 1)
    told = cli("show", affidavit_session(path)).out
    assert "2026-04-17T12:00:" in told
    assert "(import)" in told


def affidavit_session(path):
    with affidavit.open(path, readonly=True) as ledger:
        return ledger.list_sessions()[0].session_id


def test_a_folder_that_is_not_there_and_a_client_nobody_knows_are_refused(cli, tmp_path):
    cli("init")
    ran = cli("import", "claude-code", str(tmp_path / "nowhere"), "--json")
    assert (ran.code, ran.error["code"]) == (4, "ERR_STORE_UNAVAILABLE")
    assert cli("import", "cursor").code == 2
    (tmp_path / "empty").mkdir()
    assert cli("import", "claude-code", str(tmp_path / "empty")).code == 0


def test_a_terminal_gets_a_bar_and_a_file_does_not(path, tmp_path):
    Transcript(tmp_path / "p", "s1").ordinary()
    words = [sys.executable, "-m", "affidavit", "import", "claude-code", str(tmp_path / "p")]
    words += ["--ledger", path]
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        out = process.stdout.read()
        assert process.wait(30) == 0
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "[##############################] 100%  6 lines" in shown
    assert b"\r" not in out
    quiet = subprocess.run(words, capture_output=True, check=True)
    assert quiet.stderr == b""
