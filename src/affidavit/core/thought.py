"""The task chain: every record of a task carries the hash of the one before it.

    hash = hex(SHA-256(canonical({content, id, prev_hash, task_id, timestamp, type})))

`prev_hash` is the `hash` of the record before it with the same `task_id`, or 64 zeros. Strings
arrive here already JSON-encoded (`*_json`), because the same bytes go into the session chain and
the entry.

    >>> from affidavit.core.canonical import encode_string as q
    >>> task_hash(q("hello"), q("r1"), ZERO_HASH, q("t1"), q("2026-04-17T00:00:00Z"), "plan")[:8]
    '6a2f9597'
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

ZERO_HASH: Final = "0" * 64
THOUGHT_TYPES: Final = ("plan", "analysis", "decision", "reflection")


def task_hash(
    content_json: str, id_json: str, prev_hash: str, task_json: str, timestamp_json: str, type_: str
) -> str:
    """One link of a task chain."""
    text = (
        f'{{"content":{content_json},"id":{id_json},"prev_hash":"{prev_hash}",'
        f'"task_id":{task_json},"timestamp":{timestamp_json},"type":"{type_}"}}'
    )
    return sha256(text.encode()).hexdigest()
