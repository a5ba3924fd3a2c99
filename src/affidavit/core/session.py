"""The session chain: what binds the records of one session, across tasks and agents.

    genesis      = H(canonical(metadata))
    content_hash = H(canonical({agent_id, content, id, session_id, task_id, timestamp, type}))
    chain_hash   = H(content_hash || parent_chain_hash)          both as 32 raw bytes

The first parent is the genesis, so a session cannot start silently; a session that continues
another holds that one's last chain hash in its metadata.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from affidavit.core.canonical import encode_restricted, hex_digest


class Continued(NamedTuple):
    """The earlier session a session goes on from, and that one's last chain hash."""

    session_id: str
    chain_hash: str


class Metadata(NamedTuple):
    """What the genesis of a session is the hash of."""

    caller: str | None
    continues: Continued | None
    ledger_id: str
    proof_grade: bool
    session_id: str
    started_at: str
    task_id: str | None

    def to_body(self) -> dict[str, object]:
        """The seven keys as they stand in the genesis and in `session.started`."""
        body: dict[str, object] = self._asdict()
        if self.continues is not None:
            body["continues"] = self.continues._asdict()
        return body


METADATA_KEYS = Metadata._fields


def genesis(metadata: dict[str, object]) -> str:
    """The hash a session starts from."""
    return hex_digest(encode_restricted(metadata))


def content_hash(
    agent_json: str,
    content_json: str,
    id_json: str,
    session_json: str,
    task_json: str,
    timestamp_json: str,
    type_: str,
) -> str:
    """Everything a bound record says, authorship included; strings arrive JSON-encoded."""
    text = (
        f'{{"agent_id":{agent_json},"content":{content_json},"id":{id_json},'
        f'"session_id":{session_json},"task_id":{task_json},"timestamp":{timestamp_json},'
        f'"type":"{type_}"}}'
    )
    return sha256(text.encode()).hexdigest()


def chain_hash(content_hash_hex: str, parent_hex: str) -> str:
    """One link of a session chain."""
    return sha256(bytes.fromhex(content_hash_hex + parent_hex)).hexdigest()
