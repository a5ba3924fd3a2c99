"""Recording: one durable thought, batches, threads, and the 100,000th record of a chain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import affidavit
from affidavit.stores.sqlite.queries import load_migrations
from bench import reference
from bench.harness import Line, Pair, at_least, at_most, beside, paired, show_us, timed

CONTENT = "B, because the index fits in memory and the other one needs a second pass; " * 2
_serial = count()


def thoughts(many: int, **more: Any) -> list[dict[str, Any]]:
    """Inputs for `record_thoughts`, over fifty tasks."""
    return [
        {
            "type": "decision",
            "task_id": f"task-{n % 50}",
            "agent_id": "agent-1",
            "content": f"{n} {CONTENT}",
            **more,
        }
        for n in range(many)
    ]


def raw_rows(folder: Path, many: int) -> Iterator[tuple[Any, Any]]:
    """Log and view rows of a real ledger, to be inserted by the reference; endless, never twice."""
    while True:
        path = folder / f"source-{next(_serial)}.db"
        with affidavit.open(path) as ledger:
            ledger.record_thoughts(thoughts(many))
            with ledger._context.store.audit() as source:  # noqa: SLF001 - rows as stored
                log = [row for row in source.log() if row[0]]
                view = list(source.rows("thought_records"))
        yield from zip(log, view, strict=True)


def single(folder: Path, blocks: int, size: int) -> list[Line]:
    """One durable thought a call, beside one INSERT of the same row a commit."""
    lines = []
    for name, reach, bound in (("unbound", 0.75, False), ("in a session", 0.65, True)):
        pair = _single(folder, blocks, size, bound=bound, clock=time.perf_counter)
        lines.append(beside(f"one durable thought, {name}", pair, size, reach))
    pair = _single(folder, blocks, size, bound=False, clock=time.process_time)
    lines.append(
        at_most(
            "CPU time of one durable thought",
            show_us(pair.ours, size),
            show_us(pair.theirs, size),
            1 / pair.ratio,
            2.5,
        )
    )
    return lines


def _single(
    folder: Path, blocks: int, size: int, *, bound: bool, clock: Callable[[], float]
) -> Pair:
    raw = reference.open_raw(str(folder / f"raw-{next(_serial)}.db"), reference.TRAIL)
    rows = (reference.trail_row(view) for _, view in raw_rows(folder, 5_000))
    chunks = [[next(rows) for _ in range(size)] for _ in range(blocks)]
    with affidavit.open(folder / f"single-{next(_serial)}.db") as ledger:
        session = ledger.start_session(intent="measure").session_id if bound else None
        given = iter(thoughts(blocks * size, session_id=session))

        def ours() -> None:
            for _ in range(size):
                ledger.record_thought(**next(given))

        result = paired(ours, lambda: reference.insert_each(raw, chunks.pop()), blocks, clock)
    raw.close()
    return result


def batches(folder: Path, blocks: int) -> list[Line]:
    """`record_thoughts`, 1,000 a commit, beside executemany of the same log and view rows."""
    raw = reference.open_raw(str(folder / "raw-batch.db"), "\n".join(load_migrations()))
    rows = raw_rows(folder, 1_000)
    chunks = []
    for start in range(1, 1_000 * blocks, 1_000):
        pairs = [next(rows) for _ in range(1_000)]
        log = [(start + n, *row[1:]) for n, (row, _) in enumerate(pairs)]
        view = [(start + n, *row[1:]) for n, (_, row) in enumerate(pairs)]
        chunks.append((log, view))
    given = [thoughts(1_000) for _ in range(blocks)]
    with affidavit.open(folder / "batch.db") as ledger:

        def ours() -> None:
            ledger.record_thoughts(given.pop())

        pair = paired(ours, lambda: reference.insert_together(raw, *chunks.pop(0)), blocks)
    raw.close()
    return [beside("record_thoughts, 1,000 a commit", pair, 1_000, 0.7)]


def threads(folder: Path, blocks: int, each: int, many: int = 64) -> list[Line]:
    """64 threads, one durable thought a call, beside raw single commits and batches of 50."""
    raw = reference.open_raw(str(folder / "raw-threads.db"), reference.TRAIL)
    rows = (reference.trail_row(view) for _, view in raw_rows(folder, 5_000))
    chunks = [[next(rows) for _ in range(500)] for _ in range(blocks)]
    total, given = each * many, thoughts(each)
    with affidavit.open(folder / "threads.db") as ledger:

        def ours() -> None:
            _record_at_once(ledger, given, many)

        def in_batches() -> None:
            for _ in range(total // 50):
                ledger.record_thoughts(thoughts(50))

        raw_rate = paired(ours, lambda: reference.insert_each(raw, chunks.pop()), blocks)
        batch_rate = paired(ours, in_batches, blocks)
    raw.close()
    raw_ratio = raw_rate.ratio * total / 500
    return [
        at_least(
            "64 threads, one durable thought a call",
            show_us(raw_rate.ours, total),
            f"raw commits {show_us(raw_rate.theirs, 500)}",
            raw_ratio,
            2.0,
        ),
        at_least(
            "  the same",
            show_us(batch_rate.ours, total),
            f"batches of 50 {show_us(batch_rate.theirs, total)}",
            batch_rate.ratio,
            0.5,
        ),
    ]


def _record_at_once(ledger: affidavit.Ledger, given: list[dict[str, Any]], many: int) -> None:
    def work() -> None:
        for one in given:
            ledger.record_thought(**one)

    workers = [threading.Thread(target=work) for _ in range(many)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def long_chain(folder: Path, length: int, blocks: int, size: int) -> list[Line]:
    """A record at the end of a long task chain, beside the first ones of an equal one."""

    def one(ledger: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in range(size):
                ledger.record_thought(
                    type="decision", task_id="one", agent_id="agent-1", content=CONTENT
                )

        return run

    with (
        affidavit.open(folder / "long.db") as long,
        affidavit.open(folder / "short.db") as short,
    ):
        for _ in range(length // 1_000):
            long.record_thoughts([{**item, "task_id": "one"} for item in thoughts(1_000)])
        timed(one(long))
        timed(one(short))
        pair = paired(one(long), one(short), blocks)
    return [
        at_most(
            f"record {length:,} of one task chain",
            show_us(pair.ours, size),
            f"the first {show_us(pair.theirs, size)}",
            1 / pair.ratio,
            1.2,
        )
    ]
