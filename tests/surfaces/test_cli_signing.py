"""`affidavit checkpoint`, `affidavit key ...` and `affidavit recover`."""

from __future__ import annotations

import shutil
from pathlib import Path

from affidavit.core.checkpoint import check_checkpoint, parse_checkpoint
from affidavit.core.note import parse_verifier_key


def test_the_note_is_printed_as_it_is(cli, path):
    cli.record()
    ran = cli("checkpoint")
    assert ran.code == 0
    vkey = cli("key", "show", "--json").data["vkey"]
    found = check_checkpoint(parse_checkpoint(ran.out.encode()), [parse_verifier_key(vkey)])
    assert found.head.size == 3
    assert cli("checkpoint", "--json").data["note"] == ran.out


def test_there_is_no_key_before_the_first_checkpoint(cli):
    cli.record()
    assert cli("key", "show").out == "No key yet: `affidavit checkpoint` makes it.\n"
    assert cli("key", "show", "--json").data == {"vkey": None, "keys": []}


def test_keys_are_added_and_retired(cli):
    cli.record()
    cli("checkpoint")
    first = cli("key", "show", "--json").data["vkey"]
    second = cli("key", "add", "--by", "ann", "--reason", "new laptop", "--json").data["vkey"]
    assert second != first
    assert cli("checkpoint").out.count("\u2014 ") == 2
    shown = cli("key", "retire", first)
    assert shown.code == 0
    assert [line.split()[0] for line in shown.out.splitlines()] == ["STATE", "retired", "active"]
    assert cli("checkpoint").out.count("\u2014 ") == 1
    assert cli("key", "retire", second).code == 2


def test_an_older_copy_is_refused_and_goes_on_under_another_name(cli, path):
    cli.record()
    first = cli("checkpoint", "--json").data
    shutil.copyfile(path, f"{path}.older")
    cli.record()
    cli("checkpoint")
    Path(f"{path}-wal").unlink(missing_ok=True)
    shutil.copyfile(f"{path}.older", path)
    refused = cli("checkpoint", "--json")
    assert (refused.code, refused.error["code"]) == (1, "ERR_INTEGRITY")
    assert Path(refused.error["details"]["evidence"]).exists()
    assert cli("recover", "--adopt").code == 1
    signed = cli("recover", "--new-origin", "--reason", "restored", "--json").data
    assert signed["origin"] != first["origin"]
    assert cli("checkpoint", "--json").data == signed


def test_a_lost_guard_is_told_and_adopted(cli, home):
    cli.record()
    cli("checkpoint")
    shutil.rmtree(home / "state")
    refused = cli("checkpoint", "--json")
    assert (refused.code, refused.error["code"]) == (4, "ERR_GUARD_MISSING")
    assert cli("recover").code == 2
    assert cli("recover", "--adopt").code == 0
    assert cli("recover", "--adopt").code == 2
    assert cli("checkpoint").code == 0


def test_a_session_sealed_by_a_command_is_signed(cli, home):
    session = cli("session", "start", "--intent", "i", "--json").data["session_id"]
    cli.record("because", "--session", session)
    assert not (home / "keys").exists()
    assert cli("session", "seal", session).code == 0
    [guard] = (home / "state").glob("*/checkpoint")
    first = parse_checkpoint(guard.read_bytes()).claims.size
    assert cli("checkpoint").out.split("\n")[1] == str(first)


def test_the_log_is_published(cli, tmp_path):
    cli.record()
    done = cli("publish", "--to", str(tmp_path / "public"), "--json").data
    assert (done["size"], done["written"]) == (3, 1)
    note = (tmp_path / "public" / "checkpoint").read_text(encoding="utf-8")
    assert note == cli("checkpoint").out
    again = cli("publish", "--to", str(tmp_path / "public"))
    assert (again.code, "0 new files" in again.out) == (0, True)
    assert cli("publish").code == 2


def test_a_record_and_growth_are_proved(cli):
    record = cli.record()["id"]
    proof = cli("prove", record, "--json").data
    assert (proof["id"], proof["session"]) == (record, None)
    shown = cli("prove", record)
    assert proof["proof"] in shown.out
    assert cli("prove", "--growth", "1:2", "--json").data["new_size"] == 2
    assert "old_root" in cli("prove", "--growth", "1").out
    assert cli("prove", "nobody").code == 2
    assert cli("prove").code == 2
    assert cli("prove", "--growth", "x").code == 2
