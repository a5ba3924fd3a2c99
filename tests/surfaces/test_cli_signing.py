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
