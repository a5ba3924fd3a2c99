"""Deriving every view again from the log and the payloads: to compare, or to put right."""

from __future__ import annotations

from affidavit.ledger.ports import Store
from affidavit.ledger.results import Rebuild
from affidavit.verify.findings import Finding, Report
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
        found = _differences(store)
        return Rebuild(not found, len(found), found, repaired=False, remaining_count=len(found))
    report = store.rebuild(lambda source, repairer: verify_ledger(source, repairer=repairer))
    found = _about_views(report)
    remaining = len(_differences(store)) if found else 0
    return Rebuild(remaining == 0, len(found), found, remaining < len(found), remaining)


def _differences(store: Store) -> tuple[Finding, ...]:
    with store.audit() as source:
        return _about_views(verify_ledger(source))


def _about_views(report: Report) -> tuple[Finding, ...]:
    return tuple(finding for finding in report.findings if finding.code in _ABOUT_VIEWS)
