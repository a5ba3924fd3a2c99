"""`affidavit connect claude-code` and back: every byte as it was, and nobody's settings harmed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit.apps import places
from affidavit.apps.connecting import probing
from affidavit.apps.connecting.claude_code import EVENTS, LINES
from affidavit.apps.connecting.probing import probe
from affidavit.apps.hook import find_goal, open_spool
from affidavit.apps.hook_drain import drain
from affidavit.apps.hooks_received import HooksReceived
from surfaces.serving import serving

SETTINGS = """{
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": []
    },
    "größe": 1.50
}"""
SERVERS = '{"numStartups":3,"mcpServers":{"other":{"command":"x"}}}\n'
LINES_BEFORE = "# Mine\n\nUse tabs."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "someone"
    (home / ".claude").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("AFFIDAVIT_HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # without a `claude` of this machine
    monkeypatch.chdir(home)
    return home


def fill(home: Path) -> None:
    (home / ".claude/settings.json").write_text(SETTINGS)
    (home / ".claude.json").write_text(SERVERS)
    (home / ".claude/CLAUDE.md").write_text(LINES_BEFORE)


def files_of(home: Path) -> dict[str, bytes]:
    names = (".claude/settings.json", ".claude.json", ".claude/CLAUDE.md")
    return {name: (home / name).read_bytes() for name in names if (home / name).exists()}


def hooks_of(home: Path) -> dict[str, Any]:
    return json.loads((home / ".claude/settings.json").read_text())["hooks"]


def test_what_is_written(cli: Any, home: Path) -> None:
    fill(home)
    ran = cli("connect", "claude-code")
    assert ran.code == 0, ran.err
    settings = json.loads((home / ".claude/settings.json").read_text())
    assert (settings["model"], settings["größe"]) == ("opus", 1.5)
    assert set(EVENTS) <= set(settings["hooks"])
    assert settings["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"
    command = settings["hooks"]["Stop"][1]["hooks"][0]["command"]
    assert command.startswith(f"{sys.executable} -EP -m affidavit hook claude-code")
    assert settings["hooks"]["PreToolUse"][0]["matcher"] == "*"
    servers = json.loads((home / ".claude.json").read_text())
    assert servers["numStartups"] == 3
    assert set(servers["mcpServers"]) == {"other", "affidavit"}
    assert Path(servers["mcpServers"]["affidavit"]["command"]).is_absolute()
    lines = (home / ".claude/CLAUDE.md").read_text()
    assert lines == f"{LINES_BEFORE}\n\n{LINES}"
    assert LINES.count("\n") <= 6
    assert "+++" in ran.out
    assert "are kept, secrets removed, erasable" in ran.out
    assert "to refuse: --payloads hash" in ran.out
    assert cli("settings", "--json").data["settings"]["payloads"] == "keep"


def have_client(home: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    """A `claude` on the path that answers with its version, as the real one does."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "claude").write_text(f"#!/bin/sh\n{says}\n")
    (folder / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("says", "is_whole"),
    [
        ("echo '2.1.101 (Claude Code)'", True),
        ("echo '2.1.100 (Claude Code)'", False),
        ("echo '2.0.30 (Claude Code)'", False),
        ("exit 1", True),
        ("echo nothing of a version", True),
    ],
)
def test_a_client_that_ignores_settings_with_new_events_is_asked_for_those_it_knows(
    cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch, says: str, *, is_whole: bool
) -> None:
    """Seen with 2.0.30, 2.1.0, 2.1.40 and 2.1.100: one unknown name, and no hook runs at all."""
    have_client(home, monkeypatch, says)
    ran = cli("connect", "claude-code")
    assert (set(hooks_of(home)) == set(EVENTS)) == is_whole
    assert ("failures, refusals" in ran.out) != is_whole
    assert {"PreToolUse", "PostToolUse", "Stop", "SessionEnd"} <= set(hooks_of(home))
    if not is_whole:
        assert {"PostToolBatch", "PostToolUseFailure"} & set(hooks_of(home)) == set()
        have_client(home, monkeypatch, "echo '2.1.197 (Claude Code)'")
        cli("connect", "claude-code")
        assert set(hooks_of(home)) == set(EVENTS)


def test_doctor_tells_of_a_client_that_ignores_the_settings(
    cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_client(home, monkeypatch, "echo '2.1.197 (Claude Code)'")
    cli("connect", "claude-code")
    assert cli("doctor").code == 0
    have_client(home, monkeypatch, "echo '2.1.90 (Claude Code)'")
    ran = cli("doctor")
    assert "Claude Code 2.1.90 may ignore all of" in ran.out + ran.err
    assert ran.code != 0


def test_doctor_greets_the_server_that_the_agent_records_with(cli: Any, home: Path) -> None:
    cli("connect", "claude-code")
    assert "the MCP server answers" in cli("doctor").out
    servers = home / ".claude.json"
    kept = json.loads(servers.read_text())
    entry = kept["mcpServers"]["affidavit"]
    broken = (
        ({**entry, "command": "/no/such/python"}, "cannot be started"),
        ({**entry, "args": [*entry["args"], "--what"]}, "does not answer"),
    )
    for other, said in broken:
        servers.write_text(json.dumps({"mcpServers": {"affidavit": other}}))
        ran = cli("doctor")
        assert (said in ran.out + ran.err, ran.code != 0) == (True, True)
    servers.write_text("{}")
    assert "has no MCP server to record with" in cli("doctor").out
    cli("connect", "claude-code")
    assert cli("doctor").code == 0


@pytest.mark.parametrize("filled", [True, False])
def test_twice_changes_nothing_and_back_restores_every_byte(
    cli: Any, home: Path, *, filled: bool
) -> None:
    if filled:
        fill(home)
    before = files_of(home)
    cli("connect", "claude-code")
    connected = files_of(home)
    assert connected != before
    again = cli("connect", "claude-code", "--json").data
    assert again["changed"] == []
    assert files_of(home) == connected
    assert cli("disconnect", "claude-code").code == 0
    assert files_of(home) == before
    assert cli("disconnect", "claude-code", "--json").data["changed"] == []


def test_a_file_that_was_changed_since_loses_only_what_is_ours(cli: Any, home: Path) -> None:
    fill(home)
    cli("connect", "claude-code")
    servers = json.loads((home / ".claude.json").read_text()) | {"numStartups": 4}
    (home / ".claude.json").write_text(json.dumps(servers))
    settings = (home / ".claude/settings.json").read_text().replace('"opus"', '"sonnet"')
    (home / ".claude/settings.json").write_text(settings)
    with (home / ".claude/CLAUDE.md").open("a") as file:
        file.write("Mine again.\n")
    cli("disconnect", "claude-code")
    assert json.loads((home / ".claude.json").read_text()) == {
        "numStartups": 4, "mcpServers": {"other": {"command": "x"}},
    }  # fmt: skip
    after = json.loads((home / ".claude/settings.json").read_text())
    hooks = {"Stop": json.loads(SETTINGS)["hooks"]["Stop"]}
    assert after == json.loads(SETTINGS) | {"model": "sonnet", "hooks": hooks}
    assert (home / ".claude/CLAUDE.md").read_text() == f"{LINES_BEFORE}\nMine again.\n"


def test_connected_again_from_another_interpreter_and_then_undone(
    cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    before = files_of(home)
    cli("connect", "claude-code")
    where = str(home / "other.db")
    cli("connect", "claude-code", "--ledger", where)
    command = hooks_of(home)["SessionStart"][0]["hooks"][0]["command"]
    assert command.endswith(f"--ledger {where}")
    assert len(hooks_of(home)["Stop"]) == 2
    cli("disconnect", "claude-code")
    assert files_of(home) == before


def test_a_dry_run_writes_nothing(cli: Any, home: Path) -> None:
    fill(home)
    before = set(home.rglob("*"))
    kept = files_of(home)
    ran = cli("connect", "claude-code", "--dry-run", "--payloads", "hash")
    assert "would change" in ran.out
    assert "only digests" in ran.out
    assert files_of(home) == kept
    assert set(home.rglob("*")) == before


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"hooks": 7}',
        '{"hooks": {"Stop": [1]}}',
        '{"a": 1, "a": 2}',
        "\ufeff{}",
        b"\xff",
    ],
)
def test_settings_that_cannot_be_understood_are_left_as_they_are(
    cli: Any, home: Path, text: str | bytes
) -> None:
    fill(home)
    data = text if isinstance(text, bytes) else text.encode()
    (home / ".claude/settings.json").write_bytes(data)
    before = files_of(home)
    ran = cli("connect", "claude-code")
    assert ran.code == 2
    assert "settings.json is left as it is" in ran.err
    assert files_of(home) == before


def test_a_project_has_files_of_its_own(cli: Any, home: Path) -> None:
    cli("connect", "claude-code", "--project", "--payloads", "hash")
    assert (home / ".mcp.json").exists()
    assert (home / "CLAUDE.md").read_text() == LINES
    assert not (home / ".claude.json").exists()
    assert cli("settings", "--json").data["settings"]["payloads"] == "hash"
    cli("disconnect", "claude-code", "--project")
    assert not (home / ".mcp.json").exists()


@pytest.mark.parametrize("times", [1, 2])
def test_a_folder_that_was_made_goes_again_when_nothing_else_is_in_it(
    cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    project, used = home / "project", home / "used"
    for folder in (project, used):
        folder.mkdir()
        monkeypatch.chdir(folder)
        for number in range(times):
            cli("connect", "claude-code", "--project", *(["--gate"] if number else []))
    (used / ".claude/settings.local.json").write_text("{}")
    for folder in (project, used):
        monkeypatch.chdir(folder)
        cli("disconnect", "claude-code", "--project")
    assert [*project.iterdir()] == []
    assert [path.name for path in (used / ".claude").iterdir()] == ["settings.local.json"]
    cli("connect", "claude-code")
    cli("disconnect", "claude-code")
    assert [*(home / ".claude").iterdir()] == []


def test_who_is_connected_twice_with_other_options_is_told(
    cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = home / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert "recorded twice" not in cli("connect", "claude-code").out
    assert "recorded twice" not in cli("connect", "claude-code", "--project").out
    told = cli("connect", "claude-code", "--project", "--gate").out
    assert f"recorded twice: {home}/.claude/settings.json" in told
    assert f"recorded twice: {project}/.claude/settings.json" in cli("connect", "claude-code").out
    assert "recorded twice" not in cli("connect", "claude-code", "--gate").out
    (home / ".claude/settings.json").write_text('{"hooks": 7}')
    assert "recorded twice" not in cli("connect", "claude-code", "--project").out
    assert "recorded twice" not in cli("disconnect", "claude-code", "--project").out


def test_a_link_stays_a_link_and_rights_stay_rights(cli: Any, home: Path) -> None:
    fill(home)
    real = home / "dotfiles.json"
    (home / ".claude/settings.json").rename(real)
    real.chmod(0o640)
    (home / ".claude/settings.json").symlink_to(real)
    cli("connect", "claude-code")
    assert (home / ".claude/settings.json").is_symlink()
    assert "affidavit" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_doctor_sends_an_event_the_whole_way(cli: Any, home: Path) -> None:
    cli("connect", "claude-code")
    checks = {one["name"]: one for one in cli("doctor", "--json").data["checks"]}
    assert checks["hooks"]["status"] == "ok"
    assert "went the whole way" in checks["hooks"]["message"]
    settings = home / ".claude/settings.json"
    settings.write_text(settings.read_text().replace(sys.executable, "/no/python"))
    checks = {one["name"]: one for one in cli("doctor", "--json").data["checks"]}
    assert checks["hooks"]["status"] == "fail"


def test_what_is_connected_is_recorded(cli: Any, home: Path, path: str) -> None:
    cli("connect", "claude-code")
    command = hooks_of(home)["SessionStart"][0]["hooks"][0]["command"]
    says = b'{"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}'
    subprocess.run(command, shell=True, input=says, check=True, timeout=60)
    assert drain(path, open_spool(path), wait_s=30) is not None
    assert [one["state"] for one in cli("session", "list", "--json").data["sessions"]] == ["open"]


def test_the_gate_is_at_the_two_events_that_end_something(cli: Any, home: Path) -> None:
    cli("connect", "claude-code", "--gate")
    gated = {
        name for name, groups in hooks_of(home).items()
        if groups[-1]["hooks"][0]["command"].endswith(" --gate")
    }  # fmt: skip
    assert gated == {"Stop", "TaskCompleted"}
    cli("connect", "claude-code")
    assert "--gate" not in (home / ".claude/settings.json").read_text()


def test_connected_with_a_server_of_another_user_an_event_goes_the_whole_way(
    cli: Any, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    before = files_of(home)
    ledger = str(tmp_path / "theirs.db")
    place = Path(tempfile.mkdtemp(prefix="aff-")) / "hooks"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    ran = cli("connect", "claude-code", "--to", str(place), "--url", url)
    assert ran.code == 0, ran.err
    assert f"What is stored, whoever serves {place} decides." in ran.out
    command = hooks_of(home)["Stop"][1]["hooks"][0]["command"]
    assert command.endswith(f" --to {place}")
    servers = json.loads((home / ".claude.json").read_text())["mcpServers"]
    assert servers["affidavit"] == {"type": "http", "url": url}
    assert not Path(places.ledger_path()).exists()
    affidavit.open(ledger).close()
    with monkeypatch.context() as hurry:
        hurry.setattr(probing, "_WAIT_S", 1.0)
        broken = probe(ledger)
    assert (broken.is_broken, "did not" in broken.trouble) == (True, True)
    with HooksReceived(ledger, place, [os.getuid()], print):
        unheard = probe(ledger)
    assert (unheard.is_broken, f"the MCP server at {url}" in unheard.trouble) == (True, True)
    words = ("--hooks", str(place), "--allow", str(os.getuid()), "--port", str(port))
    with serving(ledger, *words, log=tmp_path / "log"):
        asked = cli("doctor", "--json")
        assert asked.code == 0
        assert [one["name"] for one in asked.data["checks"]] == ["hooks"]
        goal = find_goal(["--to", str(place)])
        goal.spool.keep(odd := f"{1:020d}-x", b"{}", b"{}")
        until = time.monotonic() + 30
        while "1 events were laid aside" not in probe(ledger).trouble:
            assert time.monotonic() < until, goal.spool.last_note()
        (goal.spool.folder / "refused" / odd).unlink()
        assert probe(ledger).said == (
            "Claude Code is connected; an event went the whole way, the MCP server answers"
        )
        says = b'{"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}'
        subprocess.run(command, shell=True, input=says, check=True, timeout=60)
        until = time.monotonic() + 30
        while goal.spool.names():
            assert time.monotonic() < until, goal.spool.last_note()
            time.sleep(0.05)
    with affidavit.open(ledger, readonly=True) as opened:
        assert [one.state for one in opened.list_sessions()] == ["open"]
    cli("disconnect", "claude-code")
    assert files_of(home) == before
    shutil.rmtree(place.parent)


@pytest.mark.parametrize(
    "words", [("--url", "u"), ("--to", "x", "--gate"), ("--to", "x", "--payloads", "hash"),
              ("--to", "x", "--ledger", "l")],
)  # fmt: skip
def test_what_only_the_ledgers_owner_can_say_is_refused(
    cli: Any, home: Path, words: tuple[str, ...]
) -> None:
    fill(home)
    before = files_of(home)
    assert cli("connect", "claude-code", *words).code == 2
    assert files_of(home) == before
