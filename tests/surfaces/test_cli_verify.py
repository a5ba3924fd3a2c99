"""`affidavit verify`: the verdict, what it says it rests on, and what it admits."""

from __future__ import annotations

import io
import sys

import pytest

from affidavit.apps.cli.main import main

NOT_AUTHENTICATED = "not checked  nothing was authenticated"


@pytest.fixture
def session(cli):
    """A ledger with a sealed session of three records."""
    cli("session", "start", "--intent", "x", "--session", "s1")
    for number in range(3):
        cli.record(f"record {number}", "--session", "s1")
    cli("session", "seal", "s1")


@pytest.mark.usefixtures("session")
def test_a_sound_ledger_holds_and_says_that_nothing_was_authenticated(cli, path):
    ran = cli("verify")
    assert ran.code == 0
    assert ran.out.startswith(f"HOLDS: everything checked in {path} is as it was recorded\n")
    assert "checked      7 entries, 3 records, 1 session, 1 seal" in ran.out
    assert NOT_AUTHENTICATED in ran.out
    data = cli("verify", "--json").data
    assert (data["verdict"], data["valid"], data["findings"]) == ("holds", True, [])
    assert data["checked"]["entries"] == 7
    assert any("nothing was authenticated" in said for said in data["unchecked"])


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(("option", "name"), [("--session", "s1"), ("--task", "t1")])
def test_one_chain_holds_and_the_rest_is_said_to_be_unchecked(cli, option, name):
    ran = cli("verify", option, name)
    assert ran.code == 0
    assert f"HOLDS: every record found of {option[2:]} {name}" in ran.out
    assert f"checked      3 records of {option[2:]} {name}" in ran.out
    assert NOT_AUTHENTICATED in ran.out
    assert "only the records found in this chain" in ran.out
    data = cli("verify", option, name, "--json").data
    assert (data["verdict"], data["record_count"]) == ("holds", 3)


@pytest.mark.usefixtures("session")
def test_a_changed_record_is_a_violation_with_its_place(cli, tamper):
    tamper("UPDATE thought_records SET content = 'record 9' WHERE content = 'record 1'")
    ran = cli("verify")
    assert ran.code == 1
    assert ran.out.startswith("VIOLATION: ")
    assert "payload_mismatch  entry 3, thought_records.content" in ran.out
    assert NOT_AUTHENTICATED in ran.out
    [finding] = cli("verify", "--json").data["findings"]
    assert (finding["code"], finding["index"]) == ("payload_mismatch", 3)
    for words in (("--session", "s1"), ("--task", "t1")):
        chain = cli("verify", *words)
        assert chain.code == 1
        assert "VIOLATION: 1 of 3 records broken" in chain.out
        assert "first        entry 3, record " in chain.out
        data = cli("verify", *words, "--json").data
        assert (data["verdict"], data["first_broken_index"]) == ("violation", 3)


def test_an_empty_ledger_or_chain_is_no_evidence(cli):
    cli("init", "--set", "writeback=reflection")
    cli("settings", "--set", "writeback=any")
    for words in ((), ("--session", "s1"), ("--task", "t1")):
        ran = cli("verify", *words)
        assert ran.code == 3
        assert ran.out.startswith("NOTHING TO VERIFY: ")
        assert cli("verify", *words, "--json").data["verdict"] == "nothing to verify"


def test_an_empty_session_is_no_evidence(cli):
    cli("session", "start", "--intent", "x", "--session", "s1")
    assert cli("verify", "--session", "s1").code == 3
    assert cli("verify").code == 0


def test_an_emptied_ledger_is_a_violation_not_nothing(cli, tamper):
    cli.record()
    tamper("DELETE FROM thought_records")
    assert cli("verify").code == 1


def test_verifying_what_is_not_there_makes_nothing(cli, home):
    ran = cli("verify", "--json")
    assert (ran.code, ran.error["code"]) == (4, "ERR_STORE_UNAVAILABLE")
    assert not home.exists()


def test_one_chain_at_a_time(cli):
    assert cli("verify", "--session", "s1", "--task", "t1").code == 2


def test_many_findings_are_cut_for_people_and_counted(cli, tamper):
    for number in range(120):
        cli.record(f"record {number}")
    tamper("UPDATE thought_records SET content = content || '!'")
    ran = cli("verify")
    assert "VIOLATION: 120 findings" in ran.out
    assert ran.out.count("payload_mismatch") == 100
    assert "and 20 more" in ran.out
    assert len(cli("verify", "--json").data["findings"]) == 120


def test_names_in_a_verdict_cannot_reach_the_terminal(cli):
    cli("init")
    assert (
        "\x1b"
        not in cli("verify", "--task", "\x1b[2J").out + cli("verify", "--task", "\x1b[2J").err
    )


@pytest.mark.usefixtures("session")
def test_progress_is_drawn_on_a_terminal_only(cli, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert cli("verify").err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["verify"]) == 0
    drawn = terminal.getvalue()
    assert "verifying [" in drawn
    assert drawn.endswith("\r\x1b[K")
