"""What takes the space, and what a year at this rate will take."""

from __future__ import annotations

from typing import Final

from affidavit.core.views import VIEWS
from affidavit.ledger.context import Context
from affidavit.ledger.results import NounSize, Size

_YEAR_US: Final = 365 * 86_400_000_000
# A rate from less than an hour says nothing.
_SPAN_MIN_US: Final = 3_600_000_000


def measure(context: Context) -> Size:
    """Entries and texts by what they are about, largest first; the files; the rate."""
    with context.store.read() as reader:
        size, log_bytes = reader.size(), reader.log_bytes()
        nouns = [_measure_noun(reader.view_bytes(view.table), view.counted) for view in VIEWS]
        first_at, last_at = reader.entry(0).at, reader.last_at()
    facts = context.store.describe()
    own = [int(facts.get(name, 0)) for name in ("file_bytes", "wal_bytes", "search_bytes")]
    span_us = max(context.clock(), last_at) - first_at
    total = sum(own)
    nouns.sort(key=lambda noun: noun.log_bytes + noun.text_bytes, reverse=True)
    return Size(
        entries=size,
        log_bytes=log_bytes,
        nouns=tuple(noun for noun in nouns if noun.entries),
        file_bytes=own[0],
        wal_bytes=own[1],
        search_bytes=own[2],
        span_us=span_us,
        year_bytes=total * _YEAR_US // span_us if span_us >= _SPAN_MIN_US else None,
    )


def _measure_noun(found: tuple[int, int, int], name: str) -> NounSize:
    return NounSize(name, *found)
