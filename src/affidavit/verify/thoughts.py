"""One decision record: its entry, its row, and its place in both chains.

The entry is not parsed. It is built again from the row and from where the chains stand, and
compared byte for byte: one comparison proves the canonical form, every column and both links. Only
when the bytes differ is the entry read, to say what changed and where.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final, NamedTuple

from affidavit.core.canonical import decode_utf8, encode_string
from affidavit.core.entry import Entry, decode_entry
from affidavit.core.session import chain_hash, content_hash
from affidavit.core.thought import task_hash
from affidavit.core.views import ThoughtRow, thought_row
from affidavit.errors import InputError
from affidavit.verify.ports import RawRow

_NEEDS_ESCAPE = re.compile(rb'["\\\x00-\x1f]').search
# What is hashed and what is written, in canonical order.
_TASK_LINK: Final = (
    b'{"content":%b,"id":%b,"prev_hash":"%b","task_id":%b,"timestamp":%b,"type":"%b"}'
)
_CONTENT: Final = (
    b'{"agent_id":%b,"content":%b,"id":%b,"session_id":%b,"task_id":%b,"timestamp":%b,"type":"%b"}'
)
_ENTRY_HEAD: Final = (
    b'{"at":%d,"body":{"agent_id":%b,"chain_hash":%b,"content_hash":%b,"hash":"%b","id":%b,'
    b'"parent_chain_hash":%b,"prev_hash":"%b","session_id":%b,"session_seq":%b,"task_id":%b,'
    b'"timestamp":%b,"type":"%b"},"kind":"thought.recorded",'
)
_CACHE_MAX: Final = 20_000


class Broken(NamedTuple):
    """Why a record does not hold."""

    code: str
    place: str
    message: str


class ThoughtChecker:
    """Compares entries with rows; keeps the encoded form of names that come again and again."""

    def __init__(self) -> None:
        self._quoted: dict[bytes, bytes] = {}
        self._tails: set[bytes] = set()

    def _quote(self, raw: bytes) -> bytes:
        """A name as JSON, remembered."""
        quoted = self._quoted.get(raw)
        if quoted is None:
            if len(self._quoted) > _CACHE_MAX:
                self._quoted.clear()
            quoted = self._quoted[raw] = quote(raw)
        return quoted

    def is_intact(
        self, entry: bytes, row: RawRow, prev_hash: bytes, parent: bytes | None, next_seq: int
    ) -> bool:
        """Whether entry and row are exactly what this record must be after those two links."""
        (
            _index, id_, type_, task_id, agent_id, content, timestamp, row_prev, hash_, created_at,
            session_id, seq, row_content_hash, row_chain, row_parent, at, erased_at,
        ) = row  # fmt: skip
        if row_prev != prev_hash or created_at != timestamp or erased_at is not None:
            return False
        content_json, id_json, time_json = quote(content), quote(id_), quote(timestamp)
        task_json, agent_json = self._quote(task_id), self._quote(agent_id)
        text = _TASK_LINK % (content_json, id_json, prev_hash, task_json, time_json, type_)
        if sha256(text).hexdigest().encode() != hash_:
            return False
        if session_id is None:
            if not (seq is row_content_hash is row_chain is row_parent is None):
                return False
            session_json = seq_json = content_part = chain_part = parent_part = b"null"
        else:
            if parent is None or row_parent != parent or seq != next_seq:
                return False
            session_json, seq_json = self._quote(session_id), b"%d" % seq
            text = _CONTENT % (
                agent_json, content_json, id_json, session_json, task_json, time_json, type_,
            )  # fmt: skip
            digest = sha256(text)
            if digest.hexdigest().encode() != row_content_hash:
                return False
            link = sha256(digest.digest() + bytes.fromhex(parent.decode())).hexdigest().encode()
            if link != row_chain:
                return False
            content_part, chain_part = b'"%b"' % row_content_hash, b'"%b"' % link
            parent_part = b'"%b"' % parent
        head = _ENTRY_HEAD % (
            at, agent_json, chain_part, content_part, hash_, id_json, parent_part, prev_hash,
            session_json, seq_json, task_json, time_json, type_,
        )  # fmt: skip
        return entry.startswith(head) and (
            entry[len(head) :] in self._tails or self._is_sound(entry, len(head))
        )

    def _is_sound(self, entry: bytes, head: int) -> bool:
        """Whether an entry with a source not seen before reads strictly."""
        try:
            decode_entry(entry)
        except InputError:
            return False
        if len(self._tails) < _CACHE_MAX:
            self._tails.add(entry[head:])
        return True


def quote(raw: bytes) -> bytes:
    """Bytes of a text as JSON; bytes that are no text give something no entry can hold."""
    if not _NEEDS_ESCAPE(raw):
        return b'"%b"' % raw
    return encode_string(raw.decode(errors="replace")).encode()


def diagnose(
    entry: bytes, row: RawRow, prev_hash: bytes | None, parent: bytes | None, next_seq: int
) -> Broken:
    """What is wrong with a record that is not intact.

    `prev_hash` and `parent` are the links it must have; None where that chain is not looked at.
    """
    try:
        read = decode_entry(entry)
    except InputError as error:
        return Broken("entry_not_canonical", "log.entry", error.message)
    if read.kind != "thought.recorded":
        return Broken("view_extra", "thought_records", f"the entry is a {read.kind}")
    try:
        actual = ThoughtRow._make(
            decode_utf8(value, name) if isinstance(value, bytes) else value
            for name, value in zip(ThoughtRow._fields, row, strict=True)
        )
    except InputError as error:
        code = "payload_mismatch" if error.field == "content" else "view_differs"
        return Broken(code, f"thought_records.{error.field}", error.message)
    return _compare(read, actual) or _broken_link(read.body, prev_hash, parent, next_seq)


def _compare(read: Entry, actual: ThoughtRow) -> Broken | None:
    body_holds = _hashes_hold(read.body, actual.content)
    expected = thought_row(actual.log_index, read, actual.content)
    for name, is_value, must_be in zip(ThoughtRow._fields, actual, expected, strict=True):
        if is_value == must_be:
            continue
        row_holds = _hashes_hold(actual._asdict(), actual.content)
        if row_holds and not body_holds:
            return Broken("entry_changed", f"log.entry {name}", f"{name} is not what was recorded")
        return Broken("view_differs", f"thought_records.{name}", f"{name} differs from the entry")
    if body_holds:
        return None
    if not actual.content:
        return Broken("payload_lost", "thought_records.content", "the content is gone")
    return Broken(
        "payload_mismatch", "thought_records.content", "the content is not what was hashed"
    )


def _hashes_hold(body: dict[str, Any], content: str) -> bool:
    """Whether a record's own hashes follow from its fields and this content."""
    try:
        quoted = {
            key: encode_string(body[key]) for key in ("id", "task_id", "agent_id", "timestamp")
        }
        text = encode_string(content)
        own = task_hash(
            text, quoted["id"], body["prev_hash"], quoted["task_id"], quoted["timestamp"],
            body["type"],
        )  # fmt: skip
        if own != body["hash"]:
            return False
        if body["session_id"] is None:
            return body["content_hash"] is None and body["chain_hash"] is None
        digest = content_hash(
            quoted["agent_id"], text, quoted["id"], encode_string(body["session_id"]),
            quoted["task_id"], quoted["timestamp"], body["type"],
        )  # fmt: skip
        return bool(
            digest == body["content_hash"]
            and chain_hash(digest, body["parent_chain_hash"]) == body["chain_hash"]
        )
    except (TypeError, ValueError):
        return False


def _broken_link(
    body: dict[str, Any], prev_hash: bytes | None, parent: bytes | None, next_seq: int
) -> Broken:
    if prev_hash is not None and body["prev_hash"].encode() != prev_hash:
        return Broken(
            "chain_broken",
            "thought_records.prev_hash",
            f"prev_hash is not the hash of the record before it in task {body['task_id']!r:.100}",
        )
    session = f"session {body['session_id']!r:.100}"
    if parent is None:
        return Broken("chain_broken", "thought_records.session_id", f"there is no {session}")
    if body["parent_chain_hash"].encode() != parent:
        return Broken(
            "chain_broken",
            "thought_records.parent_chain_hash",
            f"parent_chain_hash is not the chain hash before it in {session}",
        )
    return Broken(
        "chain_broken",
        "thought_records.session_seq",
        f"session_seq is {body['session_seq']}, the next one of {session} is {next_seq}",
    )
