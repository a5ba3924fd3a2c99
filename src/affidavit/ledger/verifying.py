"""Verifying a whole ledger: in one walk, or, where the log is long, in stretches at the same time.

Stretches only speed up the answer "all of it holds". What does not hold is told by one walk over
everything, so that a report never depends on how many processes made it.
"""

from __future__ import annotations

from typing import Final

from affidavit.ledger.context import Context
from affidavit.verify.findings import Report
from affidavit.verify.ledger import Progress, join, split, verify_ledger

# Below this a process takes longer to start than the walk it saves.
LONG: Final = 100_000
_STRETCHES_A_CORE: Final = 4


def verify(context: Context, progress: Progress | None, cores: int | None) -> Report:
    """The report over the whole ledger."""
    together = _verify_together(context, progress, cores or context.crew.count())
    if together is not None:
        return together
    with context.store.audit() as source:
        return verify_ledger(source, progress)


def _verify_together(context: Context, progress: Progress | None, cores: int) -> Report | None:
    if cores < 2:
        return None
    with context.store.audit() as source:
        size = source.size()
        if size < LONG or source.schema_differences() or source.unreadable_tables():
            return None
    reports = context.crew.verify(
        context.store.location,
        split(size, cores * _STRETCHES_A_CORE),
        None if progress is None else lambda done: progress(min(done, size), size),
    )
    if reports is None:
        return None
    with context.store.audit() as source:
        return join(source, reports)
