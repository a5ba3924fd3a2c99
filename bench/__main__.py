"""Prints every row: figure, reference measured in the same run, ratio, and what is wanted."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import appends, costs, lists, lookups, serving, verifying
from bench.harness import Line, sync_latency_us


def main() -> int:
    """Run the rows; exit 1 where `--strict` and one does not reach what is wanted."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller numbers, under 30 s")
    parser.add_argument("--strict", action="store_true", help="fail where a row falls short")
    parser.add_argument("--only", default="", help="rows whose group name holds this")
    parser.add_argument(
        "--million", action="store_true", help="verify a million thoughts, on one core and on two"
    )
    parser.add_argument(
        "--in", dest="place", type=Path, metavar="DIR",
        help="work there, and leave a million that is built for the next time",
    )  # fmt: skip
    chosen = parser.parse_args()
    with _working_in(chosen.place) as folder:
        print(
            f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
            f"{os.cpu_count()} cores; fdatasync of 4 KiB {sync_latency_us(folder):.0f} us"
        )
        lines = [
            line
            for group, run in rows(
                folder, quick=chosen.quick, million=1_000_000 * chosen.million
            ).items()
            if chosen.only in group
            for line in _show(run())
        ]
    short = [line for line in lines if not line.holds]
    print(f"{len(lines) - len(short)} of {len(lines)} rows reach what is wanted")
    return 1 if short and chosen.strict else 0


@contextmanager
def _working_in(place: Path | None) -> Iterator[Path]:
    """The folder that was named; else one that is gone when the figures are there."""
    if place is not None:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=Path.cwd()) as name:
        yield Path(name)


def rows(folder: Path, *, quick: bool, million: int = 0) -> dict[str, Callable[[], list[Line]]]:
    """The groups of rows, by name."""
    blocks, many = (5, 20_000) if quick else (15, 200_000)
    return {
        "single": lambda: appends.single(folder, 2 * blocks, 100),
        "batch": lambda: appends.batches(folder, 2 * blocks),
        "threads": lambda: appends.threads(folder, 3 if quick else 11, 8 if quick else 20),
        "chain": lambda: appends.long_chain(folder, many // 2, blocks, 100),
        "verify": lambda: (
            [verifying.million(folder, million, 2)]
            if million
            else verifying.verifying(folder, many, 3 if quick else 5)
        ),
        "together": lambda: verifying.together(folder, million or many, 2 if million else 3),
        "lookups": lambda: lookups.lookups(folder, 30_000 if quick else 300_000, blocks),
        "lists": lambda: lists.lists(folder, 10_000 if quick else 100_000, blocks),
        "size": lambda: verifying.sizes(folder, many // 4),
        "import": lambda: costs.import_cost(5 if quick else 15),
        "hook": lambda: costs.hook_cost(folder, 11 if quick else 41),
        "mcp": lambda: serving.recording(folder, blocks, 100),
        "start": lambda: serving.starting(folder, 3 if quick else 9),
        "memory": lambda: costs.memory(folder, many),
    }


def _show(lines: list[Line]) -> list[Line]:
    for line in lines:
        ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
        mark = "ok" if line.holds else "SHORT"
        print(
            f"{line.name:<62} {line.figure:>26}  {line.reference:>42}  {ratio:>6}  "
            f"{line.reach:>9}  {mark}",
            flush=True,
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
