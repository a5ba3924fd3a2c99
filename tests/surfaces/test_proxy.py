"""`affidavit proxy`: bytes pass as they are, and a tool call is recorded once, whoever saw it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit.apps.hook_drain import drain
from affidavit.apps.web.rendering import link
from affidavit.capture.claude_names import SOURCE, request_id_of
from affidavit.capture.proxy.facts import PROXY
from affidavit.capture.sightings import channels_of
from surfaces.claude_events import RUN, START, seen, stop, used
from surfaces.hook_desk import Desk
from surfaces.serving import serving
from surfaces.test_run_of_client import HELLO, environment

SHOP = [sys.executable, str(Path(__file__).with_name("mcp_shop.py"))]
ASKED = {"query": "wörk 🦉", "n": 2}


class Line:
    """A client and its server, with the proxy between them."""

    def __init__(self, path: str, *command: str, run: str | None = RUN) -> None:
        proxy = [sys.executable, "-m", "affidavit", "--ledger", path, "proxy", "--name", "shop"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*proxy, "--", *(command or SHOP)],
            stdin=pipe, stdout=pipe, stderr=pipe, env=environment(run),
        )  # fmt: skip
        self._next = 0

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def ask(self, method: str, params: Any) -> Any:
        self._next += 1
        told = {"method": method, "params": params, "jsonrpc": "2.0", "id": self._next}
        self.send(json.dumps(told).encode() + b"\n")
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, tool: str, given: Any, call_id: str | None = None) -> Any:
        meta = {} if call_id is None else {"_meta": {"claudecode/toolUseId": call_id}}
        return self.ask("tools/call", {"name": tool, "arguments": given, **meta})

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(30)

    def hang_up(self) -> None:
        self.process.kill()
        self.process.wait(30)
        for end in (self.process.stdin, self.process.stdout, self.process.stderr):
            if end is not None:
                with contextlib.suppress(BrokenPipeError):
                    end.close()


@pytest.fixture
def dial(desk: Desk) -> Iterator[Callable[..., Line]]:
    """Starts a proxy with its server; all of them are gone when the test ends."""
    made: list[Line] = []

    def one(*command: str, run: str | None = RUN) -> Line:
        made.append(Line(desk.path, *command, run=run))
        return made[-1]

    yield one
    for line in made:
        line.hang_up()


@pytest.fixture
def line(dial: Callable[..., Line]) -> Line:
    made = dial()
    made.ask("initialize", HELLO)
    return made


def settled(desk: Desk) -> Any:
    assert drain(desk.path, desk.spool, wait_s=30) is not None
    return affidavit.open(desk.path, readonly=True)


def the_call(ledger: Any, id_: str) -> Any:
    return ledger.get_tool_call(request_id_of(id_), id_)


def test_a_call_seen_by_hook_and_proxy_is_one_call_with_two_sources(
    desk: Desk, line: Line, cli: Any, tmp_path: Path
) -> None:
    tool = "mcp__shop__find"
    desk.take(START, used("PreToolUse", tool, "toolu_1", ASKED)).close()
    line.call("find", ASKED, "toolu_1")
    assert line.close() == 0
    answered = used("PostToolUse", tool, "toolu_1", ASKED, tool_response=[{"type": "text"}])
    settled(desk).close()
    with desk.take(answered, stop("Ok.")) as ledger:
        [(asked, done)] = ledger.list_tool_calls()
        assert (asked.tool_name, asked.actor, done.status) == (tool, "claude-code", "completed")
        assert channels_of(ledger, asked.request_id, "toolu_1") == ("hook", "proxy")
        [session] = ledger.list_sessions()
        assert {one.channel for one in ledger.list_captures(session.session_id)} == {
            "hook",
            "proxy",
        }
        [told] = [step for step in ledger.tell_story(session.session_id) if step.call]
        assert (told.call.sources, told.marks) == (("hook", "proxy"), ())
    shown = cli("--ledger", desk.path, "show", session.session_id).out
    assert shown.count(f"{tool}: completed") == 1
    assert "(hook, proxy)" in shown
    with serving(desk.path, log=tmp_path / "log") as server:
        page = server.get(link("session", id=session.session_id)).text
    assert f"{tool} seen by proxy too" in page
    assert "seen · hook, proxy" in page
    covered = cli("--ledger", desk.path, "coverage", session.session_id).out
    assert "1 tool call" in covered.split("seen twice")[1].splitlines()[0]
    assert "0 tool calls of 1" in covered


def test_two_who_saw_other_arguments_are_disputed(desk: Desk, line: Line) -> None:
    desk.take(START, used("PreToolUse", "mcp__shop__find", "toolu_1", {"query": "a"})).close()
    line.call("find", {"query": "b"}, "toolu_1")
    line.close()
    with settled(desk) as ledger:
        [session] = ledger.list_sessions()
        [told] = [step for step in ledger.tell_story(session.session_id) if step.call]
        assert [mark.code for mark in told.marks] == ["disputed"]
        assert "hook and proxy saw other arguments" in told.marks[0].said


def test_what_only_the_proxy_saw(desk: Desk, dial: Any) -> None:
    line = dial(run=None)
    line.ask("initialize", HELLO)
    assert line.call("find", ASKED)["result"]["content"][0]["text"] == json.dumps(ASKED)
    line.call("fail", {})
    line.call("nothing", None)
    assert len(line.call("long", {})["result"]["content"][0]["text"]) == 3_000_000
    assert line.close() == 0
    with settled(desk) as ledger:
        [session] = ledger.list_sessions()
        assert (session.state, session.caller) == ("ended", "claude-code/2.1.197")
        assert [link.source for link in ledger.list_links(session.session_id)] == [PROXY]
        pairs = ledger.list_tool_calls(session_id=session.session_id)
        ends = {asked.tool_name: (done.status, done.error_kind) for asked, done in pairs}
        assert ends == {
            "mcp__shop__find": ("completed", None),
            "mcp__shop__fail": ("failed", "tool_error"),
            "mcp__shop__nothing": ("failed", "rpc_error"),
            "mcp__shop__long": ("completed", None),
        }
        vias = {entry.via for entry in ledger.list_entries(session_id=session.session_id)}
        assert vias == {"proxy"}
        assert ledger.list_dropped() == []


def test_every_byte_passes_as_it_is(desk: Desk, dial: Any) -> None:
    echo = "import os\nwhile d := os.read(0, 65536): os.write(1, d)"
    line = dial(sys.executable, "-c", echo)
    odd = (
        b'{"jsonrpc":"2.0",  "id":7,"method":"tools/call",'
        b'"params":{"name":"x","arguments":{"n":1.50}}}\r\n'
        b'\xff\x00 no JSON "tools/call"\n\n[]\n{}\n'
        b'[{"id":true,"method":"tools/call","params":{}},'
        b'{"id":8,"method":"tools/call","params":[]}]\n'
         b'{"deep":' + b"[" * 100_000 + b' "tools/call"\n'
        + b"x" * 1_000_000 + b"\n" + b"no end"
    )  # fmt: skip
    out, err = line.process.communicate(odd, timeout=60)
    assert out == odd
    assert (err, line.process.returncode) == (b"", 0)
    with settled(desk) as ledger:
        assert len(ledger.list_tool_calls()) == 1


def test_the_last_line_needs_no_end(desk: Desk, dial: Any) -> None:
    line = dial()
    told = {"id": 1, "method": "tools/call", "params": {"name": "find", "arguments": ASKED}}
    out, _ = line.process.communicate(json.dumps(told).encode(), timeout=30)
    assert b"result" in out
    with settled(desk) as ledger:
        [(_, done)] = ledger.list_tool_calls()
        assert done.status == "completed"


def test_what_cannot_be_read_is_counted(desk: Desk, dial: Any) -> None:
    line = dial(sys.executable, "-c", "import os\nwhile os.read(0, 65536): pass")
    deep = b'{"id":1,"method":"tools/call","params":' + b"[" * 9_000 + b"]" * 9_000 + b"}\n"
    line.process.communicate(deep, timeout=30)
    with settled(desk) as ledger:
        assert [(lost.channel, lost.count) for lost in ledger.list_dropped()] == [("proxy", 1)]


def test_the_servers_exit_code_and_its_absence(dial: Any) -> None:
    line = dial(*SHOP, "3")
    assert line.close() == 3
    line = dial("/no/such/server")
    _, err = line.process.communicate(timeout=30)
    assert line.process.returncode == 127
    assert b"cannot be started" in err


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_connection_that_breaks_off(desk: Desk, line: Line, how: signal.Signals) -> None:
    line.call("find", ASKED, "toolu_1")
    told = {"name": "sleep", "arguments": {}, "_meta": {"claudecode/toolUseId": "toolu_2"}}
    line.send(json.dumps({"id": 9, "method": "tools/call", "params": told}).encode() + b"\n")
    wait_until(lambda: has_asked(desk, "toolu_2"))
    line.process.send_signal(how)
    line.process.wait(30)
    with settled(desk) as ledger:
        assert the_call(ledger, "toolu_1")[1].status == "completed"
        done = the_call(ledger, "toolu_2")[1]
        # Whoever is killed at once cannot say that nobody will answer; the turn's end will.
        assert (None if done is None else done.error_kind) == (
            "orphaned" if how == signal.SIGTERM else None
        )
    over = seen("SessionEnd", reason="other")
    with desk.take(START, over) as ledger:
        assert the_call(ledger, "toolu_2")[1].error_kind == "orphaned"


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def has_asked(desk: Desk, id_: str) -> bool:
    with affidavit.open(desk.path, readonly=True) as ledger:
        return the_call(ledger, id_) is not None


def test_what_a_proxy_could_not_keep_before_its_end_is_counted_later(
    desk: Desk, line: Line
) -> None:
    events = desk.spool.folder / "events"
    line.call("find", ASKED, "toolu_1")
    until = time.monotonic() + 20
    while time.monotonic() < until and not has_asked(desk, "toolu_1"):
        time.sleep(0.05)
    settled(desk).close()
    events.rename(events.with_name("away"))
    events.write_text("no folder")
    assert "result" in line.call("find", ASKED, "toolu_2")
    assert line.close() == 0
    events.unlink()
    events.with_name("away").rename(events)
    for _ in range(2):
        with settled(desk) as ledger:
            # What was asked, what was answered, and that the connection ended.
            assert [(lost.channel, lost.count) for lost in ledger.list_dropped()] == [("proxy", 3)]


def test_our_own_server_is_not_recorded_twice(desk: Desk, dial: Any) -> None:
    own = [sys.executable, "-m", "affidavit", "--ledger", desk.path, "mcp"]
    line = dial(*own)
    line.ask("initialize", HELLO)
    said = {"type": "plan", "task_id": "t", "agent_id": "a", "content": "x"}
    assert line.call("thought_record", said, "toolu_1")["result"]["isError"] is False
    assert line.close() == 0
    with settled(desk) as ledger:
        assert ledger.list_tool_calls() == []
        assert len(ledger.list_thoughts(task_id="t")) == 1


def test_a_spool_that_cannot_be_written_stops_nothing_and_is_counted(
    desk: Desk, line: Line
) -> None:
    events = desk.spool.folder / "events"
    line.call("find", ASKED, "toolu_1")
    wait_until(lambda: has_asked(desk, "toolu_1"))
    settled(desk).close()
    events.rename(events.with_name("away"))
    events.write_text("no folder")
    assert "result" in line.call("find", ASKED, "toolu_2")
    notes = desk.spool.folder / "hooks.log"
    wait_until(lambda: notes.exists() and notes.read_text().count(" proxy: ") == 2)
    events.unlink()
    events.with_name("away").rename(events)
    line.call("find", ASKED, "toolu_3")
    assert line.close() == 0
    with settled(desk) as ledger:
        assert the_call(ledger, "toolu_2") is None
        assert the_call(ledger, "toolu_3")[1].status == "completed"
        assert sum(lost.count for lost in ledger.list_dropped()) == 2
        assert ledger.find_linked(SOURCE, RUN) is not None
    assert os.path.isdir(events)
