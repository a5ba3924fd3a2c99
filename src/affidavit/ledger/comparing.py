"""Two sessions beside each other: which steps they share, and where they part."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, Final

from affidavit.core.names import PAYLOAD_BYTES_MAX
from affidavit.ledger.entries import list_entries
from affidavit.ledger.inputs import ListEntries
from affidavit.ledger.ports import Reader
from affidavit.ledger.results import LogEntry, Step
from affidavit.ledger.thoughts import session_not_found

# What a step is, besides its kind: the first of these that its entry has.
_WHAT: Final = ("tool_name", "type", "turn_kind", "decision", "status", "reason")
# Texts that two runs of one thing never share.
_OWN: Final = frozenset(("args_sha256", "outcome_sha256"))


def compare(reader: Reader, first: str, second: str) -> list[Step]:
    """The steps of two sessions, aligned: shared, in the first alone, in the second alone."""
    left, right = _steps(reader, first), _steps(reader, second)
    matcher = SequenceMatcher(
        None, [_key(one) for one in left], [_key(one) for one in right], False
    )
    found: list[Step] = []
    for how, start, end, other_start, other_end in matcher.get_opcodes():
        if how == "equal":
            pairs = zip(left[start:end], right[other_start:other_end], strict=True)
            found += [_shared(one, other) for one, other in pairs]
            continue
        found += [_alone("-", one) for one in left[start:end]]
        found += [_alone("+", one) for one in right[other_start:other_end]]
    return found


def _steps(reader: Reader, session_id: str) -> list[LogEntry]:
    if reader.find_session(session_id) is None:
        raise session_not_found(session_id)
    wanted = ListEntries(session_id=session_id, text_bytes_max=PAYLOAD_BYTES_MAX)
    return list_entries(reader, wanted)


def _key(entry: LogEntry) -> tuple[Any, ...]:
    return entry.kind, _what(entry)


def _what(entry: LogEntry) -> str:
    return next((str(entry.body[name]) for name in _WHAT if entry.body.get(name)), "")


def _texts(entry: LogEntry) -> dict[str, str | None]:
    return {name: text for name, text in entry.texts.items() if name not in _OWN}


def _shared(one: LogEntry, other: LogEntry) -> Step:
    left, right = _texts(one), _texts(other)
    how = "=" if left == right else "~"
    return Step(how, one.kind or "", _what(one), one.index, other.index, left, right)


def _alone(how: str, one: LogEntry) -> Step:
    texts = _texts(one)
    left, right = (one.index, None) if how == "-" else (None, one.index)
    shown: tuple[dict[str, str | None], dict[str, str | None]] = (
        (texts, {}) if how == "-" else ({}, texts)
    )
    return Step(how, one.kind or "", _what(one), left, right, *shown)
