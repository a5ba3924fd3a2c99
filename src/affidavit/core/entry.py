"""The entry: one fact of the log, as canonical bytes that are stored and hashed exactly as written.

    canonical({at, body, kind, src, v})        v = 1, at most 65,535 bytes

`at` is the ledger's clock in microseconds, `src` says how the fact came in, and the body holds
identifiers, enums, numbers and hashes. Whatever a person or a model writes freely is a payload: the
body holds only its size and a commitment to it, `{"bytes": n, "commit": hex(H(salt || text))}`.

What the body of each kind holds is in `core/kinds.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

from affidavit.core.canonical import (
    decode_restricted,
    encode_restricted,
    encode_string,
    encode_utf8,
)
from affidavit.core.kinds import check_body, is_count
from affidavit.core.names import is_name
from affidavit.errors import InputError

ENTRY_BYTES_MAX: Final = 65_535
SALT_BYTES: Final = 32

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
    if not is_count(at) or not isinstance(body, dict) or not is_name(kind):
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
    redaction: str = "",
) -> bytes:
    """The bytes of `thought.recorded`; equals `encode_entry`, faster.

    Every value arrives in JSON, but for the two hashes every record has and the type.
    `redaction` is empty, or that key with its value and a comma.
    """
    text = (
        f'{{"at":{at},"body":{{"agent_id":{agent},"chain_hash":{chain},'
        f'"content_hash":{content_hash},"hash":"{hash_}","id":{id_},"parent_chain_hash":{parent},'
        f'"prev_hash":"{prev_hash}",{redaction}"session_id":{session},"session_seq":{seq},'
        f'"task_id":{task},"timestamp":{timestamp},"type":"{type_}"}},"kind":"thought.recorded",'
        f"{source_json(src)}"
    )
    data = text.encode() if text.isascii() else encode_utf8(text, "entry")
    return data if len(data) <= ENTRY_BYTES_MAX else _bounded(data)


def encode_call(entry: Entry) -> bytes:
    """The bytes of `call.finished` and `call.failed`; equals `encode_entry`, faster."""
    body, digest = entry.body, entry.body["args_sha256"]
    args = "null"
    if digest is not None:
        args = f'{{"bytes":{digest["bytes"]},"commit":"{digest["commit"]}"}}'
    text = (
        f'{{"at":{entry.at},"body":{{"args_sha256":{args},"caller":{_quoted(body["caller"])},'
        f'"duration_us":{body["duration_us"]},"first_index":{_number(body["first_index"])},'
        f'"last_index":{_number(body["last_index"])},"outcome":{_quoted(body["outcome"])},'
        f'"tool":{_quoted(body["tool"])}}},"kind":"{entry.kind}",{source_json(entry.src)}'
    )
    return _bounded(encode_utf8(text, "entry"))


def _quoted(text: str | None) -> str:
    return "null" if text is None else encode_string(text)


def _number(number: int | None) -> str:
    return "null" if number is None else str(number)


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
