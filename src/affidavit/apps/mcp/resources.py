"""What can be read without a call: a session, a task, and the health of the server."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from affidavit.apps.mcp.envelope import RESULT_CHARACTERS_MAX, shorten
from affidavit.apps.mcp.health import examine
from affidavit.apps.mcp.tools import Facts
from affidavit.ledger.ledger import Ledger

HEALTH: Final = "affidavit://health"
# Of each: the template, its name, and what it shows.
TEMPLATES: Final = (
    ("affidavit://session/{id}", "session", "How a session began, where it stands, its records"),
    ("affidavit://task/{id}", "task", "Where a task stands, and its records"),
)
# A record takes more than 400 characters: where there are more of them, the text says it is cut.
_RECORDS_MAX: Final = RESULT_CHARACTERS_MAX // 400


def read_resource(ledger: Ledger, facts: Facts, uri: str) -> str | None:
    """A resource as JSON text; None where there is no such thing."""
    if uri == HEALTH:
        return _text(msgspec.to_builtins(examine(ledger, facts)))
    kind, _, name = uri.removeprefix("affidavit://").partition("/")
    if not uri.startswith("affidavit://") or not name:
        return None
    if kind == "session":
        return _session(ledger, unquote(name))
    return _task(ledger, unquote(name)) if kind == "task" else None


def _session(ledger: Ledger, session_id: str) -> str | None:
    found = ledger.get_session(session_id)
    if found is None:
        return None
    records = ledger.list_thoughts(session_id=session_id, limit=_RECORDS_MAX)
    return _text({**found.to_dict(), "records": [one.to_dict() for one in records]})


def _task(ledger: Ledger, task_id: str) -> str | None:
    found = ledger.get_task(task_id)
    if found is None:
        return None
    records = ledger.list_thoughts(task_id=task_id, limit=_RECORDS_MAX)
    return _text({**found.to_dict(), "records": [one.to_dict() for one in records]})


def _text(data: dict[str, Any]) -> str:
    return json.dumps(shorten("thought_record_list", data), ensure_ascii=False, indent=1)
