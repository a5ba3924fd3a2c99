r"""The container of an evidence file: a zip whose files are stored as they are, and nothing else.

Written as `zipfile` writes it (names sorted, times 1980-01-01, mode 0600), so any tool unpacks it;
with more than 65,534 files the number stands where ZIP64 has it. A container may be larger than
memory: it is written in pieces, and read from a `Source` of which only stretches are asked for.
Read strictly: every byte of the container is where it must be, with nothing before, between or
behind. Refused are a name twice or out of order, `..`, absolute paths and folders, encryption,
compression, extra fields, comments, and more than the sizes below.

What may differ without meaning anything: who made it, which version it takes to unpack it, bit 11
of the flags (all names are ASCII), and the attributes of a file.

    >>> decode_archive(encode_archive({"b": b"2", "a/c": b"1"}))
    {'a/c': b'1', 'b': b'2'}
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol
from zlib import crc32

from affidavit.errors import InputError

# Places in the container are told in four bytes.
ARCHIVE_BYTES_MAX: Final = 4 * 1024**3 - 1
FILES_MAX: Final = 1_100_000
NAME_BYTES_MAX: Final = 200
PIECE_BYTES: Final = 1 << 20
_WINDOW_BYTES: Final = 1 << 16
_SMALL_FILES_MAX: Final = 65_534  # 65,535 says that the number stands elsewhere

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
_END: Final = struct.Struct("<4s4H2IH")
_LONG_END: Final = struct.Struct("<4sQ2H2I4Q")
_LOCATOR: Final = struct.Struct("<4sIQI")
_LOCAL_SIGN, _CENTRAL_SIGN, _END_SIGN = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_LONG_END_SIGN, _LOCATOR_SIGN = b"PK\x06\x06", b"PK\x06\x07"
_STORED: Final = 0
_MIDNIGHT: Final = 0
_DAY: Final = 1 << 5 | 1  # 1980-01-01
_VERSION: Final = 20
_MADE_BY: Final = 3 << 8 | _VERSION  # Unix
_VERSION_LONG: Final = 45
_MADE_BY_LONG: Final = 3 << 8 | _VERSION_LONG
_NOT_WHOLE: Final = "its end is not that of one whole archive without a comment"
_MODE: Final = 0o600 << 16
_NAMES_ARE_UTF8: Final = 1 << 11
# Fields of the listing: all but who made it, the version needed, flags and attributes.
_COMPARED: Final = (0, *range(4, 14), 16)
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*\Z", re.ASCII)


class Source(Protocol):
    """Where a container is read from: its size, and any stretch of its bytes."""

    def __len__(self) -> int: ...

    def __getitem__(self, stretch: slice, /) -> bytes: ...


class Member(NamedTuple):
    """A file in the container, and where its bytes are."""

    name: str
    start: int
    size: int
    crc: int


class _Listed(NamedTuple):
    """What both headers of a file must say alike."""

    name: bytes
    crc: int
    size: int


def is_archive(data: bytes) -> bool:
    """Whether this begins as such a file does, sound or not."""
    return data.startswith((_LOCAL_SIGN, _END_SIGN))


class Written(NamedTuple):
    """A file to be put into a container: its bytes come in pieces, when it is their turn."""

    name: str
    crc: int
    size: int
    pieces: Iterable[bytes]


def encode_archive(files: Mapping[str, bytes]) -> bytes:
    """The container with these files; the same files give the same bytes."""
    return b"".join(
        write_archive(
            [Written(name, crc32(data), len(data), (data,)) for name, data in sorted(files.items())]
        )
    )


def write_archive(files: Iterable[Written]) -> Iterator[bytes]:
    """The container in pieces, with these files in this order, which is that of their names."""
    listing, count, offset = bytearray(), 0, 0
    for file in files:
        count += 1
        listed = _Listed(_checked_name(file.name), file.crc, file.size)
        local = _local_header(listed)
        listing += _central_header(listed, offset)
        offset += len(local) + file.size
        if count > FILES_MAX:
            raise _too_large(f"more than {FILES_MAX:,} files")
        if offset + len(listing) + 2 * _LONG_END.size > ARCHIVE_BYTES_MAX:
            raise _too_large(f"more than {ARCHIVE_BYTES_MAX:,} bytes")
        yield local
        yield from file.pieces
    yield bytes(listing)
    yield _encode_end(count, len(listing), offset)


def _local_header(listed: _Listed) -> bytes:
    name, crc, size = listed
    head = _LOCAL.pack(
        _LOCAL_SIGN, _VERSION, 0, _STORED, _MIDNIGHT, _DAY, crc, size, size, len(name), 0
    )
    return head + name


def _central_header(listed: _Listed, offset: int) -> bytes:
    name, crc, size = listed
    head = _CENTRAL.pack(
        _CENTRAL_SIGN, _MADE_BY, _VERSION, 0, _STORED, _MIDNIGHT, _DAY, crc, size, size,
        len(name), 0, 0, 0, 0, _MODE, offset,
    )  # fmt: skip
    return head + name


def _checked_name(name: str) -> bytes:
    if len(name) > NAME_BYTES_MAX or not _NAME.match(name):
        raise _malformed(f"{name!r:.200} is not the path of a file in it")
    return name.encode()


def iter_members(source: Source) -> Iterator[Member]:
    """The files in the container, in its order, after a check of all that stands around them.

    What is in a file is not read: `read_member` does, and compares its checksum.
    """
    size = len(source)
    if size > ARCHIVE_BYTES_MAX:
        raise _too_large(f"{size:,} bytes, the limit is {ARCHIVE_BYTES_MAX:,}")
    end = _read_end(source, size)
    if end.files > FILES_MAX:
        raise _too_large(f"{end.files:,} files, the limit is {FILES_MAX:,}")
    reading = _Reading(source, end)
    last = ""
    for _ in range(end.files):
        member = reading.next_member()
        if member.name <= last:
            raise _malformed(f"{member.name!r:.200} is there twice, or out of order")
        last = member.name
        yield member
    reading.check_at_end()


def read_member(source: Source, member: Member) -> Iterator[bytes]:
    """The bytes of a file, in pieces; a checksum that does not fit is told at their end."""
    crc = 0
    for start in range(member.start, member.start + member.size, PIECE_BYTES):
        piece = source[start : min(start + PIECE_BYTES, member.start + member.size)]
        crc = crc32(piece, crc)
        yield piece
    if crc != member.crc:
        raise _malformed(f"{member.name} is not stored as the listing says")


def decode_archive(source: Source) -> dict[str, bytes]:
    """All files of a small container, by name, in its order."""
    members = iter_members(source)
    return {member.name: b"".join(read_member(source, member)) for member in members}


class _Ending(NamedTuple):
    """What the end of the container says: how many files, and where the listing of them is."""

    files: int
    listing: int
    listing_bytes: int


def _read_end(source: Source, size: int) -> _Ending:
    if size < _END.size:
        raise _malformed("it is cut off")
    sign, *rest = _END.unpack(source[size - _END.size : size])
    disk, first_disk, here, count, listing_bytes, start, comment = rest
    end = size - _END.size
    if sign != _END_SIGN or (disk, first_disk, comment) != (0, 0, 0) or here != count:
        raise _malformed(_NOT_WHOLE)
    if count > _SMALL_FILES_MAX:
        count = _read_long_end(source, start, listing_bytes)
        end -= _LONG_END.size + _LOCATOR.size
    if start + listing_bytes != end:
        raise _malformed(_NOT_WHOLE)
    return _Ending(count, start, listing_bytes)


def _read_long_end(source: Source, start: int, listing_bytes: int) -> int:
    """How many files there are, where that needs more than two bytes."""
    place = start + listing_bytes
    data = source[place : place + _LONG_END.size]
    count = _LONG_END.unpack(data)[7] if len(data) == _LONG_END.size else 0
    known = _encode_long_end(count, listing_bytes, start)
    is_needed = count > _SMALL_FILES_MAX
    if not is_needed or source[place : place + len(known)] != known:
        raise _malformed(_NOT_WHOLE)
    return count


def _encode_long_end(count: int, listing_bytes: int, start: int) -> bytes:
    place = start + listing_bytes
    rest = _LONG_END.size - 12  # what follows the field that says so
    return _LONG_END.pack(
        _LONG_END_SIGN, rest, _MADE_BY_LONG, _VERSION_LONG, 0, 0, count, count, listing_bytes, start
    ) + _LOCATOR.pack(_LOCATOR_SIGN, 0, place, 1)


def _encode_end(count: int, listing_bytes: int, start: int) -> bytes:
    long = b"" if count <= _SMALL_FILES_MAX else _encode_long_end(count, listing_bytes, start)
    told = min(count, _SMALL_FILES_MAX + 1)
    return long + _END.pack(_END_SIGN, 0, 0, told, told, listing_bytes, start, 0)


class _Window:
    """A stretch of the source, kept: headers are many, short, and read one after the other."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._start = 0
        self._data = b""

    def read(self, start: int, size: int) -> bytes:
        """So many bytes from there, or those that are there."""
        at = start - self._start
        if at < 0 or at + size > len(self._data):
            self._data = self._source[start : start + max(size, _WINDOW_BYTES)]
            self._start, at = start, 0
        return self._data[at : at + size]


class _Reading:
    """Walks the files and the listing of them side by side."""

    def __init__(self, source: Source, end: _Ending) -> None:
        self._files = _Window(source)
        self._listed = _Window(source)
        self._at = 0
        self._listing = end.listing
        self._place = end.listing
        self._end = end.listing + end.listing_bytes

    def next_member(self) -> Member:
        """The next file, if both headers say the same of it."""
        name, crc, size = listed = self._read_listed()
        shown = name.decode("ascii", "replace")
        _checked_name(shown)
        start = self._at + _LOCAL.size + len(name)
        head = bytearray(self._files.read(self._at, start - self._at))
        if start + size > self._listing or len(head) != start - self._at:
            raise _malformed(f"{shown} reaches beyond its place")
        if not _is_plain(_LOCAL.unpack_from(head)[2]):
            raise _malformed(f"{shown} is encrypted, or its flags mean something else")
        head[4:8] = _LOCAL.pack(b"", _VERSION, 0, *[0] * 8)[4:8]
        if head != _local_header(listed):
            raise _malformed(f"{shown} is not stored as the listing says")
        self._at = start + size
        return Member(shown, start, size, crc)

    def _read_listed(self) -> _Listed:
        if self._place + _CENTRAL.size > self._end:
            raise _malformed("its listing is cut off")
        fields = _CENTRAL.unpack(self._listed.read(self._place, _CENTRAL.size))
        flags, crc, size, name_bytes = fields[3], fields[7], fields[9], fields[10]
        start = self._place + _CENTRAL.size
        listed = _Listed(self._listed.read(start, name_bytes), crc, size)
        must_be = _CENTRAL.unpack_from(_central_header(listed, self._at))
        if not _is_plain(flags) or any(fields[n] != must_be[n] for n in _COMPARED):
            name = listed.name.decode("ascii", "replace")
            raise _malformed(f"{name!r:.200} is not listed as a file that is stored as it is")
        self._place = start + name_bytes
        return listed

    def check_at_end(self) -> None:
        """Nothing may lie between the files and the listing, or behind it."""
        if self._at != self._listing or self._place != self._end:
            raise _malformed("it holds bytes that belong to no file")


def _is_plain(flags: int) -> bool:
    return flags in (0, _NAMES_ARE_UTF8)


def _malformed(message: str) -> InputError:
    return InputError(f"archive: {message}", field="archive")


def _too_large(message: str) -> InputError:
    return InputError(
        f"archive: {message}",
        code="ERR_TOO_LARGE",
        hint="Export a smaller part: a session, a task, or a range of entries.",
        field="archive",
    )
