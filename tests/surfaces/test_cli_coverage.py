"""`affidavit coverage`: nothing happened is not nothing was recorded."""

from __future__ import annotations

import json
from typing import Any

import affidavit
from affidavit.apps.hook import open_spool
from affidavit.apps.hook_drain import drain
from surfaces.hook_events import DAY, call, event


def told(cli: Any, session_id: str) -> Any:
    return cli("coverage", session_id, "--json").data


def test_a_session_that_hooks_recorded(cli: Any, path: str) -> None:
    cli("init")
    spool = open_spool(path)
    open_call = call("PreToolUse", "Bash", "toolu_open", {"command": "sleep 9"})
    for says in (*DAY[:-1], open_call, event("SessionEnd", reason="other")):
        spool.put(b"{}", json.dumps(says).encode())
    spool.put(b"{}", b"no event")
    assert drain(path, spool) is not None
    with affidavit.open(path, readonly=True) as ledger:
        [session] = ledger.list_sessions()
        size = len(ledger.list_entries(session_id=session.session_id))
    found = told(cli, session.session_id)
    [hook] = found["channels"]
    assert (hook["channel"], hook["source"], hook["whole_ledger"]) == ("hook", "claude-code", False)
    assert hook["from"] <= hook["to"]
    assert hook["count"] == size - 2
    assert found["facts"] == {"hook": size}
    assert found["not_on"] == ["proxy", "otlp", "import"]
    assert (found["tool_calls"], found["unfinished_tool_calls"]) == (7, 1)
    assert found["linked"] == [f"claude-code {DAY[0]['session_id']}"]
    out = cli("coverage", session.session_id).out
    assert "on from" in out
    assert "1 tool call of 7" in out


def test_a_session_that_nothing_recorded_but_words(cli: Any, path: str) -> None:
    session_id = cli("session", "start", "--intent", "by hand", "--json").data["session_id"]
    found = told(cli, session_id)
    assert found["channels"] == []
    assert found["not_on"] == ["hook", "proxy", "otlp", "import"]
    assert "hook, proxy, otlp, import: what only these see was not recorded" in cli(
        "coverage", session_id
    ).out.replace("\n", " ")


def test_what_was_lost_meanwhile_is_told(cli: Any, path: str) -> None:
    session_id = cli("session", "start", "--intent", "by hand", "--json").data["session_id"]
    with affidavit.open(path) as ledger:
        begun_ms = ledger.get_session(session_id).at // 1_000
        ledger.note_dropped("hook", 2, begun_ms - 10, begun_ms - 5)
        ledger.note_dropped("hook", 3, begun_ms - 10, begun_ms + 5)
        ledger.start_capture("proxy", "server")
    found = told(cli, session_id)
    assert [lost["count"] for lost in found["dropped"]] == [3]
    assert "3 events of hook" in cli("coverage", session_id).out


def test_a_session_that_is_not_there(cli: Any, path: str) -> None:
    cli("init")
    assert cli("coverage", "nobody", "--json").error["code"] == "ERR_SESSION_NOT_FOUND"
