"""Identifiers, texts and their limits: what may be written at all, before any state is asked."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from affidavit.core.canonical import encode_utf8
from affidavit.errors import InputError, invalid

NAME_BYTES_MAX: Final = 512
NOTE_BYTES_MAX: Final = 4_096
PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
# C0, DEL and C1: nothing that moves a cursor or ends a line belongs in an identifier.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_TIMESTAMP = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)"
    r"(\.\d{1,9})?Z\Z",
    re.ASCII,
)


def quoted(value: object, most: int) -> str:
    """The beginning of a refused value, for a message; its type where it cannot be shown."""
    try:
        return f"{value!r:.{most}}"
    except Exception:  # noqa: BLE001 - too deep, too many digits, or whatever its class raises
        return f"a value of type {type(value).__name__}"


def check_name(value: str, field: str) -> None:
    """An identifier or name: 1 to 512 bytes of UTF-8 without control characters."""
    if value.isascii() and value.isprintable() and 0 < len(value) <= NAME_BYTES_MAX:
        return
    size = len(encode_utf8(value, field))
    if size == 0:
        raise invalid(field, "must not be empty")
    if size > NAME_BYTES_MAX:
        raise _too_large(field, size, NAME_BYTES_MAX)
    if _CONTROL.search(value):
        raise invalid(field, "has a control character")


def check_text(value: str, field: str, bytes_max: int = PAYLOAD_BYTES_MAX) -> None:
    """A text somebody wrote: not empty, no NUL, no lone surrogate, within its limit."""
    if not value:
        raise invalid(field, "must not be empty")
    if "\x00" in value:
        raise invalid(field, "has a NUL character")
    # A character is at most four bytes, so a short text needs no second look at its size.
    if len(value) * 4 > bytes_max:
        size = len(encode_utf8(value, field))
        if size > bytes_max:
            raise _too_large(field, size, bytes_max)
    elif not value.isascii():
        encode_utf8(value, field)


def check_size(text: str, field: str, bytes_max: int = PAYLOAD_BYTES_MAX) -> None:
    """A text of any kind, within its limit."""
    if len(text) * 4 > bytes_max:
        size = len(encode_utf8(text, field))
        if size > bytes_max:
            raise _too_large(field, size, bytes_max)


def check_timestamp(value: str, field: str) -> None:
    """A time somebody injects: RFC 3339 in UTC, kept as it is written."""
    if not _TIMESTAMP.match(value) or not _is_day(value[:10]):
        raise invalid(
            field, f"{value!r:.60} is not an RFC 3339 time such as 2026-04-17T00:00:00.000Z"
        )


def _is_day(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


def is_digest(value: object) -> bool:
    """Whether this is SHA-256 in lower-case hex."""
    return isinstance(value, str) and _DIGEST.match(value) is not None


def is_name(value: object) -> bool:
    """Whether `check_name` would take this."""
    if not isinstance(value, str):
        return False
    try:
        check_name(value, "name")
    except InputError:
        return False
    return True


_LIMITS: Final = {
    NAME_BYTES_MAX: "name_bytes_max",
    NOTE_BYTES_MAX: "note_bytes_max",
    PAYLOAD_BYTES_MAX: "payload_bytes_max",
}


def _too_large(field: str, size: int, limit: int) -> InputError:
    return InputError(
        f"{field}: {size:,} bytes, the limit is {limit:,} ({_LIMITS[limit]})",
        code="ERR_TOO_LARGE",
        hint="Store the large part elsewhere and record its digest.",
        field=field,
        size_bytes=size,
        limit_bytes=limit,
        limit=_LIMITS[limit],
    )
