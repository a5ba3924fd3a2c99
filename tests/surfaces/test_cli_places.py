"""Where the command line keeps things, and which ledger it means."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from affidavit.apps import places
from affidavit.errors import InputError, StoreError

FOLDERS = ("data", "state", "keys")


def folders():
    return [getattr(places, f"{name}_folder")() for name in FOLDERS]


def test_one_variable_puts_everything_under_one_folder(home):
    assert folders() == [home / name for name in FOLDERS]
    assert places.ledger_path() == str(home / "data" / "ledger.db")


def test_one_variable_may_be_relative_or_start_at_home(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AFFIDAVIT_HOME", "here")
    assert places.data_folder() == tmp_path / "here" / "data"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AFFIDAVIT_HOME", "~/there")
    assert places.data_folder() == tmp_path / "there" / "data"


def test_without_it_the_folders_of_the_xdg_specification(monkeypatch, tmp_path):
    monkeypatch.delenv("AFFIDAVIT_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, variable, default, inside in (
        ("data", "XDG_DATA_HOME", ".local/share", "affidavit"),
        ("state", "XDG_STATE_HOME", ".local/state", "affidavit"),
        ("keys", "XDG_CONFIG_HOME", ".config", "affidavit/keys"),
    ):
        folder = getattr(places, f"{name}_folder")
        assert folder() == tmp_path / default / inside
        monkeypatch.setenv(variable, str(tmp_path / name))
        assert folder() == tmp_path / name / inside
        monkeypatch.setenv(variable, "relative/is/ignored")
        assert folder() == tmp_path / default / inside


def test_on_a_mac_the_folder_of_that_system(monkeypatch, tmp_path):
    monkeypatch.delenv("AFFIDAVIT_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    support = tmp_path / "Library" / "Application Support" / "affidavit"
    for name in FOLDERS:
        assert places._folder(name, "darwin") == support / name


def test_keys_are_never_below_the_data(monkeypatch, tmp_path):
    for variable in ("AFFIDAVIT_HOME", None):
        if variable is None:
            monkeypatch.delenv("AFFIDAVIT_HOME")
            monkeypatch.setenv("HOME", str(tmp_path))
        assert not places.keys_folder().is_relative_to(places.data_folder())


def test_nothing_is_made_by_asking(home):
    folders()
    places.ledger_path()
    assert not home.exists()


def test_the_ledger_is_the_one_named_then_the_variable_then_the_users_own(
    cli, monkeypatch, tmp_path, path
):
    named, variable = str(tmp_path / "named.db"), str(tmp_path / "variable.db")
    assert cli("init", "--json").data["ledger"] == path
    monkeypatch.setenv("AFFIDAVIT_LEDGER", variable)
    assert cli("init", "--json").data["ledger"] == variable
    assert cli("init", "--ledger", named, "--json").data["ledger"] == named
    monkeypatch.setenv("AFFIDAVIT_LEDGER", "")
    assert cli("--json").data["ledger"] == path
    for place in (named, variable, path):
        assert Path(place).exists()


def test_a_relative_ledger_is_shown_whole(cli, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli("init", "--ledger", "here.db", "--json").data["ledger"] == str(tmp_path / "here.db")


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places.ledger_path("~/x.db") == str(tmp_path / "x.db")
    with pytest.raises(InputError, match="no user"):
        places.ledger_path("~no-such-user-here/x.db")


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("AFFIDAVIT_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(StoreError) as caught:
        places.ledger_path()
    assert "AFFIDAVIT_HOME" in caught.value.hint


def test_places_are_cheap_to_ask():
    code = "import sys; import affidavit.apps.places; print(int('sqlite3' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
