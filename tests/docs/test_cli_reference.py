"""The reference of the command line says what the parsers say."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from affidavit.apps.cli.arguments import build_parser
from affidavit.apps.cli.parsing import list_commands
from affidavit.errors import CODES, InputError

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference" / "cli.md"


def test_every_command_and_error_is_documented():
    text = REFERENCE.read_text(encoding="utf-8")
    commands = [one.prog for one in list_commands(build_parser())]
    assert len(commands) > 20
    assert [name for name in commands if f"### `{name}`\n" not in text] == []
    assert [code for code in CODES if f"| `{code}` |" not in text] == []


def shown_commands() -> list[tuple[str, list[str]]]:
    """Every `affidavit ...` line of a code block in the documentation, as words."""
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        blocks = page.read_text(encoding="utf-8").split("```")[1::2]
        for line in (line for block in blocks for line in block.splitlines()):
            call = line.strip().removeprefix("$ ")
            if call.startswith("affidavit "):
                found.append((f"{page.name}: {call}", shlex.split(call, comments=True)[1:]))
    return found


def test_the_commands_shown_are_ones_that_it_takes():
    shown = shown_commands()
    assert len(shown) > 5
    for where, words in shown:
        end = next((place for place, word in enumerate(words) if word in {"|", ">", "&&"}), None)
        try:
            args = build_parser().parse_args(words[:end])
        except InputError as error:
            pytest.fail(f"{where}: {error}")
        assert args.handler != "welcome:welcome", where
