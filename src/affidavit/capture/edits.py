"""Edits as proposals: the diffs of what editing tools were asked to do, and what came of it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any, Final

from affidavit.core.names import PAYLOAD_BYTES_MAX
from affidavit.ledger.ledger import Ledger

EDITING: Final = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit"))
# Longer texts are told as taken out and put in: comparing them would take minutes.
_COMPARED_MAX: Final = 200_000


def propose(
    ledger: Ledger, request_id: str, tool_name: str, arguments: Any, session_id: str | None
) -> None:
    """Record what an editing tool was asked to change, once; nothing where it is none."""
    diffs = diffs_of(tool_name, arguments)
    if diffs is None or ledger.get_proposal(request_id) is not None:
        return
    text = json.dumps(diffs)
    # Characters may take more bytes than their escapes have; the call itself tells the size.
    if len(text) * 2 <= PAYLOAD_BYTES_MAX:
        ledger.create_proposal(request_id, text, session_id=session_id)


def settle(ledger: Ledger, request_id: str, by: str, at_ms: int | None, kind: str | None) -> None:
    """What came of an edit: it is in its file, or it failed by `kind`."""
    proposal = ledger.get_proposal(request_id)
    if proposal is None or proposal.status != "pending":
        return
    if kind is not None:
        ledger.decide_proposal(request_id, "denied", by, kind, at_ms)
        return
    ledger.decide_proposal(request_id, "approved", by, decided_at_ms=at_ms)
    ledger.apply_proposal(request_id, applied_at_ms=at_ms)


def diffs_of(tool_name: str, arguments: Any) -> list[dict[str, str]] | None:
    """What a call of an editing tool would change; None where it is none, or cannot be told."""
    if tool_name not in EDITING or not isinstance(arguments, dict):
        return None
    path = arguments.get("file_path", arguments.get("notebook_path"))
    if not isinstance(path, str) or not path:
        return None
    parts = list(_parts(tool_name, arguments))
    if not parts or not all(isinstance(text, str) for part in parts for text in part):
        return None
    return [{"path": path, "diff": _diff(path, old, new)} for old, new in parts]


def _parts(tool_name: str, arguments: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    if tool_name == "Write":
        yield "", arguments.get("content")
    elif tool_name == "NotebookEdit":
        yield "", arguments.get("new_source")
    elif tool_name == "MultiEdit":
        edits = arguments.get("edits")
        for edit in edits if isinstance(edits, list) else ():
            if isinstance(edit, dict):
                yield edit.get("old_string"), edit.get("new_string")
    else:
        yield arguments.get("old_string"), arguments.get("new_string")


def _diff(path: str, old: str, new: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    if len(old) + len(new) > _COMPARED_MAX or not before:
        lines = [
            f"--- {path}",
            f"+++ {path}",
            f"@@ -{min(1, len(before))},{len(before)} +{min(1, len(after))},{len(after)} @@",
            *(f"-{line}" for line in before),
            *(f"+{line}" for line in after),
        ]
    else:
        lines = list(difflib.unified_diff(before, after, path, path, lineterm=""))
    return "\n".join(lines)
