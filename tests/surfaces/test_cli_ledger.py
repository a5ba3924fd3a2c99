"""The commands about a ledger as a whole: the welcome, init, settings, rebuild, version."""

from __future__ import annotations

import platform
import sqlite3
import stat
from pathlib import Path

import affidavit


def test_alone_it_names_three_commands_the_ledger_and_whether_it_is_there(cli, path):
    ran = cli()
    assert ran.code == 0
    assert f"{path} (does not exist yet)" in ran.out
    commands = [line.split()[1] for line in ran.out.splitlines() if line.startswith("  affidavit ")]
    assert commands == ["init", "record", "verify"]
    assert not Path(path).exists()
    cli("init")
    assert f"{path} (exists)" in cli().out


def test_alone_with_a_ledger_it_names_that_one_in_every_command(cli, tmp_path):
    other = str(tmp_path / "it's here.db")
    ran = cli("--ledger", other, "--json")
    assert ran.data["ledger"] == other
    assert ran.data["exists"] is False
    assert [one["command"].split()[1] for one in ran.data["next"]] == ["--ledger"] * 3


def test_the_commands_of_the_welcome_work_as_they_stand(cli, run_cli):
    import shlex

    for one in cli("--json").data["next"]:
        words = shlex.split(one["command"])
        assert run_cli(*words[1:]).code == 0, one


def test_init_makes_a_ledger_that_keeps_payloads_and_says_how_to_refuse(cli, path):
    ran = cli("init")
    assert ran.code == 0
    said = [line for line in ran.out.splitlines() if "payloads=keep)" in line]
    assert len(said) == 1
    assert "affidavit init --payloads hash" in said[0]
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.settings["payloads"] == "keep"
        assert len(ledger) == 1


def test_init_refusing_payloads_says_nothing_about_keeping_them(cli):
    ran = cli("init", "--payloads", "hash", "--set", "writeback=reflection")
    assert "is kept" not in ran.out
    now = cli("settings", "--json").data["settings"]
    assert (now["payloads"], now["writeback"]) == ("hash", "reflection")


def test_init_of_an_existing_ledger_shows_it_and_changes_nothing(cli, path):
    cli("init", "--payloads", "hash")
    before = Path(path).read_bytes()
    ran = cli("init")
    assert ran.code == 0
    assert "There is a ledger already" in ran.out
    assert "payloads=hash" in ran.out
    assert "Nothing was changed" in ran.out
    assert Path(path).read_bytes() == before
    data = cli("init", "--json").data
    assert (data["created"], data["changed"], data["entries"]) == (False, {}, 1)


def test_init_of_an_existing_ledger_changes_what_is_said_and_records_it(cli):
    cli("init")
    data = cli("init", "--payloads", "hash", "--set", "session_idle_hours=48", "--json").data
    assert data["changed"] == {"payloads": "hash", "session_idle_hours": 48}
    assert data["entries"] == 3
    again = cli("init", "--payloads", "hash")
    assert "Changed: nothing" in again.out


def test_init_with_a_wrong_setting_makes_nothing(cli, path):
    for word in ("nonsense=1", "by=me", "writeback=sometimes", "writeback", "payloads="):
        ran = cli("init", "--set", word)
        assert ran.code == 2, word
        assert not Path(path).exists()


def test_settings_are_explained_and_changed_with_a_name(cli, path):
    cli("init")
    ran = cli("settings")
    for name, value in cli("settings", "--json").data["settings"].items():
        assert f"{name} = {value}" in ran.out
    changed = cli("settings", "--set", "transitions=strict", "--by", "kim", "--json").data
    assert changed["settings"]["transitions"] == "strict"
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name, changed_by FROM setting_changes").fetchall()
    connection.close()
    assert rows == [("transitions", "kim")]


def test_settings_say_what_a_value_may_be(cli):
    cli("init")
    assert "1 to 8783" in cli("settings", "--set", "session_idle_hours=none").err
    assert (
        "payload_paths, payloads, publish, redaction, retain_proposal_days, retain_tool_call_days, "
        "retain_turn_days, session_idle_hours" in cli("settings", "--set", "idempotency_key=x").err
    )
    assert "nothing to change" in cli("settings", "--by", "kim").err


def test_rebuild_of_a_sound_ledger_changes_nothing(cli):
    cli.record()
    for words in (["rebuild", "--check"], ["rebuild"]):
        ran = cli(*words)
        assert (ran.code, ran.out) == (0, "Every table is what the log says.\n")


def test_rebuild_says_what_differs_and_puts_it_right(cli, tamper):
    cli.record()
    tamper("UPDATE thought_records SET agent_id = 'someone'")
    checked = cli("rebuild", "--check")
    assert checked.code == 1
    assert "1 difference" in checked.out
    assert "nothing was changed" in checked.out
    assert "entry 1, thought_records.agent_id" in checked.out
    repaired = cli("rebuild")
    assert repaired.code == 0
    assert "all were put right" in repaired.out
    assert cli("rebuild", "--check").code == 0
    cli.must_verify = True


def test_rebuild_never_claims_to_have_brought_back_a_lost_text(cli, tamper):
    cli.record()
    tamper("DELETE FROM thought_records")
    ran = cli("rebuild", "--json")
    assert ran.code == 1
    assert ran.data["remaining_count"] > 0
    assert "cannot be put right" in cli("rebuild").out


def test_version_names_all_that_decides_how_it_behaves(cli):
    ran = cli("version")
    for part in (affidavit.__version__, platform.python_version(), sqlite3.sqlite_version):
        assert part in ran.out
    assert cli("--version").out == ran.out
    assert cli("version", "--json").data["affidavit"] == affidavit.__version__
