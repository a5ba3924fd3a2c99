"""Signing under faults: no second history, no false alarm, whatever dies and however many sign."""

import shutil
import time
from base64 import b64decode
from pathlib import Path

import pytest

import affidavit
from affidavit.apps.wiring import open_ledger
from affidavit.core.merkle import Frontier, leaf_hash
from contract.oracle import log
from faults.deeds import thought
from faults.support import Zygote, acknowledged, audit

PROCESSES = 8


@pytest.fixture
def home(folder, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(folder / "home"))
    return folder / "home"


def assert_one_history(path, said):
    """Every note that was handed out is of this log, as it is now."""
    frontier, roots = Frontier(), []
    for entry in log(path):
        roots.append(frontier.root().hex())
        frontier.add(leaf_hash(entry.raw))
    roots.append(frontier.root().hex())
    for size, root in said:
        assert roots[size] == root, f"the note of size {size} is of another log"


def sign_in_many_processes(zygote, folder, rounds):
    path, start_at = str(folder / "trail.db"), time.time() + 0.2
    children = [
        zygote.start("deeds:sign_rounds", path, str(folder / f"side-{n}"), n, rounds, start_at,
                     limit_s=600)
        for n in range(PROCESSES)
    ]  # fmt: skip
    for child in children:
        child.finish(600)
    for number in range(PROCESSES):
        said = [line[1:] for line in acknowledged(folder / f"side-{number}")]
        assert len(said) == rounds
        sizes = [size for size, _ in said]
        assert sizes == sorted(sizes)
    everything = [line[1:] for n in range(PROCESSES) for line in acknowledged(folder / f"side-{n}")]
    assert_one_history(path, {tuple(line) for line in everything})
    with affidavit.open(path) as ledger:
        assert len(ledger.list_keys()) == 1
        assert ledger.checkpoint().size == len(ledger) == PROCESSES * rounds + 2
    audit(path)


@pytest.fixture
def signers(tmp_path_factory, folder, monkeypatch):
    """A zygote whose children keep their keys in a place of this test."""
    monkeypatch.setenv("AFFIDAVIT_HOME", str(folder / "home"))
    made = Zygote(tmp_path_factory.mktemp("signers"))
    yield made
    made.close()


def test_eight_processes_sign_without_a_false_alarm(signers, folder):
    sign_in_many_processes(signers, folder, 20)


@pytest.mark.long
def test_eight_processes_sign_a_thousand_rounds_without_a_false_alarm(signers, folder):
    sign_in_many_processes(signers, folder, 1_000)


def make_unsigned(path):
    with affidavit.open(path) as ledger:
        ledger.record_thought(**thought("before", 1))


def make_signed(path):
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
    with open_ledger(path) as ledger:  # not signed when it is closed
        ledger.record_thought(**thought("before", 1))


@pytest.mark.parametrize("make", [make_unsigned, make_signed])
def test_killed_at_any_step_of_signing_the_next_one_signs_on(zygote, folder, home, make):
    path = str(folder / "trail.db")
    make(path)
    shutil.copyfile(path, folder / "kept.db")
    if home.exists():
        shutil.copytree(home, folder / "kept-home")
    steps = count_steps(zygote, folder, home, path)
    assert steps >= 8
    for step in range(1, steps + 1):
        put_back(folder, home, path)
        side = folder / f"side-{step}"
        child = zygote.start("deeds:sign_and_die", path, str(home), str(side), step)
        assert child.wait(30) == -9, child.said()
        sign_on(path, home, acknowledged(side))


def count_steps(zygote, folder, home, path):
    zygote.start("deeds:sign_and_die", path, str(home), str(folder / "steps"), 0).finish()
    [_, (_, steps)] = acknowledged(folder / "steps")
    return steps


def put_back(folder, home, path):
    for name in (path, f"{path}-wal", f"{path}-shm"):
        Path(name).unlink(missing_ok=True)
    shutil.copyfile(folder / "kept.db", path)
    shutil.rmtree(home, ignore_errors=True)
    if (folder / "kept-home").exists():
        shutil.copytree(folder / "kept-home", home)


def sign_on(path, home, said):
    handed_out = [tuple(line[1:]) for line in said]
    before = {tuple(read_guard(guard)) for guard in (home / "state").glob("*/checkpoint")}
    with affidavit.open(path, create=False) as ledger:
        signed = ledger.checkpoint()
        assert signed.size == len(ledger)
        assert len(ledger.list_keys()) == 1
        ledger.record_thought(**thought("afterwards", 1))
        assert ledger.checkpoint().size == len(ledger)
    # Also what was signed but never handed out is of this history.
    assert_one_history(path, {(signed.size, signed.root), *handed_out, *before})
    assert list((home / "state").glob("*/evidence/*")) == []
    audit(path)


def read_guard(path):
    _, size, root, *_ = path.read_text(encoding="utf-8").split("\n")
    return int(size), b64decode(root).hex()
