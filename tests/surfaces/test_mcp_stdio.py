"""`affidavit mcp` as a process: how it starts and ends, bad lines, and six on one ledger."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import affidavit
from surfaces.mcp_clients import data, error, parameters, run

SAID = {"type": "plan", "task_id": "t1", "agent_id": "a1", "content": "because"}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Wire:
    """The server's two ends, spoken to line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._next = 0

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> int:
        self._next += 1
        request = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self.send(json.dumps(request).encode())
        return self._next

    def answer(self, number: int | str) -> Any:
        """The answer to a request; every line on the way is a message of the protocol."""
        assert self.process.stdout is not None
        while True:
            message = json.loads(self.process.stdout.readline())
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return message

    def call(self, tool: str, **given: Any) -> Any:
        return self.answer(self.ask("tools/call", name=tool, arguments=given))["result"]

    def open(self) -> Wire:
        self.answer(self.ask("initialize", **HELLO))
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return self


def start(ledger: str, *words: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "affidavit", "--ledger", ledger, "mcp", *words]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.fixture
def wire(path: str) -> Iterator[Wire]:
    process = start(path)
    yield Wire(process).open()
    with contextlib.suppress(BrokenPipeError):
        process.communicate(timeout=20)
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.verify().valid


def answered_within_two_seconds(wire: Wire) -> None:
    began = time.monotonic()
    assert wire.call("server_health")["structuredContent"]["data"]["status"] == "ok"
    assert time.monotonic() - began < 2


def test_bad_lines_and_methods_are_survived(wire: Wire) -> None:
    for line in (
        b"this is no json",
        b"{",
        b'{"jsonrpc":"2.0"}',
        b"[]",
        b"\xff\xfe\x00",
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call"}',
        b"[" * 100_000,
        b'{"jsonrpc":"1.0","id":900,"method":"ping"}',
    ):
        wire.send(line)
        answered_within_two_seconds(wire)
    assert wire.answer(wire.ask("no/such/method"))["error"]["code"] == -32601
    assert wire.answer(wire.ask("tools/call", name=7))["error"]["code"] == -32602
    assert wire.answer(wire.ask("tools/call", name="no_such_tool"))["error"]["code"] == -32602
    answered_within_two_seconds(wire)


@pytest.mark.parametrize("content", [rb'"\ud83d"', b"[" * 300 + b"]" * 300])
def test_a_call_that_is_no_json_to_the_server_is_refused_by_its_id(
    wire: Wire, content: bytes
) -> None:
    """JavaScript writes half of a pair so: a client that got no answer would wait for ever."""
    said = b'"name":"thought_record","arguments":{"content":' + content + b"}"
    wire.send(b'{"method":"tools/call","params":{' + said + b'},"jsonrpc":"2.0","id":"mine"}')
    refusal = wire.answer("mine")["error"]
    assert refusal["code"] == -32700
    assert refusal["message"].startswith("Parse error: Invalid JSON: ")
    answered_within_two_seconds(wire)


def test_arguments_of_five_megabytes_are_answered(wire: Wire, path: str) -> None:
    content = "x" * 5_000_000
    result = wire.call("thought_record", **{**SAID, "content": content})
    assert result["structuredContent"]["data"]["truncated"] is True
    result = wire.call("thought_record", **{**SAID, "task_id": content})
    assert result["structuredContent"]["error"]["code"] == "ERR_TOO_LARGE"
    result = wire.call("thought_record", **SAID, surprise=content)
    assert result["structuredContent"]["error"]["code"] == "INVALID_PARAMS"
    assert len(json.dumps(result)) < 70_000
    answered_within_two_seconds(wire)
    with affidavit.open(path, readonly=True) as ledger:
        assert [one.content for one in ledger.list_thoughts()] == [content]


def test_a_cancelled_call_holds_nobody_up(wire: Wire, path: str) -> None:
    with affidavit.open(path) as ledger:
        ledger.record_thoughts([SAID] * 5_000)
    for _ in range(5):
        number = wire.ask("tools/call", name="audit_verify_chain", arguments={})
        cancel = {"method": "notifications/cancelled", "params": {"requestId": number}}
        wire.send(json.dumps({"jsonrpc": "2.0", **cancel}).encode())
    answered_within_two_seconds(wire)
    assert wire.call("thought_record", **SAID)["structuredContent"]["ok"] is True


def test_what_was_asked_before_the_end_of_input_is_still_answered(wire: Wire, path: str) -> None:
    numbers = [wire.ask("tools/call", name="thought_record", arguments=SAID) for _ in range(20)]
    out, err = wire.process.communicate(timeout=20)
    answers = {message["id"]: message for message in map(json.loads, out.splitlines())}
    assert all(answers[number]["result"]["structuredContent"]["ok"] for number in numbers)
    assert (wire.process.returncode, err) == (0, b"")
    with affidavit.open(path, readonly=True) as ledger:
        assert len(ledger.list_thoughts()) == 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(wire: Wire, path: str, number: int) -> None:
    wire.call("thought_record", **SAID)
    wire.call("thought_record_list")
    wire.process.send_signal(number)
    assert wire.process.wait(timeout=5) == 0
    assert not Path(path + "-wal").exists()
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.verify().checked["calls"] == 2


def test_a_client_that_takes_no_answers_does_not_keep_the_server_from_ending(path: str) -> None:
    wires = [Wire(start(path)).open() for _ in range(2)]
    long = {**SAID, "content": "x" * 9_000}
    for wire in wires:
        for _ in range(20):
            wire.ask("tools/call", name="thought_record", arguments=long)
    wires[0].process.terminate()
    assert wires[1].process.stdin is not None
    wires[1].process.stdin.close()
    for wire in wires:
        with wire.process as process:
            assert process.wait(timeout=20) == 0
            assert process.stderr is not None
            assert process.stderr.read() == b""
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.verify().valid


def test_a_client_that_vanishes_in_a_call_leaves_a_whole_ledger(path: str) -> None:
    process = start(path)
    wire = Wire(process).open()
    wire.ask("tools/call", name="thought_record", arguments={**SAID, "content": "x" * 1_000_000})
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.close()
    assert process.stderr is not None
    assert (process.wait(timeout=10), process.stderr.read()) == (0, b"")
    with affidavit.open(path) as ledger:
        assert ledger.verify().valid
        assert ledger.record_thought(**SAID).content == "because"
    process.stderr.close()


def test_a_client_that_vanishes_from_a_pair_of_sockets_is_no_fault_either(path: str) -> None:
    """Node gives its children sockets: one closed with answers unread resets the connection."""
    mine, theirs = socket.socketpair()
    command = [sys.executable, "-m", "affidavit", "--ledger", path, "mcp"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as process:
        theirs.close()
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        mine.sendall(json.dumps(hello).encode() + b"\n")
        assert mine.recv(10)
        mine.close()
        assert process.wait(timeout=20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_client_that_comes_back_goes_on_with_its_session(path: str) -> None:
    first = Wire(start(path)).open()
    session = first.call("audit_session_start", intent="x")["structuredContent"]["data"]
    first.process.communicate(timeout=20)
    again = Wire(start(path)).open()
    result = again.call("thought_record", **SAID, session_id=session["session_id"])
    assert result["structuredContent"]["data"]["session_seq"] == 0
    again.process.communicate(timeout=20)


@pytest.mark.parametrize(
    ("words", "make", "code", "says"),
    [
        (["--no-create"], None, 4, b"affidavit init"),
        (["--mode", "readonly"], None, 4, b""),
        ([], b"To whom it may concern\n" * 500, 4, b"is not a ledger"),
        (["--tools", "core,nonsense"], None, 2, b"there is no tool 'nonsense'"),
    ],
)
def test_what_cannot_be_served_is_said_on_stderr_alone(
    path: str, words: list[str], make: bytes | None, code: int, says: bytes
) -> None:
    if make is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(make)
    process = start(path, *words)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (code, b"")
    assert err.startswith(b"affidavit: ")
    assert b"hint: " in err
    assert says in err
    if make is None:
        assert not Path(path).exists()
    else:
        Path(path).unlink()


def test_readonly_leaves_every_byte_as_it_was(path: str) -> None:
    with affidavit.open(path) as ledger:
        ledger.record_thought(**SAID)
    before = sha256(Path(path).read_bytes()).hexdigest()
    wire = Wire(start(path, "--mode", "readonly", "--tools", "all")).open()
    listed = wire.answer(wire.ask("tools/list"))["result"]["tools"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed)
    for tool in ("thought_record_list", "audit_verify_chain", "task_list", "server_health"):
        assert wire.call(tool)["structuredContent"]["ok"] is True
    refused = wire.answer(wire.ask("tools/call", name="thought_record", arguments=SAID))
    assert refused["error"]["code"] == -32602
    wire.process.communicate(timeout=20)
    assert sha256(Path(path).read_bytes()).hexdigest() == before


def test_six_servers_with_twenty_calls_at_once_each(path: str) -> None:
    affidavit.open(path).close()

    async def window(number: int) -> list[Any]:
        async with Client(parameters(path)) as client:
            await client.list_tools()
            session = data(await client.call_tool("audit_session_start", {"intent": f"w{number}"}))
            bound = {**SAID, "session_id": session["session_id"], "agent_id": f"w{number}"}
            calls: list[tuple[str, dict[str, Any]]] = [
                *[("thought_record", {**bound, "task_id": f"t{step % 3}"}) for step in range(8)],
                *[("task_create", {"title": f"{number}-{step}"}) for step in range(4)],
                *[("thought_record_list", {"limit": 5}), ("task_list", {})] * 2,
                *[("audit_verify_chain", {}), ("task_next_actions", {}), ("server_health", {})],
                ("audit_session_start", {"intent": "another"}),
            ]
            assert len(calls) == 20
            answers = await asyncio.gather(*(client.call_tool(*one) for one in calls))
            sealed = await client.call_tool(
                "merkle_finalize", {"session_id": session["session_id"]}
            )
            return [*answers, sealed]

    async def work() -> list[list[Any]]:
        return list(await asyncio.gather(*map(window, range(6))))

    for answers in run(work):
        assert all(answer.structured_content["ok"] for answer in answers)
        assert data(answers[-1])["record_count"] == 8
    with affidavit.open(path, readonly=True) as ledger:
        report = ledger.verify()
        records = Counter(one.task_id for one in ledger.list_thoughts())
        linked = {one.prev_hash for one in ledger.list_thoughts()}
    assert report.valid
    assert report.checked["thoughts"] == 48
    assert len(linked) == 48 - len(records) + 1  # nothing forks: only first records share zeros
    assert report.checked["calls"] == 6 * (1 + 20 - 1 + 1)


def test_help_is_quick_and_loads_no_server(path: str) -> None:
    code = (
        "import sys; from affidavit.apps.cli.main import main; main(['--help']);"
        "assert not {'mcp', 'pydantic', 'starlette', 'msgspec'} & set(sys.modules)"
    )
    env = {**os.environ, "AFFIDAVIT_LEDGER": path}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=env)


def test_the_words_of_the_command_line_are_those_of_the_server() -> None:
    from affidavit.apps.cli import parsing
    from affidavit.apps.mcp.tools import MODES

    assert parsing.MODES == MODES


def test_refusals_over_the_wire_are_errors_of_the_tool(path: str) -> None:
    async def work() -> Any:
        async with Client(parameters(path)) as client:
            return await client.call_tool("merkle_root", {"session_id": "nowhere"})

    assert error(run(work))["code"] == "ERR_SESSION_NOT_FOUND"
