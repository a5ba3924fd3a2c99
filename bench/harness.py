"""How a ratio is measured: neighbouring blocks, order swapped, median of the paired ratios."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """One printed row: what, the figure, its reference, how they relate, and what is wanted."""

    name: str
    figure: str
    reference: str
    ratio: float | None
    reach: str
    holds: bool


def at_least(name: str, figure: str, reference: str, ratio: float, reach: float) -> Line:
    """A row whose ratio should be at least `reach`."""
    return Line(name, figure, reference, ratio, f">= {reach}", ratio >= reach)


def at_most(name: str, figure: str, reference: str, ratio: float, reach: float) -> Line:
    """A row whose ratio should be at most `reach`."""
    return Line(name, figure, reference, ratio, f"<= {reach}", ratio <= reach)


class Pair(NamedTuple):
    """Two things measured side by side, in seconds a block."""

    ours: float
    theirs: float
    ratio: float


def beside(name: str, pair: Pair, count: int, reach: float) -> Line:
    """A row of a pair whose blocks do the same `count` of things."""
    return at_least(name, show_us(pair.ours, count), show_us(pair.theirs, count), pair.ratio, reach)


def paired(
    ours: Callable[[], None],
    theirs: Callable[[], None],
    blocks: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Pair:
    """Run both in turns, swapping who goes first; `ratio` is theirs/ours, the relative speed."""
    mine, other, ratios = [], [], []
    for block in range(blocks):
        first, second = (ours, theirs) if block % 2 else (theirs, ours)
        a, b = timed(first, clock), timed(second, clock)
        own, reference = (a, b) if block % 2 else (b, a)
        mine.append(own)
        other.append(reference)
        ratios.append(reference / own)
    return Pair(statistics.median(mine), statistics.median(other), statistics.median(ratios))


def timed(run: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long one run takes."""
    start = clock()
    run()
    return clock() - start


def sync_latency_us(folder: Path, rounds: int = 200) -> float:
    """Median time of writing 4 KiB and fdatasync, the floor under every durable commit."""
    target = folder / "sync.probe"
    descriptor = os.open(target, os.O_CREAT | os.O_RDWR, 0o600)
    times = []
    try:
        for block in range(rounds):
            os.pwrite(descriptor, b"x" * 4096, block * 4096)
            times.append(timed(lambda: os.fdatasync(descriptor)))
    finally:
        os.close(descriptor)
        target.unlink()
    return statistics.median(times) * 1e6


def show_us(seconds: float, count: int) -> str:
    """Microseconds each, and how many a second."""
    return f"{seconds / count * 1e6:,.1f} us ({count / seconds:,.0f}/s)"
