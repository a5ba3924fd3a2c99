r"""The container of an evidence file: a zip whose files are stored as they are, and nothing else.

Written as `zipfile` writes it (names sorted, times 1980-01-01, mode 0600), so any tool unpacks it.
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
from collections.abc import Mapping
from typing import Final, NamedTuple
from zlib import crc32

from affidavit.errors import InputError

ARCHIVE_BYTES_MAX: Final = 512 * 1024 * 1024
FILES_MAX: Final = 65_534  # 65,535 would say that the number stands elsewhere
NAME_BYTES_MAX: Final = 200

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
_END: Final = struct.Struct("<4s4H2IH")
_LOCAL_SIGN, _CENTRAL_SIGN, _END_SIGN = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_STORED: Final = 0
_MIDNIGHT: Final = 0
_DAY: Final = 1 << 5 | 1  # 1980-01-01
_VERSION: Final = 20
_MADE_BY: Final = 3 << 8 | _VERSION  # Unix
_MODE: Final = 0o600 << 16
_NAMES_ARE_UTF8: Final = 1 << 11
# Fields of the listing: all but who made it, the version needed, flags and attributes.
_COMPARED: Final = (0, *range(4, 14), 16)
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*\Z", re.ASCII)


class _Member(NamedTuple):
    """A file in the container: what both of its headers must say alike."""

    name: bytes
    crc: int
    size: int


def is_archive(data: bytes) -> bool:
    """Whether this begins as such a file does, sound or not."""
    return data.startswith((_LOCAL_SIGN, _END_SIGN))


def encode_archive(files: Mapping[str, bytes]) -> bytes:
    """The container with these files; the same files give the same bytes."""
    if len(files) > FILES_MAX:
        raise _too_large(f"{len(files):,} files, the limit is {FILES_MAX:,}")
    parts, directory, offset = [], [], 0
    for name, data in sorted(files.items()):
        member = _Member(_checked_name(name), crc32(data), len(data))
        if offset + member.size > ARCHIVE_BYTES_MAX:
            raise _too_large(f"more than {ARCHIVE_BYTES_MAX:,} bytes")
        local = _local_header(member)
        parts += [local, data]
        directory.append(_central_header(member, offset))
        offset += len(local) + len(data)
    listing = b"".join(directory)
    end = _END.pack(_END_SIGN, 0, 0, len(files), len(files), len(listing), offset, 0)
    return b"".join((*parts, listing, end))


def _local_header(member: _Member) -> bytes:
    name, crc, size = member
    head = _LOCAL.pack(
        _LOCAL_SIGN, _VERSION, 0, _STORED, _MIDNIGHT, _DAY, crc, size, size, len(name), 0
    )
    return head + name


def _central_header(member: _Member, offset: int) -> bytes:
    name, crc, size = member
    head = _CENTRAL.pack(
        _CENTRAL_SIGN, _MADE_BY, _VERSION, 0, _STORED, _MIDNIGHT, _DAY, crc, size, size,
        len(name), 0, 0, 0, 0, _MODE, offset,
    )  # fmt: skip
    return head + name


def _checked_name(name: str) -> bytes:
    if len(name) > NAME_BYTES_MAX or not _NAME.match(name):
        raise _malformed(f"{name!r:.200} is not the path of a file in it")
    return name.encode()


def decode_archive(data: bytes) -> dict[str, bytes]:
    """The files in the container, by name, in its order."""
    if len(data) > ARCHIVE_BYTES_MAX:
        raise _too_large(f"{len(data):,} bytes, the limit is {ARCHIVE_BYTES_MAX:,}")
    if len(data) < _END.size:
        raise _malformed("it is cut off")
    sign, *rest = _END.unpack_from(data, len(data) - _END.size)
    disk, first_disk, here, count, listing_bytes, start, comment = rest
    whole = start + listing_bytes + _END.size == len(data)
    if sign != _END_SIGN or (disk, first_disk, comment) != (0, 0, 0) or here != count or not whole:
        raise _malformed("its end is not that of one whole archive without a comment")
    reading = _Reading(data, start, listing_bytes)
    files = dict[str, bytes]()
    for _ in range(count):
        name, content = reading.next_file()
        if files and name <= next(reversed(files)):
            raise _malformed(f"{name!r:.200} is there twice, or out of order")
        files[name] = content
    reading.check_at_end()
    return files


class _Reading:
    """Walks the files and the listing of them side by side."""

    def __init__(self, data: bytes, listing: int, listing_bytes: int) -> None:
        self._data = data
        self._at = 0
        self._listing = listing
        self._place = listing
        self._end = listing + listing_bytes

    def next_file(self) -> tuple[str, bytes]:
        """The next file, if both headers say the same of it."""
        member = self._read_listed()
        name = member.name.decode("ascii", "replace")
        _checked_name(name)
        start = self._at + _LOCAL.size + len(member.name)
        end = start + member.size
        head = bytearray(self._data[self._at : start])
        if end > self._listing or len(head) != start - self._at:
            raise _malformed(f"{name} reaches beyond its place")
        if not _is_plain(_LOCAL.unpack_from(head)[2]):
            raise _malformed(f"{name} is encrypted, or its flags mean something else")
        head[4:8] = _LOCAL.pack(b"", _VERSION, 0, *[0] * 8)[4:8]
        content = self._data[start:end]
        if head != _local_header(member) or crc32(content) != member.crc:
            raise _malformed(f"{name} is not stored as the listing says")
        self._at = end
        return name, content

    def _read_listed(self) -> _Member:
        if self._place + _CENTRAL.size > self._end:
            raise _malformed("its listing is cut off")
        fields = _CENTRAL.unpack_from(self._data, self._place)
        flags, crc, size, name_bytes = fields[3], fields[7], fields[9], fields[10]
        start = self._place + _CENTRAL.size
        member = _Member(self._data[start : start + name_bytes], crc, size)
        must_be = _CENTRAL.unpack_from(_central_header(member, self._at))
        if not _is_plain(flags) or any(fields[n] != must_be[n] for n in _COMPARED):
            name = member.name.decode("ascii", "replace")
            raise _malformed(f"{name!r:.200} is not listed as a file that is stored as it is")
        self._place = start + name_bytes
        return member

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
