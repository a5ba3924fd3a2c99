"""Attacks on keys, guards and copies: no second history is signed, and no stranger signs."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

import affidavit
from affidavit.apps import places, signing_files, wiring
from affidavit.core.checkpoint import check_checkpoint, parse_checkpoint
from affidavit.core.note import SigningKey, parse_verifier_key
from affidavit.errors import AffidavitError, CannotVerify, IntegrityViolation, StoreError
from contract.test_signing import copy_of, evidence, root_of, think


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_key_file_that_holds_something_else_is_told_of(ledger, home):
    ledger.checkpoint()
    [secret] = (home / "keys").iterdir()
    kept = secret.read_bytes()
    think(ledger)
    for wrong in (b"", b"nonsense\n", b"\xff\n", kept[:-10] + b"\n"):
        secret.write_bytes(wrong)
        with pytest.raises(StoreError, match="not a signing key") as caught:
            ledger.checkpoint()
        assert kept.decode()[-20:-1] not in str(caught.value)
    secret.write_bytes(kept)


def test_a_key_swapped_for_a_strangers_does_not_sign(ledger, home):
    signed = ledger.checkpoint()
    [secret] = (home / "keys").iterdir()
    kept = secret.read_bytes()
    think(ledger)
    for name in (signed.origin, "other.example"):
        secret.write_text(f"{SigningKey(name, bytes(32)).encode()}\n", encoding="utf-8")
        with pytest.raises(AffidavitError):
            ledger.checkpoint()
    assert len(ledger.list_keys()) == 1
    secret.write_bytes(kept)
    assert ledger.checkpoint().size == len(ledger)


def test_a_guard_put_back_to_an_earlier_note_goes_on_with_the_true_history(ledger, home):
    ledger.checkpoint()
    [guard] = (home / "state").glob("*/checkpoint")
    earlier = guard.read_bytes()
    think(ledger)
    newest = ledger.checkpoint()
    guard.write_bytes(earlier)
    assert ledger.checkpoint().root == newest.root


def test_an_older_copy_put_back_is_not_signed(path, home):
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
    older = copy_of(path, "older.db")
    with affidavit.open(path) as ledger:
        think(ledger)
        think(ledger)
        newest = ledger.checkpoint()
    shutil.copyfile(older, path)
    with wiring.open_ledger(path) as ledger:
        with pytest.raises(IntegrityViolation, match="nothing is signed") as caught:
            ledger.checkpoint()
        assert caught.value.details["finding"] == "tail_removed"
        assert caught.value.details["signed_size"] == newest.size
        [kept] = evidence(home)
        assert caught.value.details["evidence"] == str(kept)
        told = json.loads(kept.read_text(encoding="utf-8"))
        assert told["signed"] == newest.note
        assert told["found"]["size"] == len(ledger)
        # It is refused the same way once it has grown past what was signed: its root differs.
        for _ in range(5):
            think(ledger, "another past")
        with pytest.raises(IntegrityViolation) as caught:
            ledger.checkpoint()
        assert caught.value.details["finding"] == "fork"
        assert ledger.verify().valid


def test_a_copy_from_before_the_first_key_is_not_signed(path, home):
    with affidavit.open(path) as ledger:
        think(ledger)
    older = copy_of(path, "older.db")
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
    shutil.copyfile(older, path)
    with affidavit.open(path) as ledger, pytest.raises(IntegrityViolation):
        ledger.checkpoint()
    assert len(list((home / "keys").iterdir())) == 1
    with affidavit.open(path) as ledger:
        assert ledger.list_keys() == []


def test_of_two_copies_only_the_one_that_signed_first_goes_on(path, home):
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
    with wiring.open_ledger(copy_of(path, "copy.db")) as copied, affidavit.open(path) as ledger:
        think(ledger, "here")
        think(copied, "there")
        ledger.checkpoint()
        with pytest.raises(IntegrityViolation) as caught:
            copied.checkpoint()
        assert caught.value.details["finding"] == "fork"
        think(ledger)
        assert ledger.checkpoint().size == len(ledger)
        with pytest.raises(IntegrityViolation):
            copied.checkpoint()
        assert len(evidence(home)) == 2  # one for each size that was refused


def test_a_damaged_guard_is_no_guard_and_no_permission(ledger, home):
    ledger.checkpoint()
    [guard] = (home / "state").glob("*/checkpoint")
    guard.write_bytes(b"something else\n")
    think(ledger)
    for call in (ledger.checkpoint, lambda: ledger.recover("adopt")):
        with pytest.raises(CannotVerify, match="cannot be read"):
            call()
    assert ledger.recover("new-origin").size == len(ledger)


def test_a_guard_somebody_wrote_is_not_handed_out(ledger, home):
    signed = ledger.checkpoint()
    [guard] = (home / "state").glob("*/checkpoint")
    line = signed.note.rpartition(" ")[2]
    guard.write_text(signed.note.replace(line, line[:20] + "AAAA" + line[24:]), encoding="utf-8")
    with pytest.raises(IntegrityViolation):
        ledger.checkpoint()


def test_a_key_that_no_view_shows_is_not_followed_by_a_second_one(path, home):
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER key_changes_refuses_delete")
        connection.execute("DELETE FROM key_changes")
        connection.commit()
    with affidavit.open(path) as ledger, pytest.raises(IntegrityViolation, match="no view shows"):
        ledger.checkpoint()
    assert len(list((home / "keys").iterdir())) == 1


def test_a_guard_of_another_log_is_no_guard(ledger, home):
    signed = ledger.checkpoint()
    [guard] = (home / "state").glob("*/checkpoint")
    guard.write_text(signed.note.replace(signed.origin, "other.example"), encoding="utf-8")
    think(ledger)
    with pytest.raises(CannotVerify, match="holds a checkpoint of other"):
        ledger.checkpoint()
    guard.write_text(signed.note, encoding="utf-8")


def test_every_byte_of_a_guard_and_of_a_key_counts(path, home):
    """Whatever byte is changed: nothing is signed, or what is signed is the one true history."""
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
        [key] = [parse_verifier_key(key.vkey) for key in ledger.list_keys()]
    with wiring.open_ledger(path) as ledger:
        think(ledger)
        root = root_of(path, len(ledger))
        [guard] = (home / "state").glob("*/checkpoint")
        [secret] = (home / "keys").iterdir()
        kept = guard.read_bytes()
        for file in (guard, secret):
            data = file.read_bytes()
            for at in range(len(data)):
                file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
                try:
                    note = ledger.checkpoint().note
                except affidavit.AffidavitError:
                    continue
                signed = check_checkpoint(parse_checkpoint(note.encode()), [key])
                assert (signed.head.size, signed.head.root.hex()) == (len(ledger), root)
                guard.write_bytes(kept)
            file.write_bytes(data)
            guard.write_bytes(kept)


def test_an_origin_never_becomes_a_path(home):
    with signing_files.GuardFolder(places.state_folder).hold("../../../x") as guard:
        guard.write(b"note")
    [kept] = home.rglob("checkpoint")
    assert kept.is_relative_to(home / "state")


def test_an_older_ledger_put_back_together_with_its_guard_is_not_caught(path, home):
    """Whoever holds the later note, or publishes it, has the proof of two histories."""
    with affidavit.open(path) as ledger:
        ledger.checkpoint()
    older = copy_of(path, "older.db")
    [guard] = (home / "state").glob("*/checkpoint")
    earlier = guard.read_bytes()
    with affidavit.open(path) as ledger:
        think(ledger, "as it was")
        kept = ledger.checkpoint()
    shutil.copyfile(older, path)
    guard.write_bytes(earlier)
    with affidavit.open(path) as ledger:
        think(ledger, "as it is told now")
        told = ledger.checkpoint()
        assert (told.size, told.root == kept.root) == (kept.size, False)
        assert not ledger.verify(pinned=[kept.note]).valid
