"""Exit codes and errors: one table, one shape, nothing foreign."""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path
from typing import get_args

import pytest

from affidavit.apps.cli import arguments, noun_arguments, observed_arguments, version
from affidavit.apps.cli.arguments import build_parser
from affidavit.apps.cli.parsing import list_commands
from affidavit.apps.cli.render import table
from affidavit.apps.plain import one_line, plain
from affidavit.errors import CODES, AffidavitError

# Every command with words that make it work in a ledger that has session s1, task T and key K.
EVERY_COMMAND = [
    (),
    ("init",),
    ("settings",),
    ("record", "--type", "plan", "--task", "t1", "--agent", "a1", "why"),
    ("thoughts",),
    ("session", "start", "--intent", "more"),
    ("session", "list"),
    ("session", "show", "s1"),
    ("session", "seal", "s1"),
    ("session", "root", "s1"),
    ("session", "end", "s1"),
    ("task", "create", "--title", "more"),
    ("task", "get", "T"),
    ("task", "list"),
    ("task", "update", "T", "--title", "x"),
    ("task", "transition", "T", "GATHER"),
    ("task", "next"),
    ("task", "delete", "T"),
    ("turn", "add", "U", "--message", "U", "--kind", "user", "hello"),
    ("turn", "show", "V"),
    ("turn", "list"),
    ("turn", "retract", "V"),
    ("call", "request", "U", "c2", "--vendor", "v", "--tool", "t", "--arguments", "{}"),
    ("call", "finish", "V", "c1", "completed"),
    ("call", "show", "V", "c1"),
    ("call", "history", "V", "c1"),
    ("call", "list"),
    ("call", "decide", "V", "c1", "approved", "--by", "me"),
    ("proposal", "create", "U", "--diffs", "[]"),
    ("proposal", "decide", "V", "approved", "--by", "me"),
    ("proposal", "apply", "W"),
    ("proposal", "revert", "X"),
    ("proposal", "show", "V"),
    ("proposal", "list"),
    ("orphans",),
    ("usage",),
    ("settled",),
    ("export", "--session", "s1", "-o", "F"),
    ("coverage", "s1"),
    ("show", "s1"),
    ("why", "a.py"),
    ("search", "why"),
    ("tail",),
    ("size",),
    ("diff", "s1", "s1"),
    ("erase", "--record", "R", "--yes"),
    ("retain",),
    ("verify",),
    ("pin", "C"),
    ("checkpoint",),
    ("publish", "--to", "D"),
    ("prove", "R"),
    ("key", "show"),
    ("key", "add"),
    ("key", "retire", "K"),
    ("recover", "--new-origin"),
    ("rebuild",),
    ("doctor",),
    ("version",),
]
# Also from the schemas, and shown to nobody who has not got a ledger.
MAKES_A_LEDGER = (
    *("init", "record", "session start", "task create"),
    *("turn add", "call request", "proposal create"),
)
# They need a client, or run until a signal comes, and have tests of their own.
SERVERS = {"mcp", "serve", "signer", "hook", "proxy", "connect", "disconnect", "import"}
NEEDS_NO_LEDGER = ("", "version", "doctor", "pin")
NOUNS = {"session", "task", "key", "turn", "call", "proposal"}
# What the words U, V, W and X stand for: an id nobody used, and three that were.
UUIDS = {name: f"00000000-0000-4000-8000-00000000000{n}" for n, name in enumerate("UVWX")}


def name_of(words):
    return " ".join(words[:2] if words and words[0] in NOUNS else words[:1])


def test_the_list_of_commands_in_these_tests_is_whole():
    parsers = list_commands(build_parser())
    leaves = {one.prog.removeprefix("affidavit").strip() for one in parsers}
    assert leaves - NOUNS - SERVERS == {name_of(words) for words in EVERY_COMMAND}


@pytest.fixture
def ready(cli, tmp_path):
    """A ledger with a session that can be sealed, and a task; words with ids put in."""
    cli("session", "start", "--intent", "x", "--session", "s1")
    record = cli.record("why", "--session", "s1", type="reflection")["id"]
    task = cli("task", "create", "--title", "x", "--json").data["id"]

    def observe():
        turn, asked = UUIDS["V"], ("--vendor", "v", "--tool", "t", "--arguments", "{}")
        cli("turn", "add", turn, "--message", turn, "--kind", "user", "hello")
        cli("call", "request", turn, "c1", *asked)
        for name, steps in (("V", 0), ("W", 1), ("X", 2)):
            cli("proposal", "create", UUIDS[name], "--diffs", "[]")
            moves = (("decide", UUIDS[name], "approved", "--by", "me"), ("apply", UUIDS[name]))
            for move in moves[:steps]:
                cli("proposal", *move)

    def fill(words):
        if {"turn", "call", "proposal"} & set(words[:1]):
            observe()
        if words[:2] == ("session", "root"):
            cli("session", "seal", "s1")
        given = {**UUIDS, "T": task, "R": record, "D": str(tmp_path / "published")}
        given |= {"F": str(tmp_path / "s1.affidavit"), "C": str(tmp_path / "note")}
        if "C" in words:
            Path(given["C"]).write_text(cli("checkpoint").out, encoding="utf-8")
        if "K" in words:
            given["K"] = cli("key", "add", "--json").data["keys"][0]["vkey"]
        return [given.get(word, word) for word in words]

    return fill


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=name_of)
def test_every_command_answers_with_one_json_document(cli, ready, words):
    ran = cli(*ready(words), "--json")
    assert ran.code == 0
    assert ran.data
    assert ran.out.count("\n") == 1
    assert ran.err == ""


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=name_of)
def test_every_command_answers_people_in_plain_text(cli, ready, words):
    ran = cli(*ready(words))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("\n")
    assert not ran.out.startswith("{")


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=name_of)
def test_every_command_takes_ledger_and_json_before_and_after(cli, tmp_path, words, path):
    other = str(tmp_path / "other.db")
    name, words = name_of(words), [UUIDS.get(word, word) for word in words]
    for call in (("--ledger", other, "--json", *words), (*words, "--json", "--ledger", other)):
        ran = cli(*call)
        if name in NEEDS_NO_LEDGER:
            assert ran.code == (4 if name in ("doctor", "pin") else 0)
        elif name in MAKES_A_LEDGER:
            assert ran.code == 0
            assert Path(other).exists()
            Path(other).unlink()
        else:
            assert (ran.code, ran.error["code"]) == (4, "ERR_STORE_UNAVAILABLE")
            assert other in ran.error["message"]
    assert not Path(other).exists()
    assert not Path(path).exists()


def test_the_last_of_two_ledgers_counts(cli, tmp_path):
    first, last = str(tmp_path / "first.db"), str(tmp_path / "last.db")
    assert cli("--ledger", first, "init", "--ledger", last, "--json").data["ledger"] == last
    assert not Path(first).exists()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("as_json", [False, True], ids=["plain", "json"])
def test_every_error_code_has_its_exit_code_and_shape(cli, monkeypatch, code, as_json):
    def fail(args):
        raise CODES[code].error("it did not work", code=code, hint="try this", field="x")

    monkeypatch.setattr(version, "version", fail)
    ran = cli("version", *(["--json"] if as_json else []))
    assert ran.code == CODES[code].exit_code
    if as_json:
        assert ran.error == {
            "code": code, "message": "it did not work", "hint": "try this",
            "details": {"field": "x"},
        }  # fmt: skip
        assert ran.err == ""
    else:
        assert ran.err == "affidavit: it did not work\n  hint: try this\n"
        assert ran.out == ""


def test_a_code_nobody_listed_is_a_bug(cli, monkeypatch):
    def fail(args):
        raise AffidavitError("odd", code="ERR_NEW")

    monkeypatch.setattr(version, "version", fail)
    assert cli("version").code == 70


def test_a_bug_is_one_line_unless_it_is_asked_for(cli, monkeypatch):
    def fail(args):
        raise KeyError("x\x1b")

    monkeypatch.setattr(version, "version", fail)
    ran = cli("version")
    assert ran.code == 70
    assert ran.err.startswith("affidavit: this is a bug: KeyError: ")
    assert "Traceback" not in ran.err
    assert "\x1b" not in ran.err
    assert cli("version", "--json").error["code"] == "HANDLER_ERROR"
    monkeypatch.setenv("AFFIDAVIT_DEBUG", "1")
    assert "Traceback" in cli("version").err


def test_an_interrupt_is_quiet(cli, monkeypatch):
    def interrupt(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(version, "version", interrupt)
    ran = cli("version")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


@pytest.mark.parametrize(
    "words",
    [
        ("frobnicate",),
        ("session",),
        ("task",),
        ("session", "frobnicate"),
        ("version", "extra"),
        ("verify", "--all"),
        ("--ledger",),
        ("--ledger", "", "init"),
        ("--ledger", ":memory:", "init"),
        ("--ledger", "postgresql://host/db", "init"),
        ("--ledger", "~no-such-user-here/x.db", "init"),
    ],
)
def test_a_wrong_call_exits_2_with_a_hint(cli, words):
    ran = cli(*words)
    assert ran.code == 2
    assert ran.err.startswith("affidavit: ")
    assert ran.out == ""
    assert cli("--json", *words).error["code"] == "INVALID_PARAMS"


def test_what_is_no_ledger_exits_4(cli, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all" * 100)
    database = tmp_path / "other.db"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    for place in (text, database):
        before = place.read_bytes()
        for words in (
            ("verify",),
            ("init",),
            ("record", "--type", "plan", "--task", "t", "--agent", "a", "x"),
        ):
            ran = cli("--ledger", str(place), *words, "--json")
            assert (ran.code, ran.error["code"]) == (4, "ERR_NOT_A_LEDGER")
        assert place.read_bytes() == before
    assert cli("--ledger", str(tmp_path), "init").code == 4


def test_a_ledger_of_a_newer_version_exits_4(cli, tamper):
    cli.record()
    tamper("PRAGMA user_version = 99")
    for words in (("verify",), ("thoughts",), ("task", "create", "--title", "x")):
        ran = cli(*words, "--json")
        assert (ran.code, ran.error["code"]) == (4, "ERR_LEDGER_TOO_NEW")


def test_a_network_filesystem_is_warned_about_in_one_line(cli, monkeypatch):
    from affidavit.stores.sqlite import files

    with monkeypatch.context() as patch:
        patch.setattr(files, "find_network_filesystem", lambda path: "nfs4")
        ran = cli("init", "--json")
    assert ran.code == 0
    assert ran.data["created"] is True
    assert ran.err.startswith("affidavit: warning: ")
    assert "nfs4" in ran.err
    assert ran.err.count("\n") == 1


def test_choices_are_those_of_the_schemas():
    from affidavit.core.kinds import END_REASONS
    from affidavit.core.thought import THOUGHT_TYPES
    from affidavit.ledger import inputs, observed
    from affidavit.ledger.settings import SETTINGS

    assert arguments.THOUGHT_TYPES == get_args(inputs.ThoughtType) == THOUGHT_TYPES
    assert get_args(inputs.SessionState) == noun_arguments.SESSION_STATES
    assert get_args(observed.TurnKind) == observed_arguments.TURN_KINDS
    assert get_args(observed.ToolCallStatus) == observed_arguments.CALL_STATUSES
    assert get_args(observed.ProposalStatus) == observed_arguments.PROPOSAL_STATUSES
    assert get_args(observed.UsageBy) == observed_arguments.USAGE_BY
    assert noun_arguments.END_REASONS == get_args(inputs.EndReason) == END_REASONS
    assert set(arguments.PAYLOADS) == set(SETTINGS["payloads"].allowed)
    assert get_args(inputs.TaskState) == noun_arguments.TASK_STATES


def test_every_argument_says_what_it_is():
    silent = [
        f"{parser.prog} {action.dest}"
        for parser in list_commands(build_parser())
        for action in parser._actions
        if not action.help and not isinstance(action, argparse._SubParsersAction)
    ]
    assert silent == []


def test_text_is_made_safe_and_kept_readable():
    assert plain("a\tb\r\nc\rd") == "a\tb\nc\\x0dd"
    assert one_line("a\n\x00\x85\u2028\ud800é漢") == "a\\n\\x00\\x85\\u2028\\ud800é漢"
    assert list(table(("a", "bc"), [(None, "x\ny")])) == ["A  BC", "-  x\\ny"]
