"""What a server records is signed while it runs and when it ends, and published where asked."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import affidavit
from affidavit.apps.auditor.published import Folder
from affidavit.core.checkpoint import parse_checkpoint
from affidavit.core.note import parse_verifier_key
from affidavit.core.tlog_proof import check_proof, decode_proof
from affidavit.verify.published import verify_published
from affidavit.verify.trust import Trust
from surfaces.mcp_clients import ERAS, data, parameters, run
from surfaces.serving import Server

NOBODY = 65_534


def record(url: Any, era: str, *more: tuple[str, Any]) -> list[Any]:
    """One decision, and then other calls about it."""

    async def work() -> list[Any]:
        async with Client(url, mode=era) as client:
            given = {"type": "plan", "task_id": "t", "agent_id": "a", "content": "why"}
            found = [data(await client.call_tool("thought_record", given))]
            for tool, name in more:
                found.append(data(await client.call_tool(tool, {name: found[0]["id"]})))
            return found

    answers: list[Any] = run(work)
    return answers


def wait_for(is_so: Any) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def size_in(file: Path) -> int:
    return parse_checkpoint(file.read_bytes()).claims.size if file.exists() else 0


def test_a_page_server_signs_and_publishes(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    server = Server(path, "--publish", str(folder), log=tmp_path / "log")
    try:
        record(f"{server.url}mcp", ERAS[-1])
        wait_for(lambda: size_in(folder / "checkpoint") >= 2)
        record(f"{server.url}mcp", ERAS[-1])
    finally:
        server.stop(signal.SIGTERM)
    with affidavit.open(path, readonly=True) as ledger:
        assert size_in(folder / "checkpoint") == len(ledger)
        [key] = ledger.list_keys()
    trust = Trust(keys=(parse_verifier_key(key.vkey),))
    assert verify_published(Folder(str(folder)), trust).report.verdict == "verified"


def test_a_client_gets_a_proof_and_leaves_a_signed_log(path: str, home: Path) -> None:
    client = parameters(path, "--tools", "all")
    [thought, proof] = record(client, ERAS[0], ("proof_get", "id"))
    with affidavit.open(path, readonly=True) as ledger:
        keys = [parse_verifier_key(key.vkey) for key in ledger.list_keys()]
        size = len(ledger)
    assert (proof["id"], proof["index"]) == (thought["id"], thought["index"])
    check_proof(decode_proof(proof["proof"].encode()), proof["entry"].encode(), keys)
    [guard] = (home / "state").glob("*/checkpoint")
    wait_for(lambda: size_in(guard) == size)


def test_nothing_is_published_by_a_server_that_cannot_record(run_cli: Any, path: str) -> None:
    with affidavit.open(path):
        pass
    words = ("serve", "--port", "0", "--mode", "readonly", "--publish", "x", "--ledger", path)
    assert run_cli(*words).code == 2


# Everything is loaded as the user who may read it all; then the server is another user's.
BE_NOBODY = """
import os, encodings.idna, encodings.utf_16_be, locale
import affidavit.apps.cli.serve, affidavit.apps.http.serving
import affidavit.apps.http.app, affidavit.apps.mcp.service, affidavit.apps.kept_signed
import tempfile, threading, asyncio, uvicorn.lifespan.on, uvicorn.protocols.http.h11_impl
import affidavit, uvicorn.loops.auto, uvicorn.loops.asyncio, uvicorn.protocols.http.auto
import anyio._backends._asyncio
with tempfile.TemporaryDirectory() as warm:
    home, os.environ["AFFIDAVIT_HOME"] = os.environ["AFFIDAVIT_HOME"], warm
    with affidavit.open(warm + "/warm.db") as trial: trial.checkpoint()
os.environ["AFFIDAVIT_HOME"] = home
os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""
AGENT_TRIES = """
import os, sys
os.setgroups([]); os.setgid(65533); os.setuid(65533)
for path in sys.argv[1:]:
    try:
        open(path, "rb")
    except PermissionError:
        print("refused")
"""


def test_an_agent_of_another_user_records_and_can_open_neither_ledger_nor_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server's user owns everything; who posts to it has only the address."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be two other users")
    folder = Path(tempfile.mkdtemp(prefix="aff-"))
    os.chown(folder, NOBODY, NOBODY)
    monkeypatch.setenv("AFFIDAVIT_HOME", str(folder / "home"))
    ledger = str(folder / "trail.db")
    first = f"exec({BE_NOBODY!r})"
    server = Server(ledger, first=first, log=tmp_path / "log")
    try:
        record(f"{server.url}mcp", ERAS[-1])
        wait_for(lambda: list(folder.rglob("*.key")))
        [key] = folder.rglob("*.key")
        assert key.stat().st_uid == Path(ledger).stat().st_uid == NOBODY
        paths = [ledger, str(key), f"{ledger}-wal"]
        command = [sys.executable, "-c", AGENT_TRIES, *paths]
        tried = subprocess.run(command, capture_output=True, text=True, check=True)
        assert tried.stdout.split() == ["refused"] * 3
    finally:
        server.stop(signal.SIGTERM)
        shutil.rmtree(folder)
