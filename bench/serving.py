"""The MCP server beside one of the same SDK: how fast it starts, and how fast it records.

Both are spoken to line by line, so that a client's own work hides nothing.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.appends import CONTENT
from bench.harness import Line, beside, paired

_EMPTY = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def main():
    server = Server("empty")
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

anyio.run(main)
"""
# One durable INSERT of the caller's own fields: no chain, no log, no entry of the call.
_RAW = """
import sys, uuid, anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from bench.reference import INSERT_TRAIL, TRAIL, open_raw

connection = open_raw(sys.argv[1], TRAIL)

async def call(ctx, params):
    given, name = params.arguments, str(uuid.uuid4())
    row = (name, given["type"], given["task_id"], given["agent_id"], given["content"], "", "", name, "", None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(INSERT_TRAIL, row)
    connection.execute("COMMIT")
    text = {"type": "text", "text": '{"ok":true}'}
    return {"resultType": "complete", "content": [text], "structuredContent": {"ok": True}}

async def main():
    server = Server("raw", on_call_tool=call)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

anyio.run(main)
"""  # noqa: E501 - the row on one line
_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_SAID = {"type": "decision", "task_id": "t", "agent_id": "a", "content": CONTENT}


class _Wire:
    """A server as a child, asked one thing after the other."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        self._number = 0
        self.ask("initialize", _HELLO)

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """One request and its answer."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        sending, receiving = self._child.stdin, self._child.stdout
        if sending is None or receiving is None:
            raise RuntimeError("the server has no pipes")
        sending.write(json.dumps(request).encode() + b"\n")
        sending.flush()
        answer = json.loads(receiving.readline())
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(answer)
        return answer

    def record(self, many: int) -> None:
        """So many decisions, each durable before the next."""
        for _ in range(many):
            self.ask("tools/call", {"name": "thought_record", "arguments": _SAID})

    def close(self) -> None:
        """End its input, and wait for it."""
        self._child.communicate(timeout=30)


def _ours(ledger: Path) -> list[str]:
    return [sys.executable, "-m", "affidavit", "--ledger", str(ledger), "mcp"]


def recording(folder: Path, blocks: int, size: int) -> list[Line]:
    """`thought_record` over stdio, beside a tool that does one raw durable insert."""
    ours = _Wire(_ours(folder / "served.db"))
    raw = _Wire([sys.executable, "-c", _RAW, str(folder / "raw-served.db")])
    for server in (ours, raw):
        server.record(50)
    pair = paired(lambda: ours.record(size), lambda: raw.record(size), blocks)
    for server in (ours, raw):
        server.close()
    return [beside("thought_record over stdio", pair, size, 0.85)]


def starting(folder: Path, rounds: int) -> list[Line]:
    """From the start of the process to its first answer, over an empty server."""
    ledger = folder / "started.db"
    _start(_ours(ledger))
    empty, ours = [], []
    for _ in range(rounds):
        empty.append(_start([sys.executable, "-c", _EMPTY]))
        ours.append(_start(_ours(ledger)))
    cost = statistics.median(ours) - statistics.median(empty)
    return [
        Line(
            "affidavit mcp, start to first answer",
            f"{cost * 1000:.0f} ms over an empty server",
            f"empty server {statistics.median(empty) * 1000:.0f} ms",
            None,
            "<= 250 ms",
            cost <= 0.25,
        )
    ]


def _start(command: list[str]) -> float:
    began = time.perf_counter()
    server = _Wire(command)
    took = time.perf_counter() - began
    server.close()
    return took
