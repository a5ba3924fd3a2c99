"""Where the content of a file comes from: its recorded edits, and the decision before each.

An edit is found by the file it names and a line by its text: what is compared is what was recorded,
never a disk.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from typing import Any, Final

from affidavit.core.canonical import encode_string
from affidavit.core.changes import Change, find_changes
from affidavit.core.names import PAYLOAD_BYTES_MAX
from affidavit.core.paths import relate_path
from affidavit.errors import IntegrityViolation
from affidavit.ledger.claims import is_edit
from affidavit.ledger.entries import read_entry
from affidavit.ledger.inputs import TraceFile
from affidavit.ledger.ports import Reader
from affidavit.ledger.results import LogEntry, Result
from affidavit.ledger.stories import Basis, basis_of
from affidavit.ledger.versions import PROPOSALS

_NOT_DONE: Final = frozenset(("denied", "failed", "reverted"))
_DECISION_BYTES_MAX: Final = 4_000
# How many sessions back a decision is looked for.
_SESSIONS_MAX: Final = 50


class Trace(Result, frozen=True):
    """One edit of a file: how it is known, its session and seal, and the decision before it."""

    index: int
    at: int
    basis: Basis | None
    via: str | None
    tool_name: str | None
    path: str
    lines: tuple[tuple[str, str], ...]
    status: str
    request_id: str
    session_id: str | None
    intent: str | None
    seal_index: int | None
    root: str | None
    decision: LogEntry | None


def trace_file(reader: Reader, wanted: TraceFile, root: str) -> list[Trace]:
    """The edits of a file, the newest first; one told twice, as call and proposal, once."""
    found: dict[str, Trace] = {}
    for entry, texts in _edits_naming(reader, posixpath.basename(_slashed(wanted.path))):
        request_id = str(entry.body.get("request_id"))
        if request_id in found:
            continue
        for change in find_changes(texts):
            if _is_same_file(change.path, wanted.path, root) and _wrote(change, wanted.line):
                trace = _trace(reader, entry, change)
                # What was not carried out made no line, whatever it says.
                if wanted.line is None or trace.status not in _NOT_DONE:
                    found[request_id] = trace
                break
        if len(found) == wanted.limit:
            break
    return list(found.values())


def _edits_naming(reader: Reader, name: str) -> Iterator[tuple[LogEntry, Any]]:
    """Proposals and calls of edit tools that hold a file's name, the newest first."""
    for index in sorted(reader.texts_holding(encode_string(name)[1:-1]), reverse=True):
        try:
            kind, body = reader.entry(index)[1:3]
        except IntegrityViolation:
            continue
        is_call = kind == "tool_call.requested" and is_edit(str(body.get("tool_name")))
        if not is_call and kind != "proposal.created":
            continue
        entry = read_entry(reader, index, PAYLOAD_BYTES_MAX)
        text = entry.texts.get("arguments" if is_call else "diffs")
        if text:
            yield entry, _read_json(text)


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _slashed(path: str) -> str:
    return path.replace("\\", "/") if "\\" in path and "/" not in path else path


def _is_same_file(recorded: str | None, asked: str, root: str) -> bool:
    """Whether two names are of one file; they may be relative to different folders."""
    if recorded is None:
        return False
    one = posixpath.normpath(relate_path(recorded, root)[0])
    other = posixpath.normpath(relate_path(_slashed(asked), root)[0])
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _wrote(change: Change, line: str | None) -> bool:
    if line is None:
        return True
    wanted = line.rstrip()
    return any(sign == "+" and text.rstrip() == wanted for sign, text in change.lines)


def _trace(reader: Reader, entry: LogEntry, change: Change) -> Trace:
    session_id = entry.body.get("session_id")
    session = None if session_id is None else reader.find_session(session_id)
    seal = None if session_id is None else reader.find_seal(session_id)
    return Trace(
        index=entry.index,
        at=entry.at or 0,
        basis=basis_of(entry.kind, entry.body, entry.via),
        via=entry.via,
        tool_name=entry.body.get("tool_name"),
        path=change.path or "",
        lines=change.lines,
        status=_status(reader, entry),
        request_id=str(entry.body.get("request_id")),
        session_id=session_id,
        intent=None if session is None else session.intent,
        seal_index=None if seal is None else seal.log_index,
        root=None if seal is None else seal.root,
        decision=_decision_before(reader, session_id, entry.index),
    )


def _status(reader: Reader, entry: LogEntry) -> str:
    """How the call ended, or where the proposal stands."""
    if entry.kind == "proposal.created":
        row = reader.find_version(PROPOSALS, (str(entry.body.get("request_id")),), None)
        return "pending" if row is None else str(row.status)
    ends = reader.call_ends(str(entry.body.get("request_id")), str(entry.body.get("call_id")))
    if not ends:
        return "not finished"
    return str(read_entry(reader, ends[-1], 1).body.get("status"))


def _decision_before(reader: Reader, session_id: str | None, index: int) -> LogEntry | None:
    """The newest decision or plan of its session before it, or of one that it goes on from."""
    for _ in range(_SESSIONS_MAX):
        if session_id is None:
            return None
        rows = reader.thoughts(
            task_id=None, session_id=session_id, type=None, after=-1, end=index, limit=None
        )
        plans = [row for row in rows if row.type in ("decision", "plan")] or rows
        if plans:
            return read_entry(reader, plans[-1].log_index, _DECISION_BYTES_MAX)
        session = reader.find_session(session_id)
        session_id = None if session is None else session.continues_session_id
    return None
