"""The tools about the server itself; they are there in every mode and leave no entry."""

from __future__ import annotations

from typing import Any, Final

from affidavit.apps.mcp.answers import Health, Pong
from affidavit.apps.mcp.health import examine
from affidavit.apps.mcp.task_tools import Nothing
from affidavit.apps.mcp.tools import Request, Tool
from affidavit.ledger.ledger import Ledger


def _ping(ledger: Ledger, given: Any, request: Request) -> Pong:
    del ledger, given, request
    return Pong()


def _health(ledger: Ledger, given: Any, request: Request) -> Health:
    del given
    return examine(ledger, request.facts)


SERVER_TOOLS: Final = (
    Tool(
        "server_health",
        "Is the record being kept",
        "Call this when a call failed, or before work that must be on the record. status ok: a "
        "write would succeed.",
        Nothing,
        Health,
        _health,
        reads=True,
        repeatable=True,
        silent=True,
    ),
    Tool(
        "server_ping",
        "Is the server there",
        "Call this to see that the server answers; it does not touch the ledger.",
        Nothing,
        Pong,
        _ping,
        reads=True,
        repeatable=True,
        core=False,
        silent=True,
    ),
)
