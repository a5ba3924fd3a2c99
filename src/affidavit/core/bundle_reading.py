"""Reading an evidence file strictly, and in pieces: no more of it is in memory than one line.

What is asked of an entry (its line, its payloads, its proof) comes in the order of the log, as the
file has it, and what is kept of an entry are a few numbers. JSON is RFC 8785 text and nothing else:
what is read encodes back to the same bytes. What is not of its shape is an `InputError` whose field
says in which file; it may come late, so that whoever reads believes nothing before the end.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Final, TypeVar

from affidavit.core.archive import Member, Source, iter_members, read_member
from affidavit.core.bundle import (
    CHECKPOINT,
    ENTRIES,
    MANIFEST,
    PAYLOADS,
    POLICY,
    SCOPES,
    Manifest,
    RecordPath,
    Scope,
    SessionPart,
    Shown,
    parse_range,
    session_path,
)
from affidavit.core.canonical import INTEGER_MAX, canonicalize_value, decode_utf8, parse_json
from affidavit.core.entry import ENTRY_BYTES_MAX, SALT_BYTES
from affidavit.core.kinds import BODIES
from affidavit.core.merkle import Digest
from affidavit.core.names import is_digest, is_name
from affidavit.core.note import NOTE_BYTES_MAX, decode_base64
from affidavit.core.session import METADATA_KEYS
from affidavit.errors import InputError

T = TypeVar("T")

# A line holds the payloads of one entry, or one entry; an escape may take six bytes for one.
LINE_BYTES_MAX: Final = 512 * 1024 * 1024
ENTRY_LINE_BYTES_MAX: Final = 6 * ENTRY_BYTES_MAX + 64
# The texts of one entry: what known kinds have of 16 MiB each, and small ones.
_TEXT_BYTES_MAX: Final = 64 * 1024 * 1024
# An entry has room for some hundred payload fields; so many commas and texts tell of no more.
_COMMAS_MAX: Final = 4_096
_TOKENS_MAX: Final = 4 * _COMMAS_MAX
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|,', re.DOTALL)
_PLAIN_BYTES_MAX: Final = 1 << 20
# What stands around a list: names, counts and hashes.
_AROUND_BYTES_MAX: Final = 1 << 16
_PROOF_BYTES_MAX: Final = 2 * NOTE_BYTES_MAX
_PATH_HASHES_MAX: Final = 63
_INDEX: Final = r"(?:0|[1-9][0-9]{0,15})"
_PROOF = re.compile(rf"proofs/({_INDEX})\.tlog-proof\Z", re.ASCII)
_SESSION = re.compile(rf"sessions/({_INDEX})\.json\Z", re.ASCII)
_LISTED = re.compile(rb'"([A-Za-z0-9_./-]{1,200})":"([0-9a-f]{64})"')
_RECORD = re.compile(
    rb'\{"index":(%b),"path":\[((?:"[0-9a-f]{64}"(?:,"[0-9a-f]{64}"){0,%d})?)\]\}'
    % (_INDEX.encode(), _PATH_HASHES_MAX - 1)
)
_PATH_HASH = re.compile(rb"[0-9a-f]{64}")
# What stands before and behind the items.
_FILES: Final = (b'{"files":{', b"}")
_RECORDS: Final = (b',"records":[', b"]")
# No item of such a list is longer.
_ITEM_BYTES_MAX: Final = 8_192


class BundleReader:
    """One evidence file. Making one checks the archive; everything else is read when asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._plain: dict[str, Member] = {}
        self._proofs = _Places()
        self._parts: dict[int, Member] = {}
        for member in iter_members(source):
            self._place(member)
        for name in (MANIFEST, POLICY, CHECKPOINT, ENTRIES, PAYLOADS):
            if name not in self._plain:
                raise _malformed(name, "is missing")
        self._proofs.sort()
        self.manifest = self._read_manifest()
        self.policy = self._whole(POLICY)
        self.checkpoint = self._whole(CHECKPOINT)
        self.sessions = {
            start: self._read_session(member) for start, member in sorted(self._parts.items())
        }

    @property
    def scope(self) -> Scope:
        """What the file says it is of."""
        return self.manifest.scope

    @property
    def proof_count(self) -> int:
        """How many entries have a proof."""
        return len(self._proofs)

    def _place(self, member: Member) -> None:
        if match := _PROOF.match(member.name):
            if member.size > _PROOF_BYTES_MAX:
                raise _malformed(member.name, "is too large")
            self._proofs.add(int(match[1]), member)
        elif match := _SESSION.match(member.name):
            self._parts[int(match[1])] = member
        elif member.name in (MANIFEST, POLICY, CHECKPOINT, ENTRIES, PAYLOADS):
            self._plain[member.name] = member
        else:
            raise _malformed(member.name, "is no file of evidence")

    def _whole(self, name: str) -> bytes:
        member = self._plain[name]
        if member.size > _PLAIN_BYTES_MAX:
            raise _malformed(name, f"has more than {_PLAIN_BYTES_MAX:,} bytes")
        return b"".join(read_member(self._source, member))

    def find_changed(self) -> Iterator[str]:
        """Every file whose bytes are not those that the manifest lists, after reading them all."""
        listing = self._list(self._plain[MANIFEST], _FILES, _LISTED)
        listed = ((match[1].decode(), match[2].decode()) for match in listing)
        members = (one for one in iter_members(self._source) if one.name != MANIFEST)
        for member, item in zip_longest(members, listed):
            if member is None or item is None or member.name != item[0]:
                odd = min(one for one in (member and member.name, item and item[0]) if one)
                said = f"{odd!r:.200} is listed but not there, or there and not listed in order"
                raise _malformed(MANIFEST, said)
            digest = sha256()
            for piece in read_member(self._source, member):
                digest.update(piece)
            if digest.hexdigest() != item[1]:
                yield member.name

    def proofs(self) -> Iterator[tuple[int, bytes]]:
        """The proof of each entry that has one, in the order of the log."""
        for index, start, size in self._proofs:
            yield index, self._source[start : start + size]

    def entries(self) -> Iterator[tuple[int, bytes]]:
        """The entries, in the order of the log."""
        for index, value in self._lines(ENTRIES, ENTRY_LINE_BYTES_MAX):
            _within(ENTRIES, _check_shape, value, _LINE_SHAPE, "a line")
            entry = value["entry"].encode()
            if len(entry) > ENTRY_BYTES_MAX:
                said = f"entry {index} has more than {ENTRY_BYTES_MAX:,} bytes"
                raise _malformed(ENTRIES, said)
            yield index, entry

    def payloads(self) -> Iterator[tuple[int, dict[str, Shown]]]:
        """The payloads of each entry that has any, in the order of the log."""
        for index, value in self._lines(PAYLOADS, LINE_BYTES_MAX):
            yield index, _within(PAYLOADS, _read_fields, value)

    def records(self, start: int) -> Iterator[RecordPath]:
        """The records of the session that starts at an entry, each with its audit path."""
        for match in self._list(self._parts[start], _RECORDS, _RECORD):
            path = tuple(
                Digest(bytes.fromhex(one.decode())) for one in _PATH_HASH.findall(match[2])
            )
            index = int(match[1])
            if index > INTEGER_MAX:
                raise _malformed(session_path(start), "the index of a record is too large")
            yield RecordPath(index, path)

    def _lines(self, name: str, bytes_max: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """The values of the lines, each for a greater index than the one before."""
        last = -1
        for number, line in enumerate(self._raw_lines(name, bytes_max), start=1):
            try:
                _check_room(line)
                value = _decode_json(line)
                if not isinstance(value, dict) or not _is_index(value.get("index")):
                    raise InputError("has no index")
                if value["index"] <= last:
                    raise InputError(f"entry {value['index']} is there twice, or out of order")
            except InputError as error:
                raise _malformed(name, f"line {number}: {error.message}") from None
            last = value["index"]
            yield last, value

    def _raw_lines(self, name: str, bytes_max: int) -> Iterator[bytes]:
        rest = bytearray()
        for piece in read_member(self._source, self._plain[name]):
            *whole, end = piece.split(b"\n")
            for line in whole:
                yield bytes(rest) + line
                rest.clear()
            rest += end
            if len(rest) > bytes_max:
                raise _malformed(name, f"a line has more than {bytes_max:,} bytes")
        if rest:
            raise _malformed(name, "does not end in a newline")

    def _list(self, member: Member, ends: tuple[bytes, bytes], item: re.Pattern[bytes]) -> _List:
        return _List(read_member(self._source, member), member.name, ends, item)

    def _read_manifest(self) -> Manifest:
        rest = self._list(self._plain[MANIFEST], _FILES, _LISTED).skip()
        return _within(MANIFEST, _read_manifest, rest)

    def _read_session(self, member: Member) -> SessionPart:
        rest = self._list(member, _RECORDS, _RECORD).skip()
        return _within(member.name, _read_session, rest)


class _Places:
    """Where the proofs stand, by the entry each is of: a few bytes for each."""

    def __init__(self) -> None:
        self._indices = array("Q")
        self._starts = array("Q")
        self._sizes = array("L")

    def add(self, index: int, member: Member) -> None:
        """The next one, in whatever order."""
        self._indices.append(index)
        self._starts.append(member.start)
        self._sizes.append(member.size)

    def sort(self) -> None:
        """In the order of the log from here on; in the archive it is that of names."""
        order = sorted(range(len(self._indices)), key=self._indices.__getitem__)
        self._starts = array("Q", (self._starts[n] for n in order))
        self._sizes = array("L", (self._sizes[n] for n in order))
        self._indices = array("Q", (self._indices[n] for n in order))

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self._indices, self._starts, self._sizes, strict=True)


class _List:
    """The items of the one long list, or object, of a JSON file, and what stands around it."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        name: str,
        ends: tuple[bytes, bytes],
        item: re.Pattern[bytes],
    ) -> None:
        self._pieces = pieces
        self._name = name
        self._before, self._end = ends
        self._item = item
        self._around = b""

    def __iter__(self) -> Iterator[re.Match[bytes]]:
        head, data = self._find_start()
        at, is_first = 0, True
        while True:
            while len(data) - at < _ITEM_BYTES_MAX and (piece := next(self._pieces, b"")):
                data, at = data[at:] + piece, 0
            if data[at : at + 1] == self._end:
                break
            if not is_first and data[at : at + 1] != b",":
                raise self._malformed()
            match = self._item.match(data, at + (not is_first))
            if match is None:
                raise self._malformed()
            yield match
            at, is_first = match.end(), False
        self._around = head + data[at:]
        for piece in self._pieces:
            self._check_size()
            self._around += piece
        self._check_size()

    def skip(self) -> bytes:
        """Go to the end; answers with the JSON without the items."""
        for _ in self:
            pass
        return self._around

    def _find_start(self) -> tuple[bytes, bytes]:
        data = b""
        for piece in self._pieces:
            data += piece
            if (at := data.find(self._before)) >= 0:
                at += len(self._before)
                return data[:at], data[at:]
            if len(data) > _AROUND_BYTES_MAX:
                break
        raise self._malformed()

    def _check_size(self) -> None:
        if len(self._around) > _AROUND_BYTES_MAX:
            raise _malformed(self._name, f"has more than {_AROUND_BYTES_MAX:,} bytes beside a list")

    def _malformed(self) -> InputError:
        return _malformed(self._name, "is not in its canonical form, or not of its shape")


def _within(place: str, read: Callable[..., T], *given: Any) -> T:
    try:
        return read(*given)
    except InputError as error:
        raise _malformed(place, error.message) from None


def _malformed(place: str, message: str) -> InputError:
    return InputError(f"{place}: {message}", field=place)


def _check_room(line: bytes) -> None:
    """That a line is no larger than an entry can need, before anything is made of it."""
    shortest = len(line) - 5 * line.count(b"\\u") - line.count(b"\\")
    if shortest > _TEXT_BYTES_MAX:
        raise InputError(f"its texts have more than {_TEXT_BYTES_MAX:,} bytes")
    if line.count(b",") <= _COMMAS_MAX:
        return
    if any(number >= _TOKENS_MAX for number, _ in enumerate(_TOKEN.finditer(line))):
        raise InputError("it has more fields than an entry can have")


def _decode_json(data: bytes) -> Any:
    """RFC 8785 text, and in it one value."""
    text = decode_utf8(data, "text")
    value = parse_json(text, "text")
    if canonicalize_value(value) != text:
        raise InputError("the JSON is not in its canonical form")
    return value


def _is_index(value: Any) -> bool:
    return type(value) is int and 0 <= value <= INTEGER_MAX


def _is_index_or_null(value: Any) -> bool:
    return value is None or _is_index(value)


def _is_digest_or_null(value: Any) -> bool:
    return value is None or is_digest(value)


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _check_shape(value: Any, shape: Mapping[str, Callable[[Any], bool]], what: str) -> None:
    if not isinstance(value, dict) or value.keys() != shape.keys():
        raise InputError(f"{what} has not exactly the keys {', '.join(shape)}")
    for key, holds in shape.items():
        if not holds(value[key]):
            raise InputError(f"{key} of {what} is not of its shape")


_MANIFEST_SHAPE: Final = {
    "files": _is_object,
    "origin": _is_text,
    "root": is_digest,
    "scope": _is_object,
    "size": _is_index,
    "v": lambda value: type(value) is int and value == 1,
}
_LINE_SHAPE: Final = {"entry": _is_text, "index": _is_index}
_SESSION_SHAPE: Final = {
    "entries_root": _is_digest_or_null,
    "entry_count": _is_index,
    "genesis": is_digest,
    "metadata": _is_object,
    "record_count": _is_index,
    "records": _is_list,
    "root": _is_digest_or_null,
    "seal_index": _is_index_or_null,
    "session_id": is_name,
    "whole": _is_bool,
}

_METADATA_SHAPE: Final = {key: BODIES["session.started"][key] for key in METADATA_KEYS}


def _read_manifest(data: bytes) -> Manifest:
    value = _decode_json(data)
    _check_shape(value, _MANIFEST_SHAPE, "the manifest")
    scope = value["scope"]
    _check_shape(scope, {"id": is_name, "kind": lambda kind: kind in SCOPES}, "the scope")
    if scope["kind"] == "range":
        parse_range(scope["id"])
    return Manifest(value["origin"], value["size"], value["root"], Scope(**scope))


def _read_fields(value: Any) -> dict[str, Shown]:
    _check_shape(value, {"fields": _is_object, "index": _is_index}, "a line")
    if not value["fields"]:
        raise InputError(f"the line of entry {value['index']} has no payload")
    return {
        name: _read_shown(shown, f"{name} of entry {value['index']}")
        for name, shown in value["fields"].items()
    }


def _read_shown(value: Any, what: str) -> Shown:
    keys = value.keys() if isinstance(value, dict) else set()
    if keys == {"withheld"} and value["withheld"] is True:
        return Shown()
    if keys == {"erased"} and _is_index(value["erased"]):
        return Shown(erased=value["erased"])
    if keys in ({"text"}, {"salt", "text"}) and all(map(_is_text, value.values())):
        salt = decode_base64(value["salt"], "salt") if "salt" in value else None
        if salt is None or len(salt) == SALT_BYTES:
            return Shown(value["text"], salt)
    raise InputError(f"{what[:200]} is not a text with its salt, erased or withheld")


def _read_session(data: bytes) -> SessionPart:
    value = _decode_json(data)
    _check_shape(value, _SESSION_SHAPE, "the session")
    _check_shape(value["metadata"], _METADATA_SHAPE, "the metadata")
    return SessionPart(**{**value, "records": ()})
