"""Checkpoints and keys: one history under one name, whatever copies of a ledger are about."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import affidavit
from affidavit.apps import places, signing_files, wiring
from affidavit.core.checkpoint import check_checkpoint, parse_checkpoint
from affidavit.core.merkle import leaf_hash, tree_root
from affidavit.core.note import check_note, parse_note, parse_verifier_key
from affidavit.errors import (
    CannotVerify,
    ConflictError,
    InputError,
    IntegrityViolation,
    StoreError,
)
from contract.oracle import log


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def think(ledger, content="because"):
    return ledger.record_thought(type="plan", task_id="t", agent_id="a", content=content)


def key_of(ledger):
    return next(key for key in reversed(ledger.list_keys()) if key.state == "active")


def copy_of(path, name):
    """What somebody has who copied the file at rest."""
    target = str(Path(path).with_name(name))
    shutil.copyfile(path, target)
    return target


def root_of(path, size):
    return tree_root([leaf_hash(entry.raw) for entry in log(path)[:size]]).hex()


def evidence(home):
    return sorted((home / "state").glob("*/evidence/*"))


def test_the_first_checkpoint_makes_a_key_and_covers_it(ledger, path):
    think(ledger)
    signed = ledger.checkpoint()
    [key] = ledger.list_keys()
    assert (key.state, key.added_index, key.here) == ("active", 2, True)
    assert signed.size == len(ledger) == 3
    assert signed.root == root_of(path, 3)
    assert signed.origin == log(path)[0].body["origin"]
    [added] = [entry for entry in log(path) if entry.kind == "key.added"]
    assert added.body == {"vkey": key.vkey, "by": None, "reason": None}
    found = check_checkpoint(parse_checkpoint(signed.note.encode()), [parse_verifier_key(key.vkey)])
    assert found.head.root.hex() == signed.root


def test_nothing_new_is_the_same_note_and_something_new_another(ledger, path):
    first = ledger.checkpoint()
    assert ledger.checkpoint() == first
    think(ledger)
    second = ledger.checkpoint()
    assert (second.size, second.root) == (first.size + 1, root_of(path, first.size + 1))
    assert len(ledger.list_keys()) == 1


def test_secrets_are_for_this_user_alone_and_outside_of_the_data(ledger, path, home):
    ledger.checkpoint()
    [secret] = (home / "keys").iterdir()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert not secret.is_relative_to(places.data_folder())
    text = secret.read_text(encoding="ascii").strip()
    assert text.startswith("PRIVATE+KEY+affidavit.local/")
    assert text.rsplit("+", 1)[1].encode() not in Path(path).read_bytes()
    for file in (home / "state").rglob("*"):
        if file.is_file():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_process_without_the_key_says_so_and_makes_no_other(ledger, home):
    ledger.checkpoint()
    [secret] = (home / "keys").iterdir()
    secret.rename(home / "away")
    think(ledger)
    with pytest.raises(ConflictError, match="is not on this machine") as caught:
        ledger.checkpoint()
    assert caught.value.code == "ERR_KEY_MISSING"
    assert list((home / "keys").iterdir()) == []
    assert [key.here for key in ledger.list_keys()] == [False]
    think(ledger)  # recording goes on
    (home / "away").rename(secret)
    assert ledger.checkpoint().size == len(ledger)


def test_a_second_key_signs_beside_the_first_and_then_alone(ledger):
    ledger.checkpoint()
    [first] = ledger.list_keys()
    second = ledger.add_key(by="ann", reason="the laptop was replaced")
    keys = [parse_verifier_key(key.vkey) for key in (first, second)]
    both = parse_note(ledger.checkpoint().note.encode())
    assert [one.key for one in check_note(both, keys).signatures] == keys
    retired = ledger.retire_key(first.vkey, by="ann", reason="sold")
    assert (retired.state, retired.retired_index) == ("retired", len(ledger) - 1)
    alone = parse_note(ledger.checkpoint().note.encode())
    assert [one.key for one in check_note(alone, keys).signatures] == keys[1:]
    with pytest.raises(CannotVerify):
        check_note(alone, keys[:1])


def test_the_last_key_and_an_unknown_one_cannot_be_retired(ledger):
    ledger.checkpoint()
    [key] = ledger.list_keys()
    with pytest.raises(InputError, match="no other key"):
        ledger.retire_key(key.vkey)
    with pytest.raises(InputError, match="not a key that signs"):
        ledger.retire_key(key.vkey[:-1])
    ledger.add_key()
    ledger.retire_key(key.vkey)
    with pytest.raises(InputError, match="not a key that signs"):
        ledger.retire_key(key.vkey)


def test_a_new_key_that_never_signed_does_not_let_the_old_one_go(ledger, monkeypatch):
    ledger.checkpoint()
    [first] = ledger.list_keys()
    # As if the process had died between the entry and the checkpoint after it.
    monkeypatch.setattr("affidavit.ledger.checkpoints.checkpoint", lambda _: None)
    ledger.add_key()
    monkeypatch.undo()
    with pytest.raises(InputError, match="no other key has signed"):
        ledger.retire_key(first.vkey)


def test_the_same_refusal_keeps_its_evidence_once(path, home):
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
    older = copy_of(path, "older.db")
    with affidavit.open(path) as ledger:
        think(ledger)
        ledger.checkpoint()
    with affidavit.open(older) as ledger:
        for _ in range(3):
            with pytest.raises(IntegrityViolation):
                ledger.checkpoint()
    assert len(evidence(home)) == 1


def test_a_copy_goes_on_under_a_name_and_a_key_of_its_own(path, home):
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
    older = copy_of(path, "older.db")
    with affidavit.open(path) as ledger:
        think(ledger)
        newest = ledger.checkpoint()
    with affidavit.open(older) as other:
        with pytest.raises(IntegrityViolation):
            other.checkpoint()
        with pytest.raises(IntegrityViolation):  # that would be a second history
            other.recover("adopt")
        signed = other.recover("new-origin", reason="restored after the disk broke")
        assert (signed.origin == newest.origin, signed.size) == (False, len(other))
        [changed] = [entry for entry in log(older) if entry.kind == "origin.changed"]
        assert changed.body["old_origin"] == newest.origin
        assert (changed.body["old_size"], changed.body["old_root"]) == (newest.size, newest.root)
        assert changed.body["origin"] == signed.origin
        [key] = other.list_keys()
        assert parse_verifier_key(key.vkey).name == signed.origin
        think(other)
        assert other.checkpoint().origin == signed.origin
        assert other.verify().valid
    with affidavit.open(path) as ledger:  # and the newest copy is not disturbed
        think(ledger)
        assert ledger.checkpoint().origin == newest.origin


def test_without_its_guard_a_signed_ledger_waits_for_a_person(ledger, path, home):
    ledger.checkpoint()
    shutil.rmtree(home / "state")
    think(ledger)
    with pytest.raises(ConflictError) as caught:
        ledger.checkpoint()
    assert caught.value.code == "ERR_GUARD_MISSING"
    think(ledger)
    size = len(ledger)
    signed = ledger.recover("adopt", reason="the state folder was not copied")
    assert signed.size == len(ledger) == size + 1
    [changed] = [entry for entry in log(path) if entry.kind == "origin.changed"]
    assert changed.body["origin"] == changed.body["old_origin"] == signed.origin
    assert (changed.body["old_size"], changed.body["old_root"]) == (size, root_of(path, size))
    think(ledger)
    assert ledger.checkpoint().size == len(ledger)


def test_there_is_nothing_to_adopt_where_signing_works(ledger):
    with pytest.raises(InputError, match="nothing to adopt"):
        ledger.recover("adopt")
    ledger.checkpoint()
    with pytest.raises(InputError, match="nothing to adopt"):
        ledger.recover("adopt")
    with pytest.raises(InputError, match="how: "):
        ledger.recover("somehow")


def test_keys_and_guards_that_cannot_be_written_leave_the_ledger_as_it_is(ledger, home):
    home.mkdir()
    (home / "keys").write_text("a file, not a folder", encoding="utf-8")
    with pytest.raises(StoreError):
        ledger.checkpoint()
    assert ledger.list_keys() == []
    (home / "keys").unlink()
    (home / "state").rename(home / "gone")
    (home / "state").write_text("a file, not a folder", encoding="utf-8")
    with pytest.raises(StoreError):
        ledger.checkpoint()
    assert ledger.list_keys() == []
    think(ledger)


def test_who_waits_too_long_for_the_guard_is_told(ledger, home, monkeypatch):
    origin = ledger.checkpoint().origin
    monkeypatch.setattr(signing_files, "LOCK_WAIT_S", 0.05)
    with (
        signing_files.GuardFolder(places.state_folder).hold(origin),
        pytest.raises(StoreError) as caught,
    ):
        ledger.checkpoint()
    assert caught.value.code == "ERR_STORE_LOCKED"


def test_a_reader_signs_but_makes_no_key(path, home):
    with affidavit.open(path) as ledger:
        think(ledger)
    with affidavit.open(path, readonly=True) as reader:
        for call in (reader.checkpoint, lambda: reader.recover("new-origin")):
            with pytest.raises(ConflictError) as caught:
                call()
            assert caught.value.code == "ERR_READONLY"
    assert not (home / "keys").exists()
    with affidavit.open(path) as ledger:
        signed = ledger.checkpoint()
    with affidavit.open(path, readonly=True) as reader:
        assert reader.checkpoint() == signed
        with pytest.raises(ConflictError):
            reader.add_key()
    assert len(list((home / "keys").iterdir())) == 1


def seal(ledger):
    session = ledger.start_session(intent="i").session_id
    ledger.record_thought(type="plan", task_id="t", agent_id="a", content="c", session_id=session)
    return ledger.seal_session(session)


def guarded_size(home):
    [guard] = (home / "state").glob("*/checkpoint")
    return parse_checkpoint(guard.read_bytes()).claims.size


def test_a_ledger_with_a_key_is_signed_at_every_seal_and_when_it_is_closed(path, home):
    with affidavit.open(path) as ledger:
        assert seal(ledger).warnings == ledger_warnings(ledger)
        assert not (home / "keys").exists()  # nobody asked for a key
        ledger.checkpoint()
        think(ledger)
        seal(ledger)
        assert guarded_size(home) == len(ledger)
        think(ledger)
        size = len(ledger)
        assert guarded_size(home) == size - 1
    assert guarded_size(home) == size
    with affidavit.open(path) as ledger:
        pass
    with wiring.open_ledger(path) as ledger:  # as a command of a moment opens it
        think(ledger)
    assert guarded_size(home) == size


def ledger_warnings(ledger):
    """What a seal says of a session without a closing reflection, and nothing else."""
    session = ledger.start_session(intent="i").session_id
    ledger.record_thought(type="plan", task_id="t", agent_id="a", content="c", session_id=session)
    return ledger.seal_session(session).warnings


def test_a_seal_stands_though_it_cannot_be_signed(path, home):
    ledger = affidavit.open(path)
    before = ledger_warnings(ledger)
    ledger.checkpoint()
    [secret] = (home / "keys").iterdir()
    secret.rename(home / "away")
    sealed = seal(ledger)
    assert [said for said in sealed.warnings if said not in before] == [sealed.warnings[-1]]
    assert "not signed" in sealed.warnings[-1]
    with pytest.warns(RuntimeWarning, match="not signed"):
        ledger.close()
    with affidavit.open(path) as ledger:
        assert ledger.merkle_root(sealed.session_id).root == sealed.root
        (home / "away").rename(secret)
        assert ledger.checkpoint().size == len(ledger)


def test_a_seal_waits_only_a_moment_for_who_signs(ledger, home, monkeypatch):
    origin = ledger.checkpoint().origin
    monkeypatch.setattr(signing_files, "HURRY_S", 0.05)
    with signing_files.GuardFolder(places.state_folder).hold(origin):
        assert "another process has been signing" in seal(ledger).warnings[-1]


def test_reasons_are_payloads_and_checked_like_any_other(ledger, path):
    ledger.checkpoint()
    with pytest.raises(InputError, match="reason"):
        ledger.add_key(reason="")
    with pytest.raises(InputError, match="reason"):
        ledger.add_key(reason=7)
    with pytest.raises(InputError, match="by"):
        ledger.add_key(by="")
    ledger.add_key(reason="a word nobody else says")
    with closing(sqlite3.connect(path)) as connection:
        entries = b"".join(row[0] for row in connection.execute("SELECT entry FROM log"))
    assert b"nobody else" not in entries
    assert ledger.verify().checked["payloads"] == 1


def test_opening_and_recording_never_load_the_cryptography():
    said = "import affidavit, sys; l = affidavit.open(':memory:'); l.start_session(intent='i')"
    said += "; print('cryptography' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", said], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == "False\n"
