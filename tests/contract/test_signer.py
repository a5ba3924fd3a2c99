"""A signer of another user: it alone has the keys, and it sees for itself that a log only grew."""

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
from pathlib import Path

import pytest

import affidavit
from affidavit.apps import wiring
from affidavit.apps.signer import messages
from affidavit.apps.signer.client import RemoteSigner
from affidavit.apps.signer.desk import KEYS_MAX, Desk
from affidavit.apps.signer.server import SignerServer
from affidavit.apps.signing_files import GuardFolder, KeyFolder
from affidavit.core.checkpoint import TreeHead, check_checkpoint, parse_checkpoint
from affidavit.core.merkle import LeafTree, leaf_hash, prove_consistency, tree_root
from affidavit.core.note import SigningKey, parse_verifier_key
from affidavit.errors import ConflictError, InputError, IntegrityViolation, StoreError

ORIGIN = "log.example"
LEAVES = [leaf_hash(bytes([n])) for n in range(40)]
KEY = SigningKey(ORIGIN, bytes(32)).verifier


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def place():
    """A short path: that of a socket has at most 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="aff-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start(place, tmp_path):
    servers = []

    def start(*allowed):
        desk = Desk(
            KeyFolder(lambda: tmp_path / "signer" / "keys", wiring.new_salt),
            GuardFolder(lambda: tmp_path / "signer" / "state"),
        )
        server = SignerServer(place / "sock", allowed or (os.getuid(),), desk, lambda _: None)
        thread = threading.Thread(target=server.run)
        thread.start()
        servers.append((server, thread))
        return RemoteSigner(place / "sock")

    yield start
    for server, thread in servers:
        server.stop()
        thread.join(10)


def head(size, leaves=LEAVES):
    return TreeHead(ORIGIN, size, tree_root(leaves[:size]))


def prover(size, leaves=LEAVES):
    return lambda old_size: prove_consistency(old_size, size, LeafTree(leaves[:size]))


def think(ledger):
    return ledger.record_thought(type="plan", task_id="t", agent_id="a", content="because")


def test_a_ledger_is_signed_by_it_and_holds_no_secret(start, place, path, home, monkeypatch):
    start()
    monkeypatch.setenv("AFFIDAVIT_SIGNER", str(place / "sock"))
    with affidavit.open(path) as ledger:
        think(ledger)
        signed = ledger.checkpoint()
        [key] = ledger.list_keys()
        assert key.here
        think(ledger)
        assert ledger.checkpoint().size == signed.size + 1
        assert ledger.verify().valid
    assert not (home / "keys").exists()


def test_a_ledger_moves_to_it_by_adding_and_retiring_a_key(start, place, path, home, monkeypatch):
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
        [old] = ledger.list_keys()
    start()
    monkeypatch.setenv("AFFIDAVIT_SIGNER", str(place / "sock"))
    with affidavit.open(path) as ledger:
        new = ledger.add_key()
        note = parse_checkpoint(ledger.checkpoint().note.encode())
        for key in (old, new):
            check_checkpoint(note, [parse_verifier_key(key.vkey)])
        ledger.retire_key(old.vkey)
        shutil.rmtree(home / "keys")
        assert ledger.checkpoint().size == len(ledger)


def test_it_signs_only_what_grew(start):
    signer = start()
    key = signer.make(ORIGIN)
    for size in (3, 3, 7, 8, 40):
        note = signer.sign(head(size), [key], prover(size))
        assert check_checkpoint(parse_checkpoint(note), [key]).head == head(size)


@pytest.mark.parametrize("size", [1, 19, 20, 21, 39])
def test_it_refuses_another_history_of_any_size_and_keeps_the_evidence(start, tmp_path, size):
    signer = start()
    key = signer.make(ORIGIN)
    signer.sign(head(20), [key], prover(20))
    other = [leaf_hash(b"other"), *LEAVES[1:]]
    for leaves in (other, LEAVES):
        if leaves is LEAVES and size >= 20:
            continue  # that is the same log grown
        with pytest.raises(IntegrityViolation, match="the same log grown"):
            signer.sign(head(size, leaves), [key], prover(size, leaves))
    kept = list((tmp_path / "signer" / "state").glob("*/evidence/*"))
    assert kept
    assert json.loads(kept[0].read_text())["signed"].startswith(f"{ORIGIN}\n20\n")
    assert signer.sign(head(21), [key], prover(21))  # and goes on with the true one


def test_a_wrong_proof_is_not_believed(start):
    signer = start()
    key = signer.make(ORIGIN)
    signer.sign(head(20), [key], prover(20))
    for proof in ([], [LEAVES[0]] * 5, prover(39)(20)):
        with pytest.raises(IntegrityViolation):
            signer.sign(head(40), [key], lambda _, proof=proof: proof)


def test_a_key_of_another_name_or_place_does_not_sign(start):
    signer = start()
    signer.make(ORIGIN)
    other = signer.make("other.example")
    with pytest.raises(InputError, match="not all of them"):
        signer.sign(head(1), [other], prover(1))
    with pytest.raises(InputError):
        signer.make("two words")
    for _ in range(KEYS_MAX - 1):
        signer.make(ORIGIN)
    with pytest.raises(ConflictError) as caught:
        signer.make(ORIGIN)
    assert caught.value.code == "ERR_KEY_LIMIT"


def test_nobody_fills_the_disk_of_the_signer(start, tmp_path, monkeypatch):
    signer = start()
    folder = tmp_path / "signer"
    for number in range(20):
        with pytest.raises(InputError):
            signer.sign(TreeHead(f"x{number}", 1, LEAVES[0]), [KEY], prover(1))
    assert not folder.exists()
    monkeypatch.setattr("affidavit.apps.signer.desk.ALL_KEYS_MAX", 3)
    keys = [signer.make(f"y{number}") for number in range(3)]
    with pytest.raises(ConflictError):
        signer.make("y4")
    monkeypatch.setattr("affidavit.apps.signing_files.EVIDENCE_MAX", 5)
    origin = keys[0].name
    signer.sign(TreeHead(origin, 20, tree_root(LEAVES[:20])), [keys[0]], prover(20))
    for number in range(12):
        with pytest.raises(IntegrityViolation):
            signer.sign(TreeHead(origin, 30 + number, LEAVES[0]), [keys[0]], lambda _: LEAVES[:3])
    assert len(list(folder.rglob("evidence/*"))) == 5


def test_a_user_who_is_not_on_the_list_is_hung_up_on(start, tmp_path):
    signer = start(os.getuid() + 1)
    with pytest.raises(StoreError, match="does not answer"):
        signer.make(ORIGIN)
    assert not (tmp_path / "signer").exists()


def hostile_messages():
    yield b""
    yield b"\x00"
    yield b"\xff\xff\xff\xff" + b"x" * 100
    yield b"\x00\x01\x00\x01" + b"x" * 65_537
    yield b"\x00\x00\x00\x05hello"
    yield b"\x00\x00\x00\x09not whole"[:8]
    for question in (
        {},
        [],
        {"ask": "sign"},
        {"ask": "make_key", "origin": 5},
        {"ask": "make_key", "origin": "x" * 2_000},
        {"ask": "make_key", "origin": "a", "more": 1},
        {"ask": "has_key", "vkey": "nonsense"},
        {"ask": "sign", "origin": "a", "size": -1, "root": "00" * 32, "old_size": 0, "proof": [],
         "vkeys": ["a"]},
        {"ask": "sign", "origin": "a", "size": 1, "root": "00", "old_size": 0, "proof": [],
         "vkeys": ["a"]},
        {"ask": "sign", "origin": "a", "size": 1, "root": "00" * 32, "old_size": 0,
         "proof": ["00" * 32] * 129, "vkeys": ["a"]},
    ):  # fmt: skip
        data = json.dumps(question).encode()
        yield len(data).to_bytes(4, "big") + data


def test_hostile_messages_cost_a_connection_and_nothing_else(start, place, tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "PATIENCE_S", 0.2)
    signer = start()
    for message in hostile_messages():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(place / "sock"))
            connection.sendall(message)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                answer = connection.recv(65_536)
                assert b'"note"' not in answer
                assert b'"vkey":"' not in answer
    assert not list((tmp_path / "signer").rglob("*.key"))
    assert signer.make(ORIGIN).name == ORIGIN


def test_many_slow_callers_do_not_keep_others_out_for_long(start, place, monkeypatch):
    monkeypatch.setattr(messages.receive, "__defaults__", (0.3,))
    signer = start()
    slow = []
    for _ in range(20):
        slow.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        slow[-1].connect(str(place / "sock"))
    began = time.monotonic()
    assert signer.make(ORIGIN)
    assert time.monotonic() - began < 5
    for connection in slow:
        connection.close()


def test_a_signer_that_is_gone_stops_no_recording(place, path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_SIGNER", str(place / "sock"))
    with affidavit.open(path) as ledger:
        with pytest.raises(StoreError, match="does not answer"):
            ledger.checkpoint()
        assert think(ledger).index == 1


def test_a_socket_left_behind_is_taken_over_and_one_in_use_is_not(start, place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(place / "sock"))
    start()
    with pytest.raises(StoreError):
        SignerServer(place / "sock", [0], None, print)


NOBODY, AGENT = 65_534, 65_533

# Everything is imported as the user who may read it all; then the process is another user's.
BE_ANOTHER = """
import locale, os, pathlib, sqlite3, shutil, sys, tempfile
import affidavit, affidavit.apps.cli.signer, affidavit.apps.signer.client
from affidavit.apps.cli.main import main
user, place = int(sys.argv[1]), pathlib.Path(sys.argv[2])
home = os.environ["AFFIDAVIT_HOME"]
with tempfile.TemporaryDirectory() as name:
    os.environ["AFFIDAVIT_HOME"] = name
    signer = os.environ.pop("AFFIDAVIT_SIGNER", None)
    with affidavit.open(name + "/warm.db") as ledger:
        ledger.checkpoint()
        ledger.recover("new-origin")
        ledger.verify()
os.environ["AFFIDAVIT_HOME"] = home
if signer:
    os.environ["AFFIDAVIT_SIGNER"] = signer
os.setgroups([])
os.setgid(user)
os.setuid(user)
"""
SIGNER_DOES = """
sys.exit(main(["signer", "--socket", str(place / "public" / "sock"), "--allow", sys.argv[3]]))
"""
AGENT_DOES = """
path = str(place / "agent" / "trail.db")
with affidavit.open(path) as ledger:
    ledger.record_thought(type="plan", task_id="t", agent_id="a", content="the truth")
    print("signed", ledger.checkpoint().size)
print("a key" if list((place / "agent").rglob("*.key")) else "no key here")
try:
    list((place / "signer").iterdir())
except PermissionError:
    print("cannot read")
# What was signed is written anew, and this user's own memory of it taken away.
db = sqlite3.connect(path)
db.execute("DROP TRIGGER log_refuses_update")
db.execute("UPDATE log SET leaf_hash = zeroblob(32) WHERE log_index = 1")
db.commit()
db.close()
shutil.rmtree(place / "agent" / "state")
with affidavit.open(path) as ledger:
    try:
        ledger.recover("adopt")
    except affidavit.IntegrityViolation as error:
        print("refused", "not the same log grown" in error.message)
"""


def as_user(user, does, *words, **extra):
    return subprocess.Popen(
        [sys.executable, "-c", BE_ANOTHER + does, str(user), *map(str, words)],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **extra},
    )  # fmt: skip


def make_folder(folder, user):
    folder.mkdir(mode=0o700)
    os.chown(folder, user, user)


def test_the_agents_user_can_neither_read_the_key_nor_sign_a_rewritten_log(place):
    """Two users that are really others: one signs, the other records, and then tampers."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be two other users")
    place.chmod(0o755)
    for name, user in (("signer", NOBODY), ("agent", AGENT), ("public", NOBODY)):
        make_folder(place / name, user)
    (place / "public").chmod(0o755)
    sock = place / "public" / "sock"
    signer = as_user(NOBODY, SIGNER_DOES, place, AGENT, AFFIDAVIT_HOME=str(place / "signer"))
    try:
        while not sock.exists():
            assert signer.poll() is None, signer.stderr.read()
            time.sleep(0.02)
        home = {"AFFIDAVIT_HOME": str(place / "agent"), "AFFIDAVIT_SIGNER": str(sock)}
        agent = as_user(AGENT, AGENT_DOES, place, **home)
        said, trouble = agent.communicate(timeout=60)
        assert agent.returncode == 0, trouble
        assert said.splitlines() == ["signed 3", "no key here", "cannot read", "refused True"]
        with pytest.raises(StoreError):  # root is not on the list either
            RemoteSigner(sock).make(ORIGIN)
    finally:
        signer.send_signal(signal.SIGTERM)
        _, told = signer.communicate(timeout=30)
    assert signer.returncode == 0, told
    assert "refused user 0" in told
    assert not sock.exists()
    [key] = (place / "signer").rglob("*.key")
    assert key.stat().st_uid == NOBODY
    assert len(list((place / "signer").rglob("evidence/*"))) == 1
