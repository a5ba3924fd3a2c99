"""What the commands take that record an agent's client."""

from __future__ import annotations

import argparse

from affidavit.apps.cli.parsing import Commands, add_command

CLIENTS = ("claude-code",)
_PAYLOADS = ("keep", "hash")
MCP_URL = "http://127.0.0.1:8470/mcp"


def add_capture(commands: Commands) -> None:
    """`affidavit connect`, `disconnect`, `hook`, `proxy` and `coverage`."""
    for add in (_add_connect, _add_disconnect, _add_hook, _add_proxy, _add_coverage):
        add(commands)


def _add_connect(commands: Commands) -> None:
    parser = add_command(
        commands,
        "connect",
        "connect:connect",
        "have an agent's client recorded: its hooks, the MCP server, five lines for the agent",
        "Shows what it changes and keeps what was there. Doing it twice changes nothing.",
    )
    _add_where(parser)
    parser.add_argument(
        "--payloads",
        choices=_PAYLOADS,
        help="keep what tools were asked and answered (keep, the choice for a new ledger), "
        "or only digests of it (hash)",
    )
    parser.add_argument(
        "--gate",
        action="store_true",
        help="the agent may not stop while its session has no closing reflection",
    )
    parser.add_argument(
        "--to",
        metavar="SOCKET",
        help="the ledger belongs to another user, whose `affidavit serve --hooks SOCKET` records",
    )
    parser.add_argument(
        "--url",
        metavar="URL",
        help=f"with --to: where that server's MCP endpoint is (default: {MCP_URL})",
    )


def _add_disconnect(commands: Commands) -> None:
    parser = add_command(
        commands,
        "disconnect",
        "connect:disconnect",
        "undo connect: every file is as it was",
        "A file that was changed since loses only what connect put in.",
    )
    _add_where(parser)


def _add_hook(commands: Commands) -> None:
    parser = add_command(
        commands,
        "hook",
        "hook:hook",
        "take one event of an agent's client from stdin",
        "The client runs this by itself. The event is on disk when it ends, and in the ledger a "
        "moment later. Ends with 0 whatever happens; what goes wrong is in a log, and "
        "`affidavit doctor` tells it.",
    )
    parser.add_argument("client", choices=CLIENTS, help="whose event it is")
    parser.add_argument(
        "--gate",
        action="store_true",
        help="refuse a stop without a closing reflection, once a turn",
    )
    parser.add_argument("--to", metavar="SOCKET", help="the server of another user that records it")


def _add_coverage(commands: Commands) -> None:
    parser = add_command(
        commands,
        "coverage",
        "coverage:coverage",
        "show which channels were on while a session ran, and what they brought",
        "Tells that nothing happened from that nothing was recorded.",
    )
    parser.add_argument("session", metavar="SESSION", help="the session's id")


def _add_proxy(commands: Commands) -> None:
    parser = add_command(
        commands,
        "proxy",
        "proxy:proxy",
        "stand between an MCP client and a server, and record the tool calls",
        "Put `affidavit proxy --` before the server's command where a client is configured. Every "
        "byte passes as it is and before it is recorded. A call that Claude Code's hooks tell of "
        "too is one call, seen by both.",
    )
    parser.add_argument(
        "--name", help="what the server is called; the client's name for it is best"
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="the server, as it is started",
    )


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", choices=CLIENTS, help="which client")
    parser.add_argument(
        "--project", action="store_true", help="for this folder's project alone, in its own files"
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
