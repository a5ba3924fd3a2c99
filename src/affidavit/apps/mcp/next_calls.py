"""A refusal in plain words, with the exact call that comes next."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from affidavit.errors import AffidavitError, InputError

_Given = Mapping[str, Any]

# They are about a session that is there; a new one would not help.
_NEED_SESSION: Final = ("merkle_finalize", "merkle_root", "audit_session_end", "session_get")


def say_refusal(tool: str, given: _Given, error: AffidavitError) -> str:
    """What was refused, why, and what to call next."""
    make = _NEXT.get(error.code)
    after = make(tool, given, error) if make else _again(tool, given, error)
    return f"{tool} was refused: {error.message}. {after}"


def _call(tool: str, **given: Any) -> str:
    return f"{tool} {json.dumps(given, ensure_ascii=False)}"


def _again(tool: str, given: _Given, error: AffidavitError) -> str:
    del given
    if error.hint in {"", InputError.default_hint}:
        return f"Correct {error.details.get('field', 'it')}, then call {tool} again."
    return f"{error.hint} Then call {tool} again."


def _retry(tool: str, given: _Given, error: AffidavitError) -> str:
    del given
    return f"{error.hint} Call {tool} again with the same arguments in a moment.".strip()


def _tell(tool: str, given: _Given, error: AffidavitError) -> str:
    del given
    when = f"call {_call('server_health')}; once its status is not failing, {tool} again."
    return f"{error.hint} Tell the person, and {when}".strip()


def _record(task_id: str, type_: str, **more: Any) -> str:
    words = {"type": type_, "task_id": task_id, "agent_id": "<your name>", "content": "<why>"}
    return _call("thought_record", **words, **more)


def _writeback(tool: str, given: _Given, error: AffidavitError) -> str:
    if tool == "task_create":  # each call makes a task of its own, which no record can precede
        open_one = {name: item for name, item in given.items() if name != "status"}
        done = _call("task_update", id="<its id>", patch={"status": "DONE"})
        return f"Call {_call(tool, **open_one)}, {_record('<its id>', 'reflection')}, then {done}."
    task_id = str(error.details.get("task_id", "<task id>"))
    return f"Call {_record(task_id, 'reflection')}, then {tool} again."


def _reflection(tool: str, given: _Given, error: AffidavitError) -> str:
    del error
    session_id = str(given.get("session_id", "<session id>"))
    call = _record("<its task id>", "reflection", session_id=session_id)
    return f"Call {call}, then {tool} again."


def _no_records(tool: str, given: _Given, error: AffidavitError) -> str:
    del error
    session_id = str(given.get("session_id", "<session id>"))
    call = _record("<task id>", "decision", session_id=session_id)
    return f"Call {call}, then {tool} again."


def _continue(tool: str, given: _Given, error: AffidavitError) -> str:
    session_id = str(error.details.get("session_id") or given.get("session_id", "<session id>"))
    start = _call("audit_session_start", intent="<what you go on with>", continues=session_id)
    return f"Call {start}, then {tool} with the new session_id."


def _seal_first(tool: str, given: _Given, error: AffidavitError) -> str:
    del error
    session_id = str(given.get("session_id", "<session id>"))
    return f"Call {_call('merkle_finalize', session_id=session_id)}, then {tool} again."


def _end_first(tool: str, given: _Given, error: AffidavitError) -> str:
    del error
    session_id = str(given.get("continues", "<session id>"))
    return f"Call {_call('audit_session_end', session_id=session_id)}, then {tool} again."


def _start(tool: str, given: _Given, error: AffidavitError) -> str:
    if error.details.get("field") == "continues":
        rest = {name: item for name, item in given.items() if name != "continues"}
        return f"To begin without an earlier session, call {_call(tool, **rest)}"
    if tool in _NEED_SESSION:
        every = _call("audit_verify_chain")
        return f"Call {every}, whose by_session names those with records, then {tool} again."
    start = _call("audit_session_start", intent="<what you are about to do>")
    return f"Call {start}, then {tool} with the session_id it answers, or leave session_id out."


def _another_id(tool: str, given: _Given, error: AffidavitError) -> str:
    del error
    rest = {name: item for name, item in given.items() if name != "session_id"}
    return f"Leave session_id out to get a fresh one: {_call(tool, **rest)}"[:600]


def _find(tool: str, given: _Given, error: AffidavitError) -> str:
    del given, error
    noun = next(
        (one for one in ("task", "turn", "tool_call", "proposal") if tool.startswith(one)), ""
    )
    lists = f"{noun}_list" if noun else "thought_record_list"
    return f"Call {_call(lists, limit=20)} to see which there are, then {tool} again."


def _move(tool: str, given: _Given, error: AffidavitError) -> str:
    allowed = error.details.get("allowed") or ()
    if not allowed:
        return f"{error.hint} For what is left, call {_call('task_create', title='<what is left>')}"
    first = _call(tool, **{**given, "to": allowed[0]}) if "to" in given else tool
    return f"{error.hint} For example: {first}"[:600]


def _lifecycle(tool: str, given: _Given, error: AffidavitError) -> str:
    noun = "proposal" if tool.startswith("proposal") else "tool_call"
    key = {name: given[name] for name in ("request_id", "call_id") if name in given}
    if error.details.get("status") is None:
        first = "proposal_create" if noun == "proposal" else "tool_call_request"
        return f"{error.hint} Call {_call(first, **key)} with the rest, then {tool} again."
    return f"{error.hint} {_call(f'{noun}_get', **key)} shows it."


def _verify(tool: str, given: _Given, error: AffidavitError) -> str:
    del tool, error
    which = {"session_id": given["session_id"]} if given.get("session_id") else {"all": True}
    return f"Stop, tell the person, and call {_call('audit_verify_chain', **which)} to see where."


_NEXT: Final[dict[str, Callable[[str, _Given, AffidavitError], str]]] = {
    "ERR_WRITEBACK_REQUIRED": _writeback,
    "ERR_CLOSING_REFLECTION_REQUIRED": _reflection,
    "ERR_NO_RECORDS": _no_records,
    "ERR_SESSION_SEALED": _continue,
    "ERR_SESSION_ENDED": _continue,
    "ERR_SESSION_OPEN": _end_first,
    "ERR_SESSION_EXISTS": _another_id,
    "ERR_SESSION_NOT_FOUND": _start,
    "ERR_NOT_FINALIZED": _seal_first,
    "ERR_NOT_FOUND": _find,
    "ERR_INVALID_TRANSITION": _move,
    "ERR_INVALID_LIFECYCLE": _lifecycle,
    "ERR_CHAIN_BROKEN": _verify,
    "ERR_STORE_LOCKED": _retry,
    "ERR_STORE_UNAVAILABLE": _tell,
    "ERR_STORE_FULL": _tell,
    "ERR_OUTCOME_UNKNOWN": _retry,
    "HANDLER_ERROR": _retry,
}
