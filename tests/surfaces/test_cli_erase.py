"""`affidavit erase` on the command line: it shows, asks, and takes away."""

import shutil
from pathlib import Path

import affidavit


def record(cli, text="about Jane Doe"):
    return cli.record(text)["id"]


def test_without_a_yes_nothing_is_erased(cli):
    record(cli)
    asked = cli("erase", "--matching", "Jane Doe")
    assert asked.code == 2
    assert "nothing was erased: 1 text, 14 bytes" in asked.err
    assert "--yes" in asked.err
    assert "about Jane Doe" in cli("thoughts").out


def test_with_a_yes_it_is_gone(cli):
    one = record(cli)
    done = cli("erase", "--record", one, "--yes", "--by", "owner", "--reason", "asked")
    assert (done.code, done.out.splitlines()[0]) == (0, "Erased 1 text")
    assert "(erased)" in cli("thoughts").out
    assert cli("verify").code == 0
    assert cli("erase", "--record", one, "--yes").out == "There is nothing to erase.\n"


def test_names_stay_and_that_is_said(cli):
    cli("record", "--type", "plan", "--task", "jane", "--agent", "a", "jane did it")
    said = cli("erase", "--matching", "jane", "--yes").out
    assert "1 entry of the log itself say it in a name; names cannot be erased." in said


def test_who_erases_is_this_user_where_nobody_is_named(cli, path):
    record(cli)
    cli("erase", "--matching", "Jane", "--yes")
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.list_entries()[-1].body["by"]


def restore_what_was_erased(cli, path):
    one = record(cli)
    cli("init")
    backup = f"{path}.backup"
    shutil.copy(path, backup)
    assert cli("erase", "--record", one, "--yes").code == 0
    shutil.copy(backup, path)


def test_a_restored_backup_shows_nothing_that_was_erased(cli, path):
    restore_what_was_erased(cli, path)
    shown = cli("thoughts")
    assert "(erased)" in shown.out
    assert "Jane Doe" not in shown.out
    assert b"Jane Doe" not in Path(path).read_bytes()
    assert cli("verify").code == 0


def test_verifying_changes_nothing_and_says_that_erased_texts_are_back(cli, path):
    restore_what_was_erased(cli, path)
    before = Path(path).read_bytes()
    said = cli("verify")
    assert "erased texts are in this file" in said.err
    assert Path(path).read_bytes() == before
    assert "Jane Doe" not in cli("thoughts").out


def test_doctor_says_that_erased_texts_are_back(cli, path):
    restore_what_was_erased(cli, path)
    assert "erased texts are in this file" in cli("doctor").out
    cli("thoughts")
    assert "nothing that was erased is in the file" in cli("doctor").out
