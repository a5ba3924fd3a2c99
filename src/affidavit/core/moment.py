"""Times as the ledger writes them: integer microseconds in, RFC 3339 milliseconds out."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from affidavit.core.canonical import INTEGER_MAX

US_PER_SECOND: Final = 1_000_000
# The last microsecond an entry can hold, in the year 2255.
AT_US_MAX: Final = INTEGER_MAX


@lru_cache(maxsize=8)
def _render_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def render_time(at_us: int) -> str:
    """RFC 3339 in UTC with milliseconds, cut, never rounded up into the future."""
    second, rest = divmod(at_us, US_PER_SECOND)
    return f"{_render_second(second)}.{rest // 1000:03d}Z"
