"""The kinds of entries this version writes and understands, with the shape of every key of a body.

A body may hold more keys than these: a reader keeps what it does not know. `BODIES` is the table; a
new kind is one more line of it, and a row in a view (`core/views`) where it has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from affidavit.core.lifecycle import DECISIONS, FINISHED, TASK_STATES
from affidavit.core.names import is_digest, is_name
from affidavit.core.note import is_key_name, is_log_key
from affidavit.core.thought import THOUGHT_TYPES
from affidavit.errors import InputError

END_REASONS: Final = ("done", "lost", "failed")
_NOTHING_REMOVED: Final = {"count": 1, "rules": "0"}
TURN_KINDS: Final = ("user", "assistant", "system", "sysinfo", "tool")
# What stands for a caller's JSON: its RFC 8785 text, the text as received, or a digest alone.
FORMS: Final = ("jcs", "raw", "given")

# A number from 0 to 1 as its shortest decimal string.
_SHARE = re.compile(r"(?:0|1|0\.\d*[1-9]|[1-9](?:\.\d*[1-9])?e-\d+)\Z", re.ASCII)


def check_body(kind: str, body: dict[str, Any]) -> None:
    """That a body of a kind known here has every key it must have, each of its shape."""
    for key, holds in BODIES.get(kind, {}).items():
        if key not in body:
            raise InputError(f"{kind}: {key} is missing", field=key)
        if not holds(body[key]):
            raise InputError(f"{kind}: {key} is not of its shape", field=key)
    if kind in BODIES and not _is_redaction(body.get("redaction", _NOTHING_REMOVED)):
        raise InputError(f"{kind}: redaction is not of its shape", field="redaction")


def is_count(value: Any) -> bool:
    """Whether this is a whole number from 0 on."""
    return type(value) is int and value >= 0


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_payload(value: Any) -> bool:
    return (
        isinstance(value, dict) and is_count(value.get("bytes")) and is_digest(value.get("commit"))
    )


def _is_redaction(value: Any) -> bool:
    """How many secrets were removed from an entry's texts, and under which rules."""
    return (
        isinstance(value, dict)
        and value.keys() == {"count", "rules"}
        and is_count(value["count"])
        and value["count"] > 0
        and is_name(value["rules"])
    )


def _is_scalar(value: Any) -> bool:
    return type(value) in (str, int, bool)


def _is_settings(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_scalar, value.values()))


def _is_continued(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"chain_hash", "session_id"}
        and is_digest(value["chain_hash"])
        and is_name(value["session_id"])
    )


def _one_of(*allowed: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in allowed


def _or_null(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or holds(value)


def _is_task_change(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "title" not in value
        and ("status" not in value or value["status"] in TASK_STATES)
        and value.get("description") is None
        and all(
            value[key] is None or is_name(value[key])
            for key in ("project_id", "priority", "assignee")
            if key in value
        )
    )


def _is_field_list(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, list) and len(item) == 2 and is_count(item[0]) and is_name(item[1])
        for item in value
    )


def _is_origin(value: Any) -> bool:
    return is_name(value) and is_key_name(value)


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _is_usage(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_count, value.values()))


def _is_share(value: Any) -> bool:
    return isinstance(value, str) and _SHARE.match(value) is not None


_name_or_null = _or_null(is_name)
_digest_or_null = _or_null(is_digest)
_payload_or_null = _or_null(_is_payload)
_whole_or_null = _or_null(_is_whole)
_usage_or_null = _or_null(_is_usage)
_state = _one_of(*TASK_STATES)
_key_change = {"vkey": is_log_key, "by": _name_or_null, "reason": _payload_or_null}
_call = {
    "tool": is_name,
    "caller": _name_or_null,
    "duration_us": is_count,
    "outcome": is_name,
    "args_sha256": _payload_or_null,
    "first_index": _or_null(is_count),
    "last_index": _or_null(is_count),
}
_tool_call_finish = {
    "request_id": is_name,
    "call_id": is_name,
    "session_id": _name_or_null,
    "status": _one_of(*FINISHED),
    "ended_at_ms": _is_whole,
    "latency_ms": is_count,
    "outcome_form": _or_null(_one_of(*FORMS)),
    "outcome_sha256": _payload_or_null,
    "outcome": _payload_or_null,
    "error_kind": _name_or_null,
    "error_msg": _payload_or_null,
    "usage": _usage_or_null,
}
_capture = {
    "channel": is_name,
    "source": is_name,
    "version": _name_or_null,
    "session_id": _name_or_null,
    "settings_sha256": _digest_or_null,
    "count": _or_null(is_count),
}
_proposal_move = {
    "request_id": is_name,
    "session_id": _name_or_null,
    "decision": _or_null(_one_of(*DECISIONS)),
    "by": _name_or_null,
    "reason": _payload_or_null,
    "commit_hash": _name_or_null,
    "at_ms": _is_whole,
}

BODIES: Final[dict[str, dict[str, Callable[[Any], bool]]]] = {
    "ledger.created": {"ledger_id": is_name, "origin": is_name, "settings": _is_settings},
    "setting.changed": {
        "name": is_name,
        "old": _or_null(_is_scalar),
        "new": _is_scalar,
        "by": _name_or_null,
    },
    "origin.changed": {
        "old_origin": _is_origin,
        "old_size": is_count,
        "old_root": is_digest,
        "origin": _is_origin,
        "reason": _payload_or_null,
    },
    "key.added": _key_change,
    "key.retired": _key_change,
    "session.started": {
        "caller": _name_or_null,
        "continues": _or_null(_is_continued),
        "ledger_id": is_name,
        "proof_grade": _is_bool,
        "session_id": is_name,
        "started_at": _is_text,
        "task_id": _name_or_null,
        "genesis": is_digest,
        "intent": _is_payload,
        "project": _name_or_null,
        "model": _name_or_null,
    },
    "session.linked": {"session_id": is_name, "source": is_name, "external_id": is_name},
    "session.sealed": {
        "session_id": is_name,
        "root": is_digest,
        "record_count": is_count,
        "chain_hash": is_digest,
        "closing_reflection": _is_bool,
        "entries_root": is_digest,
        "entry_count": is_count,
        "finalized_at": _is_text,
        "first_index": is_count,
        "last_index": is_count,
    },
    "session.ended": {
        "session_id": is_name,
        "ended_at": _is_text,
        "reason": _one_of(*END_REASONS),
    },
    "thought.recorded": {
        "id": is_name,
        "type": _one_of(*THOUGHT_TYPES),
        "task_id": is_name,
        "agent_id": is_name,
        "timestamp": _is_text,
        "prev_hash": is_digest,
        "hash": is_digest,
        "session_id": _name_or_null,
        "session_seq": _or_null(is_count),
        "content_hash": _digest_or_null,
        "chain_hash": _digest_or_null,
        "parent_chain_hash": _digest_or_null,
    },
    "task.created": {
        "task_id": is_name,
        "title": _is_payload,
        "description": _payload_or_null,
        "status": _state,
        "project_id": _name_or_null,
        "priority": _name_or_null,
        "assignee": _name_or_null,
    },
    "task.updated": {
        "task_id": is_name,
        "changed": _is_task_change,
        "title": _payload_or_null,
        "description": _payload_or_null,
        "reason": _payload_or_null,
        "attempt": is_count,
    },
    "task.deleted": {"task_id": is_name, "reason": _payload_or_null},
    "call.finished": _call,
    "call.failed": _call,
    "turn.asserted": {
        "id": is_name,
        "message_id": is_name,
        "parent_id": _name_or_null,
        "thread_id": _name_or_null,
        "session_id": _name_or_null,
        "turn_kind": _one_of(*TURN_KINDS),
        "content": _is_payload,
        "occurred_at_ms": _whole_or_null,
        "actor": _name_or_null,
        "model": _name_or_null,
        "usage": _usage_or_null,
        "attributes": _payload_or_null,
    },
    "turn.retracted": {"id": is_name, "reason": _payload_or_null},
    "tool_call.requested": {
        "request_id": is_name,
        "call_id": is_name,
        "parent_id": _name_or_null,
        "session_id": _name_or_null,
        "vendor": is_name,
        "tool_name": is_name,
        "args_form": _one_of(*FORMS),
        "args_sha256": _is_payload,
        "arguments": _payload_or_null,
        "started_at_ms": _is_whole,
        "actor": _name_or_null,
        "model": _name_or_null,
        "attributes": _payload_or_null,
    },
    "tool_call.completed": _tool_call_finish,
    "tool_call.failed": _tool_call_finish,
    "tool_call.late": _tool_call_finish,
    "proposal.created": {
        "request_id": is_name,
        "diffs": _is_payload,
        "confidence": _or_null(_is_share),
        "session_id": _name_or_null,
    },
    "proposal.decided": _proposal_move,
    "proposal.applied": _proposal_move,
    "proposal.reverted": _proposal_move,
    "approval.decided": {
        "request_id": is_name,
        "call_id": is_name,
        "session_id": _name_or_null,
        "decision": _one_of(*DECISIONS),
        "by": is_name,
        "reason": _payload_or_null,
    },
    "capture.started": _capture,
    "capture.stopped": _capture,
    "events.dropped": {
        "channel": is_name,
        "count": is_count,
        "from_ms": _is_whole,
        "to_ms": _is_whole,
    },
    "payload.erased": {
        "fields": _is_field_list,
        "field_count": is_count,
        "by": is_name,
        "reason": _payload_or_null,
    },
}

# Which keys of a body are payload fields; a thought's content is a payload too, bound by its
# hashes.
PAYLOAD_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    kind: tuple(key for key, holds in shape.items() if holds in (_is_payload, _payload_or_null))
    for kind, shape in BODIES.items()
}
