"""Verifying a whole ledger: in one walk, or, where the log is long, in stretches at the same time.

Stretches only speed up the answer "all of it holds". What does not hold is told by one walk over
everything, so that a report never depends on how many processes made it.
"""

from __future__ import annotations

from typing import Final

from affidavit.core.tile import TILE_WIDTH
from affidavit.ledger.context import Context
from affidavit.verify.findings import Report
from affidavit.verify.ledger import Progress, join, split, verify_ledger, verify_stretch
from affidavit.verify.ports import Stretch

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


def verify_new(context: Context, known: int, progress: Progress | None) -> Report | None:
    """The report over what stands behind the first `known` entries; None where not all holds.

    Chains go on from rows that are not proved again, so the entries before are named as unread.
    """
    with context.store.audit() as source:
        if source.schema_differences() or source.unreadable_tables():
            return None
        start = known - known % TILE_WIDTH
        report = join(source, [verify_stretch(source, Stretch(start, None), progress)])
    if report is None or start == 0:
        return report
    said = (
        f"the first {start:,} entries were not read again: the hashes kept of them give the root "
        "of a checkpoint kept elsewhere"
    )
    return report._replace(unchecked=(*report.unchecked, said))


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
