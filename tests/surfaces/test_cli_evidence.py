"""`affidavit export`, `verify FILE` and `pin`: what an auditor does with what he was given."""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tty
from pathlib import Path
from threading import Thread

import pytest

import affidavit
from affidavit.apps.cli.main import main
from unit.witnessing import Witness


@pytest.fixture
def evidence(cli, tmp_path):
    """An evidence file of a sealed session of three records."""
    cli("session", "start", "--intent", "x", "--session", "s1")
    for number in range(3):
        cli.record(f"record {number}", "--session", "s1")
    cli("session", "seal", "s1")
    file = tmp_path / "s1.affidavit"
    assert cli("export", "--session", "s1", "-o", str(file)).code == 0
    return file


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Go on as another user, on another machine."""

    def go():
        monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "elsewhere"))
        return tmp_path / "elsewhere"

    return go


WITNESS = Witness("witness.example", b"\x05" * 32)


def vkey(cli):
    return cli("key", "show", "--json").data["vkey"]


def test_whoever_signed_it_needs_no_key_named(cli, evidence):
    ran = cli("verify", str(evidence))
    assert ran.code == 0
    assert ran.out.startswith(f"VERIFIED: everything checked in {evidence} is as the log signed")
    assert "holds        session s1" in ran.out
    assert "5 entries in the log, 4 payloads" in ran.out
    assert "1 session complete" in ran.out
    assert "not checked  no witness was asked for" in ran.out


def test_evidence_is_read_from_standard_input(cli, evidence):
    assert cli("verify", "-", stdin=evidence.read_bytes()).code == 0
    assert cli("pin", "-", stdin=cli("checkpoint").out.encode()).code == 0
    assert cli("verify", "-", stdin=b"anything").code == 2


def test_a_stranger_needs_the_key(cli, evidence, elsewhere):
    key = vkey(cli)
    elsewhere()
    ran = cli("verify", str(evidence))
    assert (ran.code, ran.out.split(":")[0]) == (3, "CONSISTENT, NOT AUTHENTICATED")
    assert cli("verify", str(evidence), "--json").data["verdict"] == "consistent, not authenticated"
    with_key = cli("verify", str(evidence), "--key", key, "--json")
    assert (with_key.code, with_key.data["verdict"]) == (0, "verified")
    assert with_key.data["vouchers"] == [f"key {key}"]


def test_a_key_in_the_users_own_folder_counts(cli, evidence, elsewhere):
    key = vkey(cli)
    folder = elsewhere() / "keys"
    folder.mkdir(parents=True)
    (folder / "friends.vkey").write_text(f"# from a letter\n{key}\n\n", encoding="utf-8")
    assert cli("verify", str(evidence)).code == 0
    (folder / "broken.vkey").write_text("nonsense\n", encoding="utf-8")
    ran = cli("verify", str(evidence), "--json")
    assert (ran.code, ran.error["code"]) == (4, "ERR_STORE_UNAVAILABLE")
    assert "broken.vkey" in ran.error["message"]


def test_another_key_is_not_enough(cli, evidence, elsewhere):
    elsewhere()
    cli.record()
    cli("checkpoint")
    other = vkey(cli)
    ran = cli("verify", str(evidence), "--key", other)
    assert (ran.code, ran.out.split(":")[0]) == (3, "NOT VERIFIED")
    assert "missing      none of the keys given is one of" in ran.out
    ran = cli("verify", str(evidence), "--key", other[:-4], "--json")
    assert (ran.code, ran.error["details"]["field"]) == (2, "key")


def test_a_changed_file_is_a_violation(cli, evidence):
    data = evidence.read_bytes()
    evidence.write_bytes(data.replace(b"record 1", b"record 7"))
    ran = cli("verify", str(evidence), "--json")
    assert (ran.code, ran.data["verdict"]) == (1, "violation")
    assert ran.data["findings"][0]["code"] == "evidence_malformed"
    assert cli("verify", str(evidence)).out.startswith("VIOLATION: 1 finding in ")


def test_what_is_no_evidence_is_not_judged(cli, tmp_path):
    for name, text in (("a.json", "{}"), ("b.json", '{"v":1}\n')):
        (tmp_path / name).write_text(text, encoding="utf-8")
        ran = cli("verify", str(tmp_path / name), "--json")
        assert (ran.code, ran.error["code"]) == (2, "INVALID_PARAMS")
    (tmp_path / "c").write_bytes(b"anything")
    assert cli("verify", str(tmp_path / "c")).code == 4
    assert cli("verify", str(tmp_path / "none")).code == 4


def test_a_policy_names_keys_and_witnesses(cli, evidence, elsewhere, tmp_path):
    policy = tmp_path / "policy"
    key = vkey(cli)
    elsewhere()
    policy.write_text(f"log {key}\nquorum none\n", encoding="utf-8")
    assert cli("verify", str(evidence), "--policy", str(policy)).code == 0
    policy.write_text(f"log {key}\nwitness w {WITNESS.verifier}\nquorum w\n", encoding="utf-8")
    ran = cli("verify", str(evidence), "--policy", str(policy))
    assert (ran.code, ran.out.split(":")[0]) == (3, "NOT VERIFIED")
    assert "missing      the quorum w is not reached; 0 of 1 witnesses cosigned" in ran.out
    policy.write_text("nonsense\n", encoding="utf-8")
    assert cli("verify", str(evidence), "--policy", str(policy)).code == 2
    assert cli("verify", str(evidence), "--policy", str(tmp_path / "none")).code == 4


def test_a_ledger_is_named_once(cli, evidence, path):
    assert cli("verify", path).code == 0
    assert cli("verify", path, "--ledger", path).code == 2
    assert cli("verify", str(evidence), "--session", "s1").code == 2


def test_a_pinned_note_shows_that_a_ledger_only_grew(cli, evidence, tmp_path, elsewhere, path):
    note = tmp_path / "note"
    note.write_text(cli("checkpoint").out, encoding="utf-8")
    size = int(note.read_text(encoding="utf-8").split("\n")[1])
    copy = tmp_path / "copy.db"
    shutil.copyfile(path, copy)
    cli.record("later")
    key = vkey(cli)
    elsewhere()
    ran = cli("verify", path, "--pinned", str(note), "--key", key)
    assert ran.code == 0
    assert f"{size} entries under a kept checkpoint" in ran.out
    assert f"vouched for  by key {key}" in ran.out
    assert "not checked  the last 1 entries" in ran.out
    assert cli("verify", path, "--key", key).code == 3
    assert "a checkpoint to check the key on" in cli("verify", path, "--key", key).out
    assert cli("verify", path, "--pinned", str(evidence)).code == 0
    assert cli("verify", path, "--pinned", str(note), "--new").code == 0
    assert cli("verify", path, "--new").code == 2


@pytest.mark.usefixtures("evidence")
def test_a_new_key_is_believed_only_through_a_checkpoint_the_old_one_signed(
    cli, tmp_path, path, elsewhere
):
    def keep(name):
        note = tmp_path / name
        note.write_text(cli("checkpoint").out, encoding="utf-8")
        return str(note)

    old = vkey(cli)
    before = keep("before")
    cli("key", "add")
    both = keep("both")
    cli("key", "retire", old)
    after = keep("after")
    elsewhere()
    call = ("verify", path, "--key", old)
    assert cli(*call, "--pinned", before).code == 0
    assert cli(*call, "--pinned", both).code == 0
    alone = cli(*call, "--pinned", after)
    assert (alone.code, alone.out.split(":")[0]) == (3, "NOT VERIFIED")
    assert "none of the known keys signed the note" in alone.out
    assert cli(*call, "--pinned", before, "--pinned", after).code == 3
    assert cli(*call, "--pinned", after, "--pinned", both).code == 0


def test_a_cut_or_rewritten_ledger_is_caught_by_a_pinned_note(cli, evidence, tmp_path, path):
    before = tmp_path / "before.db"
    shutil.copyfile(path, before)
    cli.record("later")
    note = tmp_path / "note"
    note.write_text(cli("checkpoint").out, encoding="utf-8")
    ran = cli("verify", str(before), "--pinned", str(note), "--json")
    assert (ran.code, ran.data["findings"][0]["code"]) == (1, "tail_removed")
    cli("--ledger", str(before), "record", "--type", "plan", "--task", "t", "--agent", "a", "x")
    cli("--ledger", str(before), "record", "--type", "plan", "--task", "t", "--agent", "a", "x")
    ran = cli("verify", str(before), "--pinned", str(note), "--json")
    assert (ran.code, ran.data["findings"][0]["code"]) == (1, "fork")


def fork(cli, tmp_path, path):
    """Two notes of one size that the same key signed, of two histories."""
    state = tmp_path / "home" / "state"
    copy, kept = tmp_path / "copy.db", tmp_path / "kept"
    cli("checkpoint")
    shutil.copyfile(path, copy)
    shutil.copytree(state, kept)
    notes = []
    for ledger, text in ((path, "one"), (str(copy), "other")):
        shutil.rmtree(state)
        shutil.copytree(kept, state)
        cli("--ledger", ledger, "record", "--type", "plan", "--task", "t", "--agent", "a", text)
        note = tmp_path / f"note-{text}"
        note.write_text(cli("--ledger", ledger, "checkpoint").out, encoding="utf-8")
        notes.append(note)
    return notes


@pytest.mark.usefixtures("evidence")
def test_a_fork_is_not_kept_and_its_proof_is(cli, tmp_path, path, elsewhere):
    first, second = fork(cli, tmp_path, path)
    key = vkey(cli)
    elsewhere()
    kept = cli("pin", str(first), "--key", key)
    assert kept.code == 0
    assert f"vouched for  by key {key}" in kept.out
    assert cli("pin", str(first)).code == 0
    ran = cli("pin", str(second), "--key", key, "--json")
    assert (ran.code, ran.error["code"]) == (1, "ERR_INTEGRITY")
    [proof] = ran.error["details"]["evidence"]
    alone = cli("verify", proof, "--key", key)
    assert alone.code == 1
    assert "fork" in alone.out
    assert cli("verify", proof).code == 3
    text = Path(proof).read_text(encoding="utf-8")
    honest = json.loads(text)
    honest["notes"] = [honest["notes"][0]] * 2
    Path(proof).write_text(
        json.dumps(honest, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8"
    )
    same = cli("verify", proof, "--key", key)
    assert (same.code, same.out.split(":")[0]) == (3, "NOT VERIFIED")
    assert "the file shows no fork" in same.out


@pytest.mark.usefixtures("evidence")
def test_evidence_of_another_history_than_the_one_pinned_is_a_fork(cli, tmp_path, path, elsewhere):
    first, _ = fork(cli, tmp_path, path)
    file = tmp_path / "other.affidavit"
    cli("--ledger", str(tmp_path / "copy.db"), "export", "--session", "s1", "-o", str(file))
    key = vkey(cli)
    elsewhere()
    ran = cli("verify", str(file), "--pinned", str(first), "--key", key, "--json")
    assert ran.code == 1
    assert [one["code"] for one in ran.data["findings"]] == ["fork"]
    [proof] = ran.data["proofs_of_misbehaviour"]
    assert cli("verify", proof, "--key", key).code == 1


@pytest.mark.usefixtures("evidence")
@pytest.mark.parametrize("later", [0, 3])
def test_a_ledger_that_was_signed_against_a_pin_leaves_a_portable_proof(
    cli, tmp_path, path, elsewhere, later
):
    first, _ = fork(cli, tmp_path, path)
    other = str(tmp_path / "copy.db")
    for _ in range(later):
        cli("--ledger", other, "record", "--type", "plan", "--task", "t", "--agent", "a", "more")
    cli("--ledger", other, "checkpoint")
    key = vkey(cli)
    ran = cli("verify", other, "--pinned", str(first), "--json")
    assert [one["code"] for one in ran.data["findings"]] == ["fork"]
    [proof] = ran.data["proofs_of_misbehaviour"]
    shown = cli("verify", other, "--pinned", str(first))
    assert (shown.code, f"  evidence     {proof}" in shown.out) == (1, True)
    mine = cli("verify", path, "--pinned", str(first), "--json").data
    # What was signed last is longer than this ledger, whose tree shows nothing of it.
    assert bool(mine["proofs_of_misbehaviour"]) == (later == 0)
    elsewhere()
    alone = cli("verify", proof, "--key", key)
    assert (alone.code, "fork" in alone.out) == (1, True)
    # What nobody signed is no misbehaviour of a key.
    ran = cli("verify", other, "--pinned", str(first), "--json")
    assert (ran.code, ran.data["proofs_of_misbehaviour"]) == (1, [])


def test_pins_are_compared_without_being_named(cli, evidence, elsewhere):
    elsewhere()
    assert cli("pin", str(evidence)).code == 0
    ran = cli("verify", str(evidence))
    assert ran.code == 0
    assert "vouched for  by pinned checkpoint of" in ran.out


def test_a_file_goes_to_standard_output_whole(cli, evidence, path):
    call = [sys.executable, "-m", "affidavit", "--ledger", path, "export", "--session", "s1"]
    done = subprocess.run([*call, "-o", "-"], capture_output=True, check=True)
    assert done.stdout == evidence.read_bytes()
    lines = subprocess.run(
        [*call[:-2], "--jsonl"], capture_output=True, check=True
    ).stdout.splitlines()
    assert [json.loads(line)["index"] for line in lines] == list(range(len(lines)))


def test_an_export_that_cannot_be_written_leaves_nothing_behind(cli, evidence, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    ran = cli("export", "--session", "s1", "-o", str(folder), "--json")
    assert (ran.code, ran.error["code"]) == (4, "ERR_STORE_UNAVAILABLE")
    assert cli("export", "--session", "s1").code == 2
    assert cli("export", "--jsonl", "--withhold", "content").code == 2
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "home", "s1.affidavit"]
    assert evidence.exists()


@pytest.mark.parametrize("what", [["--session", "s1", "-o", "-"], ["--jsonl"]])
def test_an_export_to_a_full_disk_by_way_of_the_shell_is_told(evidence, path, what):
    assert evidence.exists()
    call = [sys.executable, "-m", "affidavit", "--ledger", path, "export", *what]
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 4
    assert "all of it cannot be printed (No space left on device)" in ran.stderr
    assert "a bug" not in ran.stderr


def test_a_pipe_or_a_device_is_written_to_and_stays(cli, evidence, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert cli("export", "--session", "s1", "-o", str(pipe)).code == 0
    reader.join(10)
    assert read == [evidence.read_bytes()]
    assert pipe.is_fifo()
    master, terminal = os.openpty()
    tty.setraw(terminal)
    # Through the link no system file is at stake, should it be replaced.
    device = tmp_path / "device"
    device.symlink_to(os.ttyname(terminal))
    assert cli("export", "--range", "0:1", "-o", str(device), "--json").code == 0
    assert os.read(master, 2) == b"PK"
    assert device.is_char_device()
    os.close(master)
    os.close(terminal)


def test_a_file_behind_a_link_is_replaced_and_the_link_stays(cli, evidence, tmp_path):
    (tmp_path / "shelf").mkdir()
    link = tmp_path / "newest.affidavit"
    link.symlink_to("shelf/one.affidavit")
    for _ in range(2):
        assert cli("export", "--session", "s1", "-o", str(link)).code == 0
        assert link.is_symlink()
        assert link.read_bytes() == evidence.read_bytes()
    assert [one.name for one in (tmp_path / "shelf").iterdir()] == ["one.affidavit"]


def test_an_export_that_is_stopped_leaves_the_file_that_was_there(cli, evidence, tmp_path, path):
    """Its memory ends while it writes, as a disk may."""
    before = evidence.read_bytes()
    for n in range(40):
        cli.record(f"{n} " + "word " * 2_000, "--session", "s2") if n else cli(
            "session", "start", "--intent", "x", "--session", "s2"
        )
    call = [sys.executable, "-m", "affidavit", "--ledger", path, "export", "--session", "s2"]
    ran = subprocess.run(
        [*call, "-o", str(evidence), "--json"],
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
        check=False,
    )
    assert ran.returncode == 4, ran.stderr
    assert json.loads(ran.stdout)["ok"] is False
    assert evidence.read_bytes() == before
    assert not list(tmp_path.glob(".*.new"))


def test_progress_of_a_long_export_is_drawn_on_a_terminal_only(cli, tmp_path, path, monkeypatch):
    with affidavit.open(path) as ledger:
        thought = {"type": "plan", "task_id": "t", "agent_id": "a"}
        ledger.record_thoughts([{**thought, "content": f"step {n}"} for n in range(600)])
        told = []
        ledger_file = b"".join(
            ledger.iter_export(task_id="t", progress=lambda *at: told.append(at))
        )
    assert told == sorted(set(told))
    assert len(told) == 3
    assert {total for _, total in told} == {3_600}
    file = tmp_path / "t.affidavit"
    call = ("export", "--task", "t", "-o", str(file))
    assert cli(*call).err == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["--ledger", path, *call]) == 0
    assert "exporting [" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert file.read_bytes() == ledger_file
