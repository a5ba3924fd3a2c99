"""Verifying chains: one task's, one session's, or every one there is."""

from __future__ import annotations

from typing import Any

from affidavit.core.thought import ZERO_HASH
from affidavit.core.views.sessions import SealRow, SessionRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.ledger.inputs import VerifyChain
from affidavit.verify.erasures import Erased, Erasures
from affidavit.verify.findings import ChainCount, ChainReport
from affidavit.verify.ports import LedgerSource, RawRow
from affidavit.verify.thoughts import ThoughtChecker, diagnose


class ChainWalk:
    """Walks chains and adds up what it finds."""

    def __init__(self, source: LedgerSource, *, all: bool) -> None:
        self._source = source
        self._all = all
        self._checker = ThoughtChecker()
        self._first: tuple[int, str, str] | None = None
        self._erasures: Erasures | None = None
        self.stopped = False

    def walk_task(self, task_id: str) -> ChainCount:
        """A task chain: every record after the one before it."""
        return self._walk(task_id=task_id, session_id=None, start=ZERO_HASH)

    def walk_session(self, session_id: str) -> ChainCount:
        """A session chain: every record after the one before it, the first after the genesis."""
        row = self._source.session_start(session_id)
        start = "" if row is None else SessionRow._make(row).genesis
        count = self._walk(task_id=None, session_id=session_id, start=start)
        sealed = self._source.seal_of(session_id)
        if sealed is None or not count.valid:
            return count
        seal = SealRow._make(sealed)
        if seal.record_count == count.record_count:
            return count
        said = f"its seal counts {seal.record_count} records, {count.record_count} are here"
        self._first = self._first or (seal.log_index, session_id, said)
        return count._replace(valid=False, broken_count=1)

    def _walk(self, *, task_id: str | None, session_id: str | None, start: str) -> ChainCount:
        count = broken = 0
        tip, by_session = start, session_id is not None
        for entry, row in self._source.chain(task_id=task_id, session_id=session_id):
            record: Any = ThoughtRow._make(row)  # whatever its columns hold
            prev = record.prev_hash if by_session else tip
            parent = tip if by_session else record.parent_chain_hash
            next_seq = count if by_session else record.session_seq
            count += 1
            tip = record.chain_hash if by_session else record.hash
            if not self._holds(entry, row, prev, parent, next_seq):
                broken += 1
                if not self._all:
                    self.stopped = True
                    break
        return ChainCount(broken == 0, count, broken)

    def _holds(
        self, entry: bytes | None, row: RawRow, prev: str, parent: str | None, next_seq: int
    ) -> bool:
        if entry is not None and self._checker.is_intact(entry, row, prev, parent, next_seq):
            return True
        reason = "its entry is missing from the log"
        if entry is not None:
            broken = diagnose(entry, row, prev, parent, next_seq, self._find_erased(row))
            if broken is None:
                return True
            reason = broken.message
        self._first = self._first or (row[0], row[1], reason)
        return False

    def _find_erased(self, row: RawRow) -> Erased | None:
        if row[-1] is None:
            return None
        if self._erasures is None:
            self._erasures = Erasures(self._source)
        return self._erasures.find(row[0], "content", is_gone=True)

    def report(
        self, by_task: dict[str, ChainCount], by_session: dict[str, ChainCount]
    ) -> ChainReport:
        """The verdict over everything walked."""
        counted = by_task or by_session
        broken = sum(c.broken_count for c in (*by_task.values(), *by_session.values()))
        index, record_id, reason = self._first or (None, None, None)
        return ChainReport(
            valid=broken == 0,
            record_count=sum(count.record_count for count in counted.values()),
            broken_count=broken,
            first_broken_index=index,
            first_broken_at=record_id,
            reason=reason,
            by_task=by_task,
            by_session=by_session,
        )


def verify_session_chain(source: LedgerSource, session_id: str) -> ChainReport:
    """One session's chain and contents, up to the first break."""
    return verify_chain(source, VerifyChain(session_id=session_id))


def verify_chain(source: LedgerSource, wanted: VerifyChain) -> ChainReport:
    """The chain that is wanted, or every chain of the ledger."""
    walk = ChainWalk(source, all=wanted.all)
    every = wanted.task_id is None and wanted.session_id is None
    by_task: dict[str, ChainCount] = {}
    by_session: dict[str, ChainCount] = {}
    for task_id in source.task_ids() if every else filter(None, [wanted.task_id]):
        if not walk.stopped:
            by_task[task_id] = walk.walk_task(task_id)
    for session_id in source.session_ids() if every else filter(None, [wanted.session_id]):
        if not walk.stopped:
            by_session[session_id] = walk.walk_session(session_id)
    return walk.report(by_task, by_session)
