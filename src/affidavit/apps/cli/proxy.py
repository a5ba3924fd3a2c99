"""`affidavit proxy`: an MCP server over stdio, with its tool calls on the record."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import PurePath

from affidavit.apps import places
from affidavit.apps import proxy as passing
from affidavit.apps.cli.render import Answer
from affidavit.errors import InputError

_NOT_FOUND = 127


def proxy(args: argparse.Namespace) -> Answer:
    """Pass on until the server ends; its exit code is ours."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise InputError(
            "command: there is none to start",
            hint="Put it last: `affidavit proxy -- npx some-server`.",
            field="command",
        )
    called = args.name or PurePath(command[0]).name
    try:
        code = passing.run(places.ledger_path(getattr(args, "ledger", None)), called, command)
    except OSError as error:
        print(f"affidavit: {command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        os._exit(_NOT_FOUND)
    passing.leave(code)
    raise AssertionError  # pragma: no cover - the process is gone
