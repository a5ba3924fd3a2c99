"""`affidavit-verify.pyz`: one file, run where no affidavit and no msgspec is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("cryptography", "cffi", "_cffi_backend", "pycparser")


@pytest.fixture(scope="module")
def pyz(tmp_path_factory):
    target = tmp_path_factory.mktemp("pyz") / "affidavit-verify.pyz"
    subprocess.run([sys.executable, ROOT / "tools/build_pyz.py", target], check=True)
    return target


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A folder with `cryptography` and what it needs, and nothing else to import."""
    folder = tmp_path_factory.mktemp("bare")
    for name in NEEDED:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            origin = Path(found.origin)
            source = origin.parent if origin.name == "__init__.py" else origin
            (folder / source.name).symlink_to(source)
    return folder


@pytest.fixture
def run(pyz, bare, tmp_path):
    def call(*words):
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(bare), "HOME": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-S", "-W", "error", str(pyz), *words],
            env=env, cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return call


@pytest.fixture
def evidence(ledger, tmp_path):
    ledger.start_session(intent="x", session_id="s1")
    ledger.record_thought(type="plan", task_id="t", agent_id="a", content="why", session_id="s1")
    ledger.seal_session("s1")
    file = tmp_path / "s1.affidavit"
    file.write_bytes(ledger.export(session_id="s1"))
    return file, ledger.list_keys()[0].vkey


def test_nothing_else_can_be_imported_there(bare, tmp_path):
    env = {"PYTHONPATH": str(bare), "HOME": str(tmp_path)}
    for name in ("affidavit", "msgspec"):
        done = subprocess.run(
            [sys.executable, "-S", "-c", f"import {name}"],
            env=env,
            capture_output=True,
            check=False,
        )
        assert b"ModuleNotFoundError" in done.stderr


def test_it_says_what_the_command_says(run, evidence):
    file, key = evidence
    done = run(str(file), "--key", key)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("VERIFIED: ")
    assert run(str(file)).returncode == 3
    told = json.loads(run(str(file), "--key", key, "--json").stdout)
    assert (told["ok"], told["data"]["verdict"]) == (True, "verified")
    assert told["data"]["vouchers"] == [f"key {key}"]


def test_it_catches_a_change_and_refuses_what_is_no_evidence(run, evidence):
    file, key = evidence
    file.write_bytes(file.read_bytes().replace(b"why", b"wry"))
    done = run(str(file), "--key", key)
    assert done.returncode == 1
    assert "evidence_malformed" in done.stdout
    assert run("none").returncode == 4
    assert run(str(ROOT / "LICENSE")).returncode == 2
    (file.parent / "all.jsonl").write_text("{}\n{}\n", encoding="utf-8")
    lines = run("all.jsonl")
    assert lines.returncode == 2
    assert "all.jsonl is neither an evidence file nor a proof of misbehaviour" in lines.stderr
    assert run("none", "--key", "nonsense").returncode == 2
    for words in ((), ("a", "b"), ("a", "--new"), ("a", "--key")):
        refused = run(*words, "--json")
        assert refused.returncode == 2
        assert json.loads(refused.stdout)["error"]["code"] == "INVALID_PARAMS"


def test_it_checks_a_published_log(run, evidence, ledger, tmp_path):
    _, key = evidence
    ledger.publish(str(tmp_path / "published"))
    done = run(str(tmp_path / "published"), "--key", key)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("VERIFIED: ")


def test_what_went_wrong_is_never_taken_for_a_verdict(pyz, bare, evidence, tmp_path):
    """Python itself ends with 1 at a traceback, which here would say that the log was changed."""
    file, _ = evidence
    env = {"PYTHONPATH": str(bare), "HOME": str(tmp_path), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-S", str(pyz)]
    other = file.rename(tmp_path / "évidence.affidavit")
    done = subprocess.run([*command, other], env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (3, b"")
    with (tmp_path / "gone").open("wb") as nobody, Path(os.devnull).open("rb") as nothing:
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*command, other], env=env, stdin=nothing, stdout=writer, stderr=nobody, check=False
        )
        os.close(writer)
    assert done.returncode == 141
    bug = f"import sys; sys.path.insert(0, {str(pyz)!r}); from affidavit.apps.auditor import "
    bug += "__main__ as shell; shell.check_file = None; sys.exit(shell.main(['x']))"
    done = subprocess.run([*command[:2], "-c", bug], env=env, capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (70, False)


def test_it_is_built_the_same_each_time(pyz, tmp_path):
    again = tmp_path / "again.pyz"
    subprocess.run([sys.executable, ROOT / "tools/build_pyz.py", again], check=True)
    assert again.read_bytes() == pyz.read_bytes()
