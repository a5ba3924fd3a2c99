"""`affidavit serve`: the page for people and the MCP endpoint, on this machine's own address."""

from __future__ import annotations

import argparse
import importlib
from typing import Final

from affidavit.apps.cli.opening import keep_retained, keep_signed, open_for_serving, take_hooks
from affidavit.apps.cli.render import Answer, show
from affidavit.errors import StoreError

# What the extra brings, the quickest to import first; the SDK itself takes a second.
_NEEDED: Final = ("jinja2", "starlette", "uvicorn", "mcp_types")


def serve(args: argparse.Namespace) -> Answer:
    """Serve until told to stop; the one line on standard output is the URL."""
    check_extra()
    from affidavit.apps.http.serving import open_socket, run_server, url_of  # noqa: PLC0415
    from affidavit.apps.mcp.service import Service, check_tools  # noqa: PLC0415

    check_tools(args.tools)
    with open_socket(args.host, args.port) as server, open_for_serving(args) as ledger:
        from affidavit.apps.http.app import build_app  # noqa: PLC0415 - the SDK takes a second

        service = Service(ledger, mode=args.mode, tools=args.tools, bind_auto=args.bind == "auto")
        url = url_of(server)
        answer = Answer({"url": url, "ledger": ledger.location}, [url])
        as_json = getattr(args, "json", False)
        with (
            keep_signed(args, ledger, args.publish),
            keep_retained(args, ledger),
            take_hooks(args, ledger),
        ):
            run_server(build_app(service), server, lambda: show(answer, as_json=as_json))
    return answer._replace(is_shown=True)


def check_extra(needed: tuple[str, ...] = _NEEDED) -> None:
    """That what a server imports is installed."""
    for name in needed:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise StoreError(
                f"the servers need {error.name}, which is not installed",
                code="ERR_EXTRA_MISSING",
                hint="Install the extra: pip install 'affidavit[server]'",
            ) from None
