"""`affidavit mcp`: the MCP server for one client, over stdin and stdout."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from typing import Any, NoReturn

from affidavit.apps.cli.opening import keep_signed, ledger_path, open_for_serving
from affidavit.apps.cli.render import show_error
from affidavit.apps.cli.serve import check_extra
from affidavit.capture.claude_names import RUN_VARIABLE
from affidavit.errors import CODES, AffidavitError

_CANNOT_OPEN = CODES["ERR_STORE_UNAVAILABLE"].exit_code


def mcp(args: argparse.Namespace) -> NoReturn:
    """Serve until stdin ends; stdout is the wire, so that a refusal goes to stderr alone."""
    try:
        check_extra(("mcp_types",))
        from affidavit.apps.mcp.service import Service, check_tools  # noqa: PLC0415 - after parsing

        check_tools(args.tools)
    except AffidavitError as error:
        show_error(error, as_json=False)
        sys.exit(CODES[error.code].exit_code)
    try:
        ledger = open_for_serving(args)
    except AffidavitError as error:
        show_error(error, as_json=False)
        sys.exit(_CANNOT_OPEN)
    service = Service(ledger, mode=args.mode, tools=args.tools, **_binding(args))
    from affidavit.apps.mcp.stdio import run  # noqa: PLC0415 - the SDK takes a second to load

    with ExitStack() as stack:
        stack.callback(ledger.close)
        stack.enter_context(keep_signed(args, ledger))
        run(service, stack.close)
    sys.exit(0)


def _binding(args: argparse.Namespace) -> dict[str, Any]:
    """What the server may fill in: from its connection, and from the run that started it."""
    if args.bind != "auto":
        return {}
    from affidavit.apps.hook import open_spool, project_root  # noqa: PLC0415 - after parsing
    from affidavit.apps.mcp.run_of_client import RunOfClient  # noqa: PLC0415

    run, spool = os.environ.get(RUN_VARIABLE), open_spool(ledger_path(args)).folder
    return {"bind_auto": True, "run": RunOfClient(run, spool, project_root())}
