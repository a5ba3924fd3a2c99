"""What `--json` answers is what the reference says it is, command by command."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

from affidavit.ledger import observed as observed_results
from affidavit.ledger import results
from affidavit.verify import findings

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference/cli.md"
ROW = re.compile(r"^\| (`[^|]+`) \| (`[a-zA-Z_]+`(?: [^|]*)?) \|$", re.MULTILINE)


def fields_of(name: str) -> list[str]:
    """The fields of an answer; a name in lower case is one by itself."""
    if name.islower():
        return [name]
    rooms = (results, observed_results, findings)
    kind = next(getattr(room, name) for room in rooms if hasattr(room, name))
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    return list(kind._fields) if issubclass(kind, tuple) else [one.name for one in fields(kind)]


def documented() -> dict[str, list[str]]:
    """Every command of the table, with the keys of its answer."""
    text = REFERENCE.read_text(encoding="utf-8").partition("What `data` holds.")[2]
    shapes = {}
    for commands, answer in ROW.findall(text.partition("**Text of others.**")[0]):
        names = re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", answer))
        for command in re.findall(r"`([^`]+)`", commands):
            shapes[command] = [field for name in names for field in fields_of(name)]
    return shapes


NAME = "00000000-0000-4000-8000-000000000001"


def observed(cli):
    """The commands about turns, tool calls and proposals, in an order that works."""
    asked = ["call", "request", NAME, "c1", "--vendor", "v", "--tool", "t", "--arguments", "{}"]
    return {
        "turn add": ["turn", "add", NAME, "--message", NAME, "--kind", "user", "hello"],
        "turn show": ["turn", "show", NAME],
        "turn list": ["turn", "list", "--as-of", "NOW"],
        "turn retract": ["turn", "retract", NAME],
        "call request": asked,
        "call show": ["call", "show", NAME, "c1"],
        "call decide": ["call", "decide", NAME, "c1", "approved", "--by", "owner"],
        "call finish": ["call", "finish", NAME, "c1", "completed", "--outcome", "[1]"],
        "call list": ["call", "list", "--status", "completed"],
        "call history": ["call", "history", NAME, "c1"],
        "orphans": ["orphans", "--older-than", "0s", "--mark"],
        "proposal create": ["proposal", "create", NAME, "--diffs", "[]", "--confidence", "0.5"],
        "proposal decide": ["proposal", "decide", NAME, "approved", "--by", "owner"],
        "proposal apply": ["proposal", "apply", NAME, "--commit", "abc"],
        "proposal revert": ["proposal", "revert", NAME],
        "proposal show": ["proposal", "show", NAME, "--as-of", "END"],
        "proposal list": ["proposal", "list"],
        "usage": ["usage", "--by", "day"],
        "settled": ["settled", "--as-of", "END"],
    }


@pytest.fixture
def story(cli, tmp_path):
    """A call of every command, in an order in which each is answered."""
    task = cli("task", "create", "--title", "x", "--json").data["id"]
    session = cli("session", "start", "--intent", "x", "--json").data["session_id"]
    cli.record("because", "--session", session)
    cli("checkpoint")
    cli("key", "add")
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    vkey = cli("key", "show", "--json").data["keys"][0]["vkey"]
    return {
        "affidavit": [],
        "init": ["init"],
        "settings": ["settings"],
        "record": ["record", "--type", "plan", "--task", task, "--agent", "a", "c"],
        "thoughts": ["thoughts"],
        "session start": ["session", "start", "--intent", "another"],
        "session show": ["session", "show", session],
        "session list": ["session", "list"],
        "session seal": ["session", "seal", session],
        "session seal --idle": ["session", "seal", "--idle", "0s"],
        "session root": ["session", "root", session],
        "session end": ["session", "end", session],
        "task create": ["task", "create", "--title", "y"],
        "task get": ["task", "get", task],
        "task update": ["task", "update", task, "--status", "PLAN"],
        "task transition": ["task", "transition", task, "APPLY"],
        "task list": ["task", "list"],
        "task next": ["task", "next"],
        "task delete": ["task", "delete", task],
        **observed(cli),
        "show": ["show", session],
        "import": ["import", "claude-code", str(transcripts)],
        "why": ["why", "main.py"],
        "verify": ["verify"],
        "verify --task": ["verify", "--task", "t1"],
        "verify --session": ["verify", "--session", session],
        "rebuild": ["rebuild", "--check"],
        "doctor": ["doctor"],
        "version": ["version"],
        "checkpoint": ["checkpoint"],
        "key show": ["key", "show"],
        "key add": ["key", "add"],
        "key retire": ["key", "retire", vkey],
        "recover": ["recover", "--new-origin"],
    }


def test_every_answer_has_the_shape_the_reference_says(cli, story):
    found = {name: list(cli(*words, "--json").data) for name, words in story.items()}
    assert found == documented()


def test_a_refusal_has_the_one_shape_of_errors(cli):
    error = cli("session", "show", "--json", "nobody").json
    assert list(error) == ["ok", "error"]
    assert list(error["error"]) == ["code", "message", "hint", "details"]
