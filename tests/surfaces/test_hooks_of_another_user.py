"""Hooks that bring their events to a server of another user, who alone can open the ledger."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit.apps import hook as taking
from affidavit.apps import hook_sending, hooks_received, peers
from affidavit.apps.hook_sending import HALF_WRITTEN, main, send
from affidavit.apps.hooks_received import HooksReceived
from affidavit.capture.claude_names import SOURCE, request_id_of
from affidavit.capture.hooks import losses
from surfaces.hook_desk import Desk
from surfaces.hook_events import DAY, RUN, event
from surfaces.serving import Server
from surfaces.test_servers_sign import AGENT_TRIES, BE_NOBODY, NOBODY

AGENT = 65_533
NAME = "01760000000000000000-1-0123abcd"


class Sender:
    """A spool of the agent's, and the server that it goes to."""

    def __init__(self, ledger: Path, socket_path: Path) -> None:
        self.ledger = str(ledger)
        self.path = socket_path
        self.words = ["claude-code", "--to", str(socket_path)]
        self.spool = taking.find_goal(self.words).spool
        self.said: list[str] = []

    def put(self, *events: Any) -> None:
        for says in events:
            Desk.put(self, says)  # type: ignore[arg-type]

    def serving(self, *allowed: int) -> HooksReceived:
        return HooksReceived(self.ledger, self.path, allowed or (os.getuid(),), self.said.append)

    def send(self) -> int | None:
        return send(str(self.path), self.spool)


@pytest.fixture
def sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sender]:
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    ledger = tmp_path / "trail.db"
    affidavit.open(ledger, settings={"payloads": "keep"}).close()
    short = Path(tempfile.mkdtemp(prefix="aff-"))  # the path of a socket has at most 107 bytes
    yield Sender(ledger, short / "hooks")
    shutil.rmtree(short)
    with affidavit.open(ledger, readonly=True) as opened:
        report = opened.verify()
    assert report.valid, report.findings


def test_a_day_is_recorded_with_the_kernels_word_for_who_sent_it(sender: Sender) -> None:
    sender.put(*DAY)
    with sender.serving():
        assert sender.send() == len(DAY)
    assert (sender.spool.names(), sender.spool.refused(), sender.said) == ([], [], [])
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        [session] = ledger.list_sessions()
        assert (session.state, session.project) == ("ended", "shop")
        entries = ledger.list_entries(session_id=session.session_id)
        calls = ledger.list_tool_calls(session_id=session.session_id)
    assert len(calls) == 6
    who = f"{SOURCE}@{hooks_received._user(os.getuid())}"
    assert {(entry.auth, entry.client, entry.via) for entry in entries} == {("os", who, "hook")}


def test_what_was_sent_twice_is_recorded_once(sender: Sender) -> None:
    sender.put(*DAY)
    kept = [(name, *sender.spool.read(name)) for name in sender.spool.names()]
    with sender.serving():
        sender.send()
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        size = len(ledger)
    for one in kept:  # the answer was lost
        sender.spool.keep(*one)
    with sender.serving():
        assert sender.send() == len(DAY)
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        assert len(ledger) == size


def test_while_there_is_no_server_everything_waits(sender: Sender) -> None:
    sender.put(DAY[0])
    main_in_a_child(sender)
    assert "sending to" in sender.spool.last_note()
    with sender.serving(os.getuid() + 1), pytest.raises(OSError):
        sender.send()
    assert sender.said == [f"refused user {os.getuid()}"]
    assert len(sender.spool.names()) == 1
    with sender.serving():
        assert sender.send() == 1


def main_in_a_child(sender: Sender) -> None:
    """It leaves its session, as nothing else here should."""
    if (child := os.fork()) == 0:
        main(str(sender.path))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_a_server_goes_on_with_what_one_before_it_left(sender: Sender) -> None:
    left = hooks_received._spool_of(sender.ledger, os.getuid())
    left.keep(NAME, b"{}", json.dumps(event("UserPromptSubmit", prompt="left")).encode())
    with sender.serving():
        pass
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        assert [turn.content for turn in ledger.list_turns()] == ["left"]
    assert left.names() == []


def test_what_a_killed_hook_left_is_counted_in_the_log(sender: Sender) -> None:
    folder = Path(sender.spool.folder) / "events"
    folder.mkdir(parents=True)
    (folder / f"{NAME}.part").write_bytes(b'{}\n{"hook_event_na')
    with sender.serving():
        assert sender.send() == 1
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        [lost] = ledger.list_dropped()
    assert (lost.channel, lost.count) == ("hook", 1)


def test_what_a_killed_hook_left_is_counted_though_there_was_no_server(sender: Sender) -> None:
    folder = Path(sender.spool.folder) / "events"
    folder.mkdir(parents=True)
    (folder / f"{NAME}.part").write_bytes(b'{}\n{"hook_event_na')
    with pytest.raises(OSError):
        sender.send()
    with sender.serving():
        assert sender.send() == 1
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        assert [lost.count for lost in ledger.list_dropped()] == [1]
    assert len(sender.spool.refused()) == 1


def test_what_a_killed_server_left_half_written_is_not_lost_and_not_counted(sender: Sender) -> None:
    left = Path(hooks_received._spool_of(sender.ledger, os.getuid()).folder) / "events"
    left.mkdir(parents=True)
    for name in (f"{NAME}.part", f"{NAME}.0123abcd.part"):
        (left / name).write_bytes(b'{}\n{"hook_event_na')
        os.utime(left / name, (1_760_000_000, 1_760_000_000))
    sender.spool.keep(NAME, b"{}", json.dumps(event("UserPromptSubmit", prompt="x")).encode())
    with sender.serving():
        assert sender.send() == 1
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        assert [turn.content for turn in ledger.list_turns()] == ["x"]
        assert ledger.list_dropped() == []
    assert [*left.iterdir()] == []


def test_what_hooks_could_not_keep_is_counted_in_the_servers_log_once(sender: Sender) -> None:
    sender.spool.folder.mkdir(parents=True)
    losses.take_room(sender.spool.folder)
    for at_ms in (1_760_000_000_000, 1_760_000_005_000):
        losses.count_lost(sender.spool.folder, at_ms)
    for _ in range(2):
        with sender.serving():
            sender.send()
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        [lost] = ledger.list_dropped()
    assert (lost.count, lost.from_ms, lost.to_ms) == (2, 1_760_000_000_000, 1_760_000_005_000)


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (framed(b""), b"-"),
        (framed(b"../../x\n{}\n{}"), b"-"),
        (framed(NAME.encode() + b"/..\n{}\n{}"), b"-"),
        (framed(NAME.encode() + b"\n" + b" " * 20_000 + b"\n{}"), b"-"),
        (b"\xff\xff\xff\xff" + b"x" * 10, b""),
        (framed(NAME.encode())[:-3], b""),
        (framed(NAME.encode() + b"\n\n" + HALF_WRITTEN), b"+"),
        (framed(NAME.encode() + b"\n\nlost 0 0 0"), b"+"),
        (framed(NAME.encode() + b"\n\nlost 999999999 9999999999999 0"), b"+"),
        (framed(NAME.encode() + b"\n\nlost -1 0 0"), b"+"),
        (framed(NAME.encode() + b'\n{"root": "~nobody-here/x", "ppid": {}}\n{}'), b"+"),
    ],
)
def test_what_no_hook_sends_harms_nobody(sender: Sender, message: bytes, answer: bytes) -> None:
    before = set(sender.path.parent.rglob("*"))
    with sender.serving():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(sender.path))
            connection.sendall(message)
            connection.shutdown(socket.SHUT_WR)
            try:
                assert connection.recv(1) == answer
            except ConnectionResetError:
                assert answer == b""
        sender.put(event("UserPromptSubmit", prompt="after it"))
        assert sender.send() == 1
    assert set(sender.path.parent.rglob("*")) == before
    with affidavit.open(sender.ledger, readonly=True) as ledger:
        assert "after it" in [turn.content for turn in ledger.list_turns()]


def test_nobody_fills_the_disk_of_the_server(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks_received, "WAITING_BYTES_MAX", 20_000)
    monkeypatch.setattr(HooksReceived, "_record", lambda *_: None)
    sender.put(*[event("UserPromptSubmit", prompt="x")] * 9)
    with sender.serving(), pytest.raises(ConnectionError, match="hung up"):
        sender.send()
    left = hooks_received._spool_of(sender.ledger, os.getuid())
    assert len(left.names()) == 5
    assert len(sender.spool.names()) == 4


def knock(sender: Sender, *messages: bytes) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(2)
    connection.connect(str(sender.path))
    with contextlib.suppress(OSError):  # it may be hung up on already
        connection.sendall(b"".join(map(framed, messages)))
    return connection


def test_nor_with_many_connections_at_once(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks_received, "WAITING_BYTES_MAX", 20_000)
    monkeypatch.setattr(HooksReceived, "_record", lambda *_: None)
    told = [f"{at:020d}-1-0123abcd\n{{}}\n{{}}".encode() for at in range(16)]
    with sender.serving(), knock(sender, *told[:4]) as first:
        assert receive(first, 4) == b"++++"
        with knock(sender, *told[4:8]) as second, knock(sender, *told[8:]) as third:
            first.close()
            receive(second, 4)
            receive(third, 8)
    assert len(hooks_received._spool_of(sender.ledger, os.getuid()).names()) == 5


def receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    with contextlib.suppress(OSError):
        while len(data) < count and (part := connection.recv(count)):
            data += part
    return data


def test_who_holds_connections_keeps_no_other_user_waiting(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = os.getuid() + 1
    those = [other] * 100
    monkeypatch.setattr(peers, "find_peer", lambda _: those.pop() if those else os.getuid())
    monkeypatch.setattr(hook_sending, "_PATIENCE_S", 5.0)
    sender.put(event("UserPromptSubmit", prompt="in time"))
    with sender.serving(os.getuid(), other), contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(knock(sender))
        assert sender.send() == 1
        assert threading.active_count() < 80


def test_who_is_refused_fills_no_log(sender: Sender) -> None:
    with sender.serving(os.getuid() + 1):
        for _ in range(50):
            with knock(sender) as connection:
                assert receive(connection, 1) == b""
    assert sender.said == [f"refused user {os.getuid()}"]


def test_what_nobody_thought_of_does_not_end_the_recording(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks_received, "_RETRY_S", 0.05)
    whole, failures = hooks_received.Drain.run, [RuntimeError("odd")]

    def run(drain: Any) -> int:
        if failures:
            raise failures.pop()
        return whole(drain)

    monkeypatch.setattr(hooks_received.Drain, "run", run)
    sender.put(event("UserPromptSubmit", prompt="x"))
    left = hooks_received._spool_of(sender.ledger, os.getuid())
    with sender.serving():
        sender.send()
        until = time.monotonic() + 10
        while left.names() and time.monotonic() < until:
            time.sleep(0.05)
        assert left.names() == []
    assert sender.said == [f"events of user {os.getuid()} wait: odd"]


def test_a_file_that_goes_while_files_are_counted_ends_no_connection(sender: Sender) -> None:
    left = Path(hooks_received._spool_of(sender.ledger, os.getuid()).folder) / "refused"
    left.mkdir(parents=True)
    (left / NAME).symlink_to("gone")
    sender.put(event("UserPromptSubmit", prompt="x"))
    with sender.serving():
        assert sender.send() == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--hooks", "x"),
        ("--allow", "0"),
        ("--hooks", "x", "--allow", "0", "--mode", "readonly"),
        ("--hooks", "x", "--allow", "nobody-here"),
    ],
)
def test_a_server_without_its_list_does_not_start(run_cli: Any, path: str, words: Any) -> None:
    affidavit.open(path).close()
    assert run_cli("serve", "--port", "0", "--ledger", path, *words).code == 2


AGENT_HOOKS = """
import hashlib, io, os, sys, json, socket
from affidavit.apps import hook, hook_sending
os.setgroups([]); os.setgid(65533); os.setuid(65533)
os.environ["AFFIDAVIT_HOME"] = sys.argv[2]
hook.start_drain = lambda goal: None
for event in json.load(sys.stdin):
    body = json.dumps(event).encode()
    sys.stdin = type("Stdin", (), {"buffer": io.BytesIO(body)})
    assert hook.take(["claude-code", "--to", sys.argv[1]]) == 0
goal = hook.find_goal(["--to", sys.argv[1]])
assert len(goal.spool.names()) == int(sys.argv[3])
print(hook_sending.send(goal.place, goal.spool), goal.spool.names())
"""


def test_hooks_of_an_agent_that_can_open_neither_ledger_nor_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three users: the server's, the agent's, and root, who looks."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be two other users")
    folder = Path(tempfile.mkdtemp(prefix="aff-"))
    folder.chmod(0o711)
    for name, uid in (("server", NOBODY), ("agent", AGENT), ("run", NOBODY)):
        (folder / name).mkdir()
        os.chown(folder / name, uid, uid)
    (folder / "server").chmod(0o700)
    monkeypatch.setenv("AFFIDAVIT_HOME", str(folder / "server" / "home"))
    ledger, place = str(folder / "server" / "trail.db"), str(folder / "run" / "hooks")
    first = f"import affidavit.apps.hooks_received; exec({BE_NOBODY!r})"
    words = ("--hooks", place, "--allow", str(AGENT))
    server = Server(ledger, *words, first=first, log=tmp_path / "log")
    try:
        day = [one for one in DAY if one["session_id"] == RUN]
        ran = subprocess.run(
            [sys.executable, "-c", AGENT_HOOKS, place, str(folder / "agent"), str(len(day))],
            input=json.dumps(day), capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
        assert (ran.stdout, ran.stderr) == (f"{len(day)} []\n", "")
        deadline = time.monotonic() + 20
        while not (keys := list(folder.rglob("*.key"))):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        tried = subprocess.run(
            [sys.executable, "-c", AGENT_TRIES, ledger, str(keys[0]), f"{ledger}-wal"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert tried.stdout.split() == ["refused"] * 3
    finally:
        assert server.stop(signal.SIGTERM)[0] == 0
    assert Path(ledger).stat().st_uid == NOBODY
    assert not Path(place).exists()
    with affidavit.open(ledger, readonly=True) as opened:
        assert opened.verify().valid
        assert opened.get_tool_call(request_id_of("toolu_03"), "toolu_03")[1] is not None
        [session] = opened.list_sessions()
        entry = opened.list_entries(session_id=session.session_id)[0]
    assert (entry.auth, entry.client, entry.via) == ("os", f"{SOURCE}@{AGENT}", "hook")
    shutil.rmtree(folder)
