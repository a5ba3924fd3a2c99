"""Deriving every view again from the log and the payloads: to compare, or to put right."""

from __future__ import annotations

from affidavit.ledger.ports import Store
from affidavit.ledger.results import Rebuild
from affidavit.verify.findings import Report
from affidavit.verify.ledger import verify_ledger

# What a rebuild is about; broken chains and changed entries are for `verify` to judge.
_ABOUT_VIEWS = (
    "view_differs",
    "view_missing",
    "view_extra",
    "payload_lost",
    "payload_mismatch",
    "tree_node_bad",
)


def rebuild(store: Store, *, check: bool) -> Rebuild:
    """Report every row that differs from what the log says; unless `check`, put it right."""
    if check:
        with store.audit() as source:
            return _describe(verify_ledger(source), repaired=False)
    report = store.rebuild(lambda source, repairer: verify_ledger(source, repairer=repairer))
    return _describe(report, repaired=True)


def _describe(report: Report, *, repaired: bool) -> Rebuild:
    about = tuple(finding.to_dict() for finding in report.findings if finding.code in _ABOUT_VIEWS)
    return Rebuild(not about, len(about), about, repaired)
