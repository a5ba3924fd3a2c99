"""As of when: a moment on the ledger's axis, from what a caller says of it.

A moment is microseconds of `at`; what holds at it is what every entry up to it made. An index reads
as the last whole unit at or before it. Absent means the head of the log.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, Literal

from affidavit.core.moment import AT_US_MAX, US_PER_SECOND
from affidavit.core.names import quoted
from affidavit.errors import invalid
from affidavit.ledger.ports import Clock, Reader

_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII
)
_HINT: Final = (
    "Microseconds as an int, RFC 3339 with a zone, a datetime with a zone, 'NOW' or 'END'."
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# What a caller may mean before anything is read: a time, the clock's, or the head.
Wanted = int | Literal["NOW"] | None


def read_as_of(as_of: Any, as_of_index: Any = None) -> tuple[Wanted, int | None]:
    """What a caller asks for, checked: a time or an index."""
    if as_of_index is None:
        return _read_time(as_of), None
    if as_of is not None:
        raise invalid("as_of_index", "give as_of or as_of_index, not both")
    if type(as_of_index) is not int or not 0 <= as_of_index < 2**62:
        raise invalid("as_of_index", f"{quoted(as_of_index, 40)} is not an index of the log")
    return None, as_of_index


def _read_time(as_of: Any) -> Wanted:
    if as_of is None or as_of == "END":
        return None
    if as_of == "NOW":
        return "NOW"
    if type(as_of) is int:
        at_us = as_of
    elif isinstance(as_of, datetime):
        if as_of.utcoffset() is None:
            raise invalid("as_of", "is a datetime without a zone", hint=_HINT)
        delta = as_of - _EPOCH
        at_us = (delta.days * 86_400 + delta.seconds) * US_PER_SECOND + delta.microseconds
    elif isinstance(as_of, str):
        at_us = _parse_time(as_of)
    else:
        raise invalid("as_of", f"is {type(as_of).__name__}, not a time", hint=_HINT)
    if abs(at_us) > AT_US_MAX:
        raise invalid("as_of", f"{quoted(at_us, 40)} is no time a ledger has", hint=_HINT)
    return at_us


def _parse_time(text: str) -> int:
    match = _TIME.match(text)
    if match is None:
        raise invalid("as_of", f"{text!r:.60} is not RFC 3339 with a zone", hint=_HINT)
    day, clock, fraction, zone = match.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        second = datetime.fromisoformat(f"{day}T{clock}{zone}") - _EPOCH
    except ValueError as error:
        raise invalid("as_of", f"{text!r:.60}: {error}", hint=_HINT) from None
    # Cut below a microsecond: what happened within it had not happened yet.
    micros = int((fraction or "")[:6].ljust(6, "0"))
    return (second.days * 86_400 + second.seconds) * US_PER_SECOND + micros


def find_moment(reader: Reader, wanted: Wanted, index: int | None, clock: Clock) -> int | None:
    """The moment asked for; None is the head of the log."""
    if index is not None:
        return _moment_of(reader, index)
    if wanted == "NOW":
        return max(clock(), reader.last_at())
    return wanted


def _moment_of(reader: Reader, index: int) -> int | None:
    """The time of the last whole unit at or before an index."""
    last = reader.size() - 1
    if index >= last:
        return None
    at, after = reader.at_of(index), reader.at_of(index + 1)
    return at - 1 if at == after else at


def is_settled(reader: Reader, moment: int | None) -> bool:
    """Whether nothing recorded from now on can change what held at a moment."""
    return moment is not None and reader.last_at() > moment
