"""Recording decisions from the shell, and reading them again."""

from __future__ import annotations

from pathlib import Path

import pytest

import affidavit

RECORD = ("record", "--type", "plan", "--task", "t1", "--agent", "a1")


def test_a_record_is_in_the_ledger_as_it_was_given(cli, path):
    data = cli.record("B, because the index fits in memory")
    assert (data["type"], data["task_id"], data["agent_id"]) == ("decision", "t1", "a1")
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.get_thought(data["id"]).to_dict() == data


def test_its_entry_says_that_it_came_in_through_the_command_line(cli, path):
    import json
    import sqlite3

    cli.record()
    connection = sqlite3.connect(path)
    entries = connection.execute("SELECT entry FROM log ORDER BY log_index").fetchall()
    connection.close()
    src = {"auth": "none", "client": None, "via": "cli"}
    assert [json.loads(entry)["src"] for (entry,) in entries] == [src, src]


def test_plain_text_names_the_record_and_the_ledger(cli, path):
    ran = cli(*RECORD, "why")
    assert ran.out.startswith("Recorded plan ")
    assert path in ran.out


def test_the_first_record_says_that_it_made_a_ledger(cli, path):
    assert f"made a new ledger, {path}" in cli(*RECORD, "why").err
    assert cli(*RECORD, "why again").err == ""
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.settings["payloads"] == "hash"


@pytest.mark.parametrize("word", [("-",), ()], ids=["dash", "nothing"])
def test_content_comes_from_standard_input_unchanged(cli, word):
    text = "two lines\r\n\tand a tab, ä 漢\n"
    data = cli(*RECORD, *word, "--json", stdin=text.encode()).data
    assert data["content"] == text


def test_content_that_looks_like_an_option_follows_two_dashes(cli):
    assert cli(*RECORD, "--json", "--", "--json").data["content"] == "--json"
    ran = cli(*RECORD, "--", "--json")
    assert ran.out.startswith("Recorded")


@pytest.mark.parametrize("stdin", [b"", b"\xff\xfe", b"a\x00b"], ids=["empty", "latin", "nul"])
def test_unfit_standard_input_is_refused(cli, stdin):
    ran = cli(*RECORD, "-", "--json", stdin=stdin)
    assert ran.code == 2
    assert ran.error["details"]["field"] == "content"


def test_too_much_standard_input_is_refused_with_the_limit(cli):
    ran = cli(*RECORD, "-", stdin=b"x" * (16 * 1024 * 1024 + 1))
    assert ran.code == 2
    assert "16,777,216" in ran.err


def test_a_missing_text_on_a_terminal_is_refused_instead_of_waiting(cli, monkeypatch, capsys):
    import sys

    from affidavit.apps.cli.main import main

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(RECORD) == 2
    assert "content: is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("record", "--task", "t", "--agent", "a", "x"),
        ("record", "--type", "plan", "--agent", "a", "x"),
        ("record", "--type", "plan", "--task", "t", "x"),
        ("record", "--type", "thought", "--task", "t", "--agent", "a", "x"),
        (*RECORD, "x", "y"),
        (*RECORD, "x", "--sess", "s"),
    ],
)
def test_a_wrong_call_is_refused_before_a_ledger_is_made(cli, path, words):
    ran = cli(*words)
    assert ran.code == 2
    assert "hint: See `affidavit" in ran.err
    assert not Path(path).exists()


def test_names_that_cannot_be_are_refused_by_name(cli):
    cli("init")
    for option in ("--task", "--agent", "--session"):
        ran = cli(*RECORD, option, "a\nb", "x")
        assert ran.code == 2
        assert "control character" in ran.err


def test_a_session_that_is_not_there_is_not_opened_by_a_typo(cli):
    ran = cli(*RECORD, "--session", "s9", "x", "--json")
    assert (ran.code, ran.error["code"]) == (2, "ERR_SESSION_NOT_FOUND")


def test_an_idempotency_key_makes_a_retry_safe(cli):
    first = cli.record("once", "--idempotency-key", "k1")
    assert cli.record("once", "--idempotency-key", "k1") == first
    other = cli(*RECORD, "twice", "--idempotency-key", "k1", "--json")
    assert other.error["code"] == "ERR_IDEMPOTENCY_MISMATCH"
    assert len(cli("thoughts", "--json").data["thoughts"]) == 1


def test_thoughts_are_filtered_and_paged(cli):
    first = cli.record("one")
    second = cli.record("two", type="reflection")
    cli(*RECORD[:4], "t2", "--agent", "a2", "three")

    def shown(*words):
        return [one["content"] for one in cli("thoughts", *words, "--json").data["thoughts"]]

    assert shown() == ["one", "two", "three"]
    assert shown("--task", "t1") == ["one", "two"]
    assert shown("--type", "reflection") == ["two"]
    assert shown("--after", first["id"]) == ["two", "three"]
    assert shown("--after", first["id"], "--limit", "1") == ["two"]
    assert shown("--session", "none") == []
    plain = cli("thoughts", "--after", second["id"]).out
    assert "three" in plain
    assert "two" not in plain


def test_thoughts_of_a_session(cli):
    cli("session", "start", "--intent", "try", "--session", "s1")
    cli.record("inside", "--session", "s1")
    cli.record("outside")
    [one] = cli("thoughts", "--session", "s1", "--json").data["thoughts"]
    assert (one["content"], one["session_seq"]) == ("inside", 0)
    assert "session s1" in cli("thoughts").out


def test_no_thoughts_is_said(cli):
    cli("init")
    ran = cli("thoughts")
    assert (ran.code, ran.out) == (0, "No records.\n")


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_that_makes_no_sense_is_refused(cli, limit):
    cli("init")
    ran = cli("thoughts", "--limit", limit)
    assert ran.code == 2
    assert "limit" in ran.err


def test_a_record_cannot_reach_the_terminal(cli):
    evil = (
        "\x1b[31mred\x07 \x9b2J \u202egnp.exe \x7f\n2026-01-01T00:00:00.000Z  plan by boss, task t1"
    )
    cli.record(evil)
    ran = cli("thoughts")
    lines = ran.out.splitlines()
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for line in lines for char in line)
    assert "\u202e" not in ran.out
    assert "    \\x1b[31mred\\x07 \\x9b2J \\u202egnp.exe \\x7f" in lines
    # What pretends to be a heading stays behind the margin.
    assert "    2026-01-01T00:00:00.000Z  plan by boss, task t1" in lines
    [one] = cli("thoughts", "--json").data["thoughts"]
    assert one["content"] == evil


@pytest.mark.parametrize(
    "words",
    [
        ("record", "--type", "plan", "--task", "t", "--agent", "a", ""),
        ("record", "--type", "plan", "--task", "", "--agent", "a", "x"),
        ("record", "--type", "plan", "--task", "t", "--agent", "a", "--session", "nope", "x"),
        ("task", "create", "--title", ""),
        ("task", "create", "--title", "x", "--status", "DONE"),
        ("session", "start", "--intent", ""),
        ("session", "start", "--intent", "x", "--continues", "nope"),
    ],
    ids=" ".join,
)
def test_a_refused_call_makes_no_ledger(cli, path, words):
    assert cli(*words).code == 2
    assert not Path(path).exists()
