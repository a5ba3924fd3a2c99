"""What the commands that tell what happened are called, take and say about themselves."""

from __future__ import annotations

import argparse

from affidavit.apps.cli.parsing import Commands, add_command


def add_stories(commands: Commands) -> None:
    """`affidavit show`, `why` and `import`."""
    parser = add_command(
        commands,
        "show",
        "story:show",
        "tell the story of a session: when, who, what, why",
        "*said* are an agent's own words and what somebody told the ledger, *seen* is what a hook "
        "or a proxy saw happen. Marked are calls that nobody finished, and a claim that tests pass "
        "without a run of tests that was seen since the last edit. Long texts are folded.",
    )
    parser.add_argument("session", metavar="SESSION", help="the session's id")
    parser.add_argument("--after", type=int, metavar="N", help="only what lies behind entry N")
    parser.add_argument("--full", action="store_true", help="fold nothing")
    _add_why(commands)
    _add_import(commands)


def _add_import(commands: Commands) -> None:
    parser = add_command(
        commands,
        "import",
        "importing:import_",
        "bring in what a client wrote down before",
        "Marked as imported, never as seen live. What the ledger has is left out, so it can be "
        "repeated, and stopped at any time. Makes the ledger where there is none.",
    )
    parser.add_argument("client", choices=("claude-code",), help="whose transcripts")
    parser.add_argument(
        "folder",
        nargs="?",
        metavar="DIR",
        help="where they are (default: projects below CLAUDE_CONFIG_DIR or ~/.claude); or one file",
    )


def _add_why(commands: Commands) -> None:
    parser = add_command(
        commands,
        "why",
        "why:why",
        "show the recorded edits that made a file, or a line of it, and why",
        "For each edit, the newest first: the decision before it, its session, and how it can be "
        "proven. A line is found by its text as it is in the file now.",
    )
    parser.add_argument("place", metavar="FILE[:LINE]", help="a file, and the number of a line")
    parser.add_argument(
        "--limit", type=_read_count, default=5, metavar="N", help="at most so many edits (5)"
    )


def _read_count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:9]) > 0 and len(text) <= len("1000")):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a number from 1 to 9999")
    return int(text)
