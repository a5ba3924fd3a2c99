"""Tool calls of a story beside each other in time, in thousandths of the time of them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from affidavit.ledger.stories import CallState, Step, ToldCall

_WHOLE: Final = 1_000


class Row(NamedTuple):
    """One call: when it began and how long it took, of the whole."""

    entry: int
    name: str
    state: CallState
    start: int
    length: int
    took_ms: int | None


def waterfall(steps: Sequence[Step], now_ms: int) -> list[Row]:
    """The calls of these steps; one that runs still reaches to the present."""
    called = [(step.entry.index, step.call) for step in steps if step.call is not None]
    if not called:
        return []
    first = min(call.started_at_ms for _, call in called)
    last = max(_end(call, now_ms) for _, call in called)
    whole = max(1, last - first)
    return [
        Row(
            index,
            call.tool_name,
            call.state,
            _share(call.started_at_ms - first, whole),
            _share(_end(call, now_ms) - call.started_at_ms, whole),
            call.latency_ms,
        )
        for index, call in called
    ]


def _end(call: ToldCall, now_ms: int) -> int:
    if call.ended_at_ms is not None:
        return max(call.started_at_ms, call.ended_at_ms)
    return max(call.started_at_ms, now_ms) if call.state == "open" else call.started_at_ms


def _share(part: int, whole: int) -> int:
    return max(0, min(_WHOLE, part * _WHOLE // whole))
