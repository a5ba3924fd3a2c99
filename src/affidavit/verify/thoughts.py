"""One decision record: its entry, its row, and its place in both chains.

The entry is not parsed. It is built again from the row and from where the chains stand, and
compared byte for byte: one comparison proves the canonical form, every column and both links. Only
when the bytes differ is the entry read, to say what changed and where.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, NamedTuple

from affidavit.core.canonical import encode_string as quote
from affidavit.core.entry import ENTRY_BYTES_MAX, Entry, decode_entry
from affidavit.core.moment import AT_US_MAX
from affidavit.core.names import NAME_BYTES_MAX, is_name
from affidavit.core.session import chain_hash, content_hash
from affidavit.core.thought import THOUGHT_TYPES, task_hash
from affidavit.core.views import find_differing
from affidavit.core.views.thoughts import ThoughtRow, thought_row
from affidavit.errors import InputError
from affidavit.verify.erasures import Erased
from affidavit.verify.ports import RawRow

_TAILS_MAX: Final = 1_000
_TYPES: Final = frozenset(THOUGHT_TYPES)


class Broken(NamedTuple):
    """Why a record does not hold."""

    code: str
    place: str
    message: str


class ThoughtChecker:
    """Compares entries with rows; remembers the ends of entries (their sources) it has read."""

    def __init__(self) -> None:
        self._tail = ""
        self._tails: set[str] = set()

    def is_intact(
        self, entry: bytes, row: RawRow, prev_hash: str, parent: str | None, next_seq: int
    ) -> bool:
        """Whether entry and row are exactly what this record must be after those two links."""
        (
            _index, id_, type_, task_id, agent_id, content, timestamp, row_prev, hash_, created_at,
            session_id, seq, row_content_hash, row_chain, row_parent, at, erased_at,
        ) = row  # fmt: skip
        if row_prev != prev_hash or created_at != timestamp or erased_at is not None:
            return False
        if type_ not in _TYPES or not _are_names(id_, task_id, agent_id):
            return False
        session = number = digest = chain = up = "null"
        try:
            text, own_id, time = quote(content), quote(id_), quote(timestamp)
            task, agent = quote(task_id), quote(agent_id)
            link = (
                f'{{"content":{text},"id":{own_id},"prev_hash":"{prev_hash}","task_id":{task},'
                f'"timestamp":{time},"type":"{type_}"}}'
            ).encode()
            if sha256(link).hexdigest() != hash_:
                return False
            if session_id is not None:
                if parent is None or row_parent != parent or seq != next_seq:
                    return False
                session, number = quote(session_id), seq
                said = sha256(
                    f'{{"agent_id":{agent},"content":{text},"id":{own_id},"session_id":{session},'
                    f'"task_id":{task},"timestamp":{time},"type":"{type_}"}}'.encode()
                )
                linked = sha256(said.digest() + bytes.fromhex(parent))
                if said.hexdigest() != row_content_hash or linked.hexdigest() != row_chain:
                    return False
                digest, chain, up = f'"{row_content_hash}"', f'"{row_chain}"', f'"{parent}"'
            elif not (seq is row_content_hash is row_chain is row_parent is None):
                return False
            built = (
                f'{{"at":{at},"body":{{"agent_id":{agent},"chain_hash":{chain},'
                f'"content_hash":{digest},"hash":"{hash_}","id":{own_id},"parent_chain_hash":{up},'
                f'"prev_hash":"{prev_hash}","session_id":{session},"session_seq":{number},'
                f'"task_id":{task},"timestamp":{time},"type":"{type_}"}},{self._tail}'
            ).encode()
            if len(entry) > ENTRY_BYTES_MAX or at > AT_US_MAX:
                return False
        except (TypeError, ValueError):
            return False  # a column holds a value of another type, or bytes that are no text
        return built == entry or self._has_other_tail(entry, built[: len(built) - len(self._tail)])

    def _has_other_tail(self, entry: bytes, head: bytes) -> bool:
        """Whether only the end differs, and is one that an entry may have."""
        if not entry.startswith(head) or not entry[len(head) :].isascii():
            return entry.startswith(head) and _reads(entry)
        tail = entry[len(head) :].decode()
        if tail not in self._tails and not _reads(entry):
            return False
        if len(self._tails) < _TAILS_MAX:
            self._tails.add(tail)
            self._tail = tail
        return True


def _are_names(*names: Any) -> bool:
    """Whether a call would have taken these; nearly always one look at all of them is enough."""
    if not all(names):
        return False
    try:
        plain = "".join(names)
    except TypeError:
        return False
    if plain.isascii() and plain.isprintable() and len(plain) <= NAME_BYTES_MAX:
        return True
    return all(map(is_name, names))


def _reads(entry: bytes) -> bool:
    """Whether an entry reads strictly, as a thought."""
    try:
        return decode_entry(entry).kind == "thought.recorded"
    except InputError:
        return False


def diagnose(
    entry: bytes,
    row: RawRow,
    prev_hash: str | None,
    parent: str | None,
    next_seq: int,
    erased: Erased | None,
) -> Broken | None:
    """What is wrong with a record, if anything is.

    `prev_hash` and `parent` are the links it must have; None where that chain is not looked at.
    """
    try:
        read = decode_entry(entry)
    except InputError as error:
        return Broken("entry_not_canonical", "log.entry", error.message)
    if read.kind != "thought.recorded":
        return Broken("view_extra", "thought_records", f"the entry is a {read.kind}")
    return find_difference(read, row, erased) or find_broken_link(
        read.body, prev_hash, parent, next_seq
    )


def find_difference(read: Entry, row: RawRow, erased: Erased | None) -> Broken | None:
    """The first column that is not what its entry says; then the content, which entries hash."""
    actual = ThoughtRow._make(row)
    if erased is None and actual.erased_at is not None:
        said = "erased_at says that it was erased, and no entry does"
        return Broken("erasure_unexplained", "thought_records.erased_at", said)
    column = find_changed_column(read, actual, erased)
    if column is not None:
        return Broken(
            "view_differs", f"thought_records.{column}", f"{column} differs from the entry"
        )
    if erased is not None or hashes_hold(read.body, actual.content):
        return None
    if actual.content in ("", None):
        return Broken("payload_lost", "thought_records.content", "the content is gone")
    said = "the content is not what was hashed"
    return Broken("payload_mismatch", "thought_records.content", said)


def derive_row(index: int, read: Entry, content: str, erased: Erased | None) -> ThoughtRow:
    """The row of a record, whose content was perhaps erased."""
    row = thought_row(index, read, content)
    return row if erased is None else row._replace(content="", erased_at=erased.erased_at)


def find_changed_column(read: Entry, actual: ThoughtRow, erased: Erased | None) -> str | None:
    """The first column in which a row differs from its entry; a content only if it was erased."""
    expected = derive_row(actual.log_index, read, actual.content, erased)
    return next(find_differing(actual, expected), None)


def hashes_hold(body: dict[str, Any], content: Any) -> bool:
    """Whether a record's own hashes follow from its fields and this content."""
    try:
        own_id, task, agent, time = (
            quote(body[key]) for key in ("id", "task_id", "agent_id", "timestamp")
        )
        text, type_ = quote(content), body["type"]
        if task_hash(text, own_id, body["prev_hash"], task, time, type_) != body["hash"]:
            return False
        if body["session_id"] is None:
            return body["content_hash"] is None and body["chain_hash"] is None
        session = quote(body["session_id"])
        digest = content_hash(agent, text, own_id, session, task, time, type_)
        return bool(
            digest == body["content_hash"]
            and chain_hash(digest, body["parent_chain_hash"]) == body["chain_hash"]
        )
    except (TypeError, ValueError):
        return False  # a value of another type, or bytes that are no text


def find_broken_link(
    body: dict[str, Any], prev_hash: str | None, parent: str | None, next_seq: int
) -> Broken | None:
    """The first link of a record that does not lead to the one before it."""
    if prev_hash is not None and body["prev_hash"] != prev_hash:
        return Broken(
            "chain_broken",
            "thought_records.prev_hash",
            f"prev_hash is not the hash of the record before it in task {body['task_id']!r:.100}",
        )
    if body["session_id"] is None or parent is None:
        return None
    session = f"session {body['session_id']!r:.100}"
    if body["parent_chain_hash"] != parent:
        return Broken(
            "chain_broken",
            "thought_records.parent_chain_hash",
            f"parent_chain_hash is not the chain hash before it in {session}",
        )
    if body["session_seq"] != next_seq:
        return Broken(
            "chain_broken",
            "thought_records.session_seq",
            f"session_seq is {body['session_seq']}, the next one of {session} is {next_seq}",
        )
    return None
