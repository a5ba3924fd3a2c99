"""The entry: one fact of the log, as canonical bytes that are stored and hashed exactly as written.

    canonical({at, body, kind, src, v})        v = 1, at most 65,535 bytes

`at` is the ledger's clock in microseconds, `src` says how the fact came in, and the body holds
identifiers, enums, numbers and hashes. Whatever a person or a model writes freely is a payload: the
body holds only its size and a commitment to it, `{"bytes": n, "commit": hex(H(salt || text))}`.

`BODIES` is the list of kinds this version writes and understands, with the shape of every key. A
body may hold more keys than these: a reader keeps what it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

from affidavit.core.canonical import (
    decode_restricted,
    encode_restricted,
    encode_string,
    encode_utf8,
)
from affidavit.core.lifecycle import TASK_STATES
from affidavit.core.names import is_digest, is_name
from affidavit.core.note import is_key_name, is_log_key
from affidavit.core.thought import THOUGHT_TYPES
from affidavit.errors import InputError

ENTRY_BYTES_MAX: Final = 65_535
SALT_BYTES: Final = 32
END_REASONS: Final = ("done", "lost", "failed")

_KEYS = {"at", "body", "kind", "src", "v"}
_AT = re.compile(rb'\{"at":(\d{1,16}),"body":')


class Source(NamedTuple):
    """How a fact came in and who vouches for its author."""

    auth: str = "none"
    client: str | None = None
    via: str = "python"


class Entry(NamedTuple):
    """An entry, read."""

    at: int
    kind: str
    body: dict[str, Any]
    src: Source


def encode_entry(at: int, kind: str, body: Mapping[str, Any], src: Source) -> bytes:
    """The bytes of an entry of any kind."""
    value = {"at": at, "body": dict(body), "kind": kind, "src": src._asdict(), "v": 1}
    return _bounded(encode_restricted(value))


def decode_entry(data: bytes) -> Entry:
    """Read an entry strictly: canonical, exactly the five keys, a known kind's body in shape."""
    value = decode_restricted(_bounded(data))
    if not isinstance(value, dict) or value.keys() != _KEYS:
        raise InputError("entry: the keys are not exactly at, body, kind, src, v", field="entry")
    at, body, kind, src = value["at"], value["body"], value["kind"], value["src"]
    if value["v"] is True or value["v"] != 1:
        raise InputError(f"entry: version {value['v']!r:.40}, this reads 1", field="v")
    if not _is_count(at) or not isinstance(body, dict) or not is_name(kind):
        raise InputError("entry: at, body or kind is of the wrong type", field="entry")
    source = _read_source(src)
    check_body(kind, body)
    return Entry(at, kind, body, source)


def _read_source(src: Any) -> Source:
    if (
        not isinstance(src, dict)
        or src.keys() != {"auth", "client", "via"}
        or not is_name(src["auth"])
        or not is_name(src["via"])
        or not (src["client"] is None or is_name(src["client"]))
    ):
        raise InputError("entry: src is not {auth, client, via}", field="src")
    return Source(**src)


def check_body(kind: str, body: dict[str, Any]) -> None:
    """That a body of a kind known here has every key it must have, each of its shape."""
    for key, holds in BODIES.get(kind, {}).items():
        if key not in body:
            raise InputError(f"{kind}: {key} is missing", field=key)
        if not holds(body[key]):
            raise InputError(f"{kind}: {key} is not of its shape", field=key)


@lru_cache(maxsize=64)
def source_json(src: Source) -> str:
    """The end of an entry: everything after its kind."""
    client = "null" if src.client is None else encode_string(src.client)
    return (
        f'"src":{{"auth":{encode_string(src.auth)},"client":{client},'
        f'"via":{encode_string(src.via)}}},"v":1}}'
    )


def encode_thought(
    at: int,
    agent: str,
    chain: str,
    content_hash: str,
    hash_: str,
    id_: str,
    parent: str,
    prev_hash: str,
    session: str,
    seq: str,
    task: str,
    timestamp: str,
    type_: str,
    src: Source,
) -> bytes:
    """The bytes of `thought.recorded`; equals `encode_entry`, faster.

    Every value arrives in JSON, but for the two hashes every record has and the type.
    """
    text = (
        f'{{"at":{at},"body":{{"agent_id":{agent},"chain_hash":{chain},'
        f'"content_hash":{content_hash},"hash":"{hash_}","id":{id_},"parent_chain_hash":{parent},'
        f'"prev_hash":"{prev_hash}","session_id":{session},"session_seq":{seq},"task_id":{task},'
        f'"timestamp":{timestamp},"type":"{type_}"}},"kind":"thought.recorded",{source_json(src)}'
    )
    return _bounded(encode_utf8(text, "entry"))


def _bounded(data: bytes) -> bytes:
    if len(data) > ENTRY_BYTES_MAX:
        raise InputError(
            f"entry: {len(data):,} bytes, the limit is {ENTRY_BYTES_MAX:,}",
            code="ERR_TOO_LARGE",
            field="entry",
        )
    return data


def read_at(data: bytes) -> int:
    """The time of an entry, without reading the rest of it."""
    match = _AT.match(data)
    if match is None:
        raise InputError("entry: does not begin with its time", field="entry")
    return int(match.group(1))


def commitment(salt: bytes, text: str) -> dict[str, Any]:
    """What a body holds in place of a payload."""
    raw = text.encode()
    return {"bytes": len(raw), "commit": sha256(salt + raw).hexdigest()}


def is_commitment_to(value: Mapping[str, Any], salt: bytes | None, text: str) -> bool:
    """Whether this payload is the one committed to."""
    if salt is None or len(salt) != SALT_BYTES:
        return False
    try:
        return commitment(salt, text) == {"bytes": value["bytes"], "commit": value["commit"]}
    except UnicodeEncodeError:
        return False


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_payload(value: Any) -> bool:
    return (
        isinstance(value, dict) and _is_count(value.get("bytes")) and is_digest(value.get("commit"))
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


def _is_origin(value: Any) -> bool:
    return is_name(value) and is_key_name(value)


_name_or_null = _or_null(is_name)
_digest_or_null = _or_null(is_digest)
_payload_or_null = _or_null(_is_payload)
_state = _one_of(*TASK_STATES)
_key_change = {"vkey": is_log_key, "by": _name_or_null, "reason": _payload_or_null}

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
        "old_size": _is_count,
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
    "session.sealed": {
        "session_id": is_name,
        "root": is_digest,
        "record_count": _is_count,
        "chain_hash": is_digest,
        "closing_reflection": _is_bool,
        "entries_root": is_digest,
        "entry_count": _is_count,
        "finalized_at": _is_text,
        "first_index": _is_count,
        "last_index": _is_count,
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
        "session_seq": _or_null(_is_count),
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
        "attempt": _is_count,
    },
    "task.deleted": {"task_id": is_name, "reason": _payload_or_null},
}

# Which keys of a body are payload fields; a thought's content is a payload too, bound by its
# hashes.
PAYLOAD_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    kind: tuple(key for key, holds in shape.items() if holds in (_is_payload, _payload_or_null))
    for kind, shape in BODIES.items()
}
