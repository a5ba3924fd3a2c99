"""What each command is called, takes and says about itself. Nothing here is heavy to import."""

from __future__ import annotations

import argparse
from typing import Final

from affidavit.apps.auditor.options import add_trust
from affidavit.apps.cli.capture_arguments import add_capture
from affidavit.apps.cli.keeping_arguments import add_keeping
from affidavit.apps.cli.noun_arguments import add_sessions, add_signing, add_tasks
from affidavit.apps.cli.observed_arguments import add_observed
from affidavit.apps.cli.parsing import (
    Commands,
    Parser,
    add_command,
    add_common,
    add_key,
    add_set,
    add_tool_choice,
    read_port,
)
from affidavit.apps.cli.story_arguments import add_stories

# The same words as in the input schemas, which are too heavy to load here; a test compares them.
THOUGHT_TYPES: Final = ("plan", "analysis", "decision", "reflection")
_EXIT_CODES: Final = """\
exit codes:
  0   done; for verify: everything checked holds
  1   something recorded does not hold
  2   the call cannot be carried out as it stands
  3   there is nothing to verify, or it could not be verified
  4   the environment: no such ledger, no rights, disk, lock, version
  70  a bug in affidavit
"""
PAYLOADS: Final = ("keep", "hash")


def build_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="affidavit",
        description="The sworn record of what AI agents did and why.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version",
        action="store_const",
        const="version:version",
        dest="handler",
        help="the same as the command",
    )
    parser.set_defaults(handler="welcome:welcome")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    add_common(parser)
    for add in (_add_init, _add_settings, _add_record, _add_thoughts, add_sessions, add_tasks):
        add(commands)
    add_observed(commands)
    add_stories(commands)
    for add in (_add_export, _add_verify, _add_pin, add_signing, add_keeping, _add_rebuild):
        add(commands)
    add_capture(commands)
    for add in (_add_serve, _add_mcp, _add_doctor, _add_version):
        add(commands)
    return parser


def _add_init(commands: Commands) -> None:
    parser = add_command(
        commands,
        "init",
        "ledger_commands:init",
        "make the ledger, or show the one that is there",
        "An existing ledger is changed only where --set or --payloads say so.",
    )
    add_set(parser)
    parser.add_argument(
        "--payloads",
        choices=PAYLOADS,
        help="keep what tools were asked and answered (keep, the choice for a new ledger), "
        "or only digests of it (hash)",
    )


def _add_settings(commands: Commands) -> None:
    parser = add_command(
        commands,
        "settings",
        "ledger_commands:settings",
        "show the settings in force, or change them",
        "Every change is recorded in the log.",
    )
    add_set(parser)
    parser.add_argument("--by", metavar="WHO", help="who changes them")
    add_key(parser)


def _add_record(commands: Commands) -> None:
    parser = add_command(
        commands,
        "record",
        "record:record",
        "record a decision, and why",
        "Makes the ledger where there is none. Every character is kept as it is given.",
    )
    parser.add_argument("--type", required=True, choices=THOUGHT_TYPES, help="what kind it is")
    parser.add_argument("--task", required=True, metavar="ID", help="the task it belongs to")
    parser.add_argument("--agent", required=True, metavar="NAME", help="who decided")
    parser.add_argument("--session", metavar="ID", help="the open session it is part of")
    parser.add_argument(
        "content",
        nargs="?",
        metavar="CONTENT",
        help="the text; `-`, or nothing, reads standard input",
    )
    add_key(parser)


def _add_thoughts(commands: Commands) -> None:
    parser = add_command(
        commands, "thoughts", "record:thoughts", "show recorded decisions, oldest first"
    )
    parser.add_argument("--task", metavar="ID", help="only those of this task")
    parser.add_argument("--session", metavar="ID", help="only those of this session")
    parser.add_argument("--type", choices=THOUGHT_TYPES, help="only those of this kind")
    parser.add_argument("--after", metavar="ID", help="only those behind this record")
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many (default: all)")


def _add_verify(commands: Commands) -> None:
    parser = add_command(
        commands,
        "verify",
        "verify:verify",
        "check that nothing recorded was changed",
        "SUBJECT is a ledger, an evidence file, a published log (a folder, an https address), or a "
        "proof that a log signed two histories. Exit "
        "code 0: all holds; 1: something does not; 3: nothing to verify, or nothing says whose it "
        "is.",
    )
    parser.add_argument(
        "subject",
        nargs="?",
        metavar="SUBJECT",
        help="what to check; `-` reads an evidence file (default: the ledger)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="only the records of this session")
    which.add_argument("--task", metavar="ID", help="only the records of this task")
    which.add_argument(
        "--new",
        action="store_true",
        help="of a ledger, read only what stands behind the newest --pinned checkpoint",
    )
    add_trust(parser)


def _add_pin(commands: Commands) -> None:
    parser = add_command(
        commands,
        "pin",
        "evidence:pin",
        "keep a checkpoint that somebody else's log must grow out of",
        "`affidavit verify` compares with every checkpoint kept. Another history of the same log "
        "is refused, and the proof of it kept as a file.",
    )
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="a signed note, or an evidence file that ends at one; `-` reads standard input",
    )
    add_trust(parser)


def _add_export(commands: Commands) -> None:
    parser = add_command(
        commands,
        "export",
        "evidence:export",
        "hand out a part of the log with all it takes to check it",
        "The file ends at a checkpoint that is signed now; `affidavit verify FILE` checks it.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--session", metavar="ID", help="a session as a whole")
    which.add_argument("--task", metavar="ID", help="a task and its records")
    which.add_argument("--record", metavar="ID", help="one record")
    which.add_argument("--range", metavar="A:B", help="the entries from A to before B")
    which.add_argument(
        "--jsonl", action="store_true", help="the whole log as lines of JSON, without proofs"
    )
    parser.add_argument(
        "--html",
        action="store_true",
        help="the session as one page that tells it and checks itself in a browser, offline",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to (`-`: standard output, as for --html and --jsonl if nothing is said)",
    )
    parser.add_argument(
        "--withhold",
        action="append",
        default=[],
        metavar="FIELD",
        help="keep a payload field back, such as content or intent; may be repeated",
    )


def _add_serve(commands: Commands) -> None:
    parser = add_command(
        commands,
        "serve",
        "serve:serve",
        "serve the page, and MCP clients over HTTP, on this machine",
        "Prints one URL and runs until it is stopped. Makes the ledger where there is none. Needs "
        "the extra affidavit[server].",
    )
    add_tool_choice(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="a loopback address (default: 127.0.0.1); any other is refused",
    )
    parser.add_argument(
        "--port",
        type=read_port,
        default=8470,
        metavar="N",
        help="the port (default: 8470); 0 takes any free one",
    )
    parser.add_argument(
        "--publish",
        metavar="DIR",
        help="publish what is signed in this folder, as `affidavit publish` does",
    )
    parser.add_argument(
        "--hooks",
        metavar="SOCKET",
        help="take what hooks of other users bring (`affidavit connect claude-code --to SOCKET`)",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="USER",
        help="a user, by name or number, whose hooks may bring it; may be repeated",
    )
    _add_no_create(parser)


def _add_no_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-create", action="store_true", help="refuse to start where there is no ledger"
    )


def _add_rebuild(commands: Commands) -> None:
    parser = add_command(
        commands,
        "rebuild",
        "ledger_commands:rebuild",
        "derive every table again from the log, and put right what differs",
        "This removes traces of tampering: keep a copy of the file, and run --check, first.",
    )
    parser.add_argument("--check", action="store_true", help="only say what differs")


def _add_mcp(commands: Commands) -> None:
    parser = add_command(
        commands,
        "mcp",
        "mcp:mcp",
        "serve an MCP client over standard input and output",
        "An agent's client starts this by itself; docs/howto/connect-a-client.md shows how. "
        "Makes the ledger where there is none.",
    )
    add_tool_choice(parser)
    _add_no_create(parser)


def _add_doctor(commands: Commands) -> None:
    add_command(commands, "doctor", "doctor:doctor", "find what is wrong with the ledger's place")


def _add_version(commands: Commands) -> None:
    add_command(commands, "version", "version:version", "show the versions in use")
