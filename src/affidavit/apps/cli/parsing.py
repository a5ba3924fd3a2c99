"""The pieces command lines are made of: the parser, a command, a noun with its verbs, and options.

A command names its handler as "module:function" of this package; `main` loads it when it is called.
"""

from __future__ import annotations

import argparse
import re
from typing import Any, Final, NoReturn

from affidavit.errors import InputError

_PORT_MAX: Final = 65_535
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

# The same words as the server has, which is too heavy to load here; a test compares them.
MODES: Final = ("full", "readonly", "minimal")
BINDINGS: Final = ("none", "auto")

Commands = Any  # argparse's own type for sub-commands is private


class Parser(argparse.ArgumentParser):
    """A parser whose refusals are errors like any other: one line, a hint, a code."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Refuse the call."""
        raise InputError(message, hint=f"See `{self.prog} --help`.")


def list_commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """This parser and all below it, in the order of the help."""
    found = [parser]
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                found += list_commands(below)
    return found


def add_command(commands: Commands, name: str, handler: str, help_: str, more: str = "") -> Parser:
    """A command with its help and its handler."""
    text = f"{_sentence(help_)} {more}".strip()
    parser: Parser = commands.add_parser(name, help=help_, description=text)
    add_common(parser)
    parser.set_defaults(handler=handler)
    return parser


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def add_noun(commands: Commands, name: str, help_: str) -> Commands:
    """A noun; its verbs are added to what this returns."""
    parser: Parser = commands.add_parser(name, help=help_, description=_sentence(help_))
    verbs = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest=f"{name}_command", required=True
    )
    add_common(parser)
    return verbs


def add_common(parser: argparse.ArgumentParser) -> None:
    """What may stand before or after every command; SUPPRESS keeps the later from undoing it."""
    group = parser.add_argument_group("every command")
    group.add_argument(
        "--ledger",
        metavar="PATH",
        default=argparse.SUPPRESS,
        help="the ledger's file (else AFFIDAVIT_LEDGER, else this user's own)",
    )
    group.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,
        help="answer with one JSON document: {ok, data} or {ok, error}",
    )


def add_key(parser: argparse.ArgumentParser) -> None:
    """What every writing command may be given."""
    parser.add_argument(
        "--idempotency-key",
        metavar="KEY",
        help="makes a retry safe: the same key with the same input gives the first answer",
    )


def add_set(parser: argparse.ArgumentParser) -> None:
    """Settings, as words."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="choose a setting; may be repeated (`affidavit settings` explains each)",
    )


def add_tool_choice(parser: argparse.ArgumentParser) -> None:
    """What an MCP server offers, and how it treats what a client leaves out."""
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="full",
        help="full; readonly: the file cannot be written; minimal: ping and health only",
    )
    parser.add_argument(
        "--tools",
        default="core",
        metavar="NAMES",
        help="core (the default), all, or names with commas between them",
    )
    parser.add_argument(
        "--bind",
        choices=BINDINGS,
        default="none",
        help="auto: an agent_id or session_id that is left out is filled from the connection",
    )


def add_as_of(parser: argparse.ArgumentParser) -> None:
    """A moment of the ledger's own time."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--as-of", type=_read_moment, metavar="TIME",
        help="as it was then: RFC 3339 with a zone, microseconds, NOW or END",
    )  # fmt: skip
    which.add_argument(
        "--as-of-index", type=int, metavar="N", help="as it was at this index of the log"
    )


def _read_moment(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) else text


def read_sizes(text: str) -> tuple[int, int | None]:
    """Two sizes of a log, OLD:NEW, or only the older one."""
    match = re.fullmatch(r"(\d{1,18})(?::(\d{1,18}))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not OLD or OLD:NEW, such as 100:200")
    return int(match[1]), None if match[2] is None else int(match[2])


def read_port(text: str) -> int:
    """A port, or 0 for any."""
    if not re.fullmatch(r"\d{1,5}", text, re.ASCII) or int(text) > _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {_PORT_MAX}")
    return int(text)


def read_age_us(text: str) -> int:
    """A length of time such as 30m, 24h or 7d."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age such as 30m, 24h or 7d")
    return int(match[1]) * _SECONDS[match[2]] * 1_000_000
