"""The verdict over an evidence file in words, and as the exit code of a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from affidavit.apps.cli.render import Answer, count
from affidavit.apps.plain import one_line
from affidavit.verify.evidence import (
    CONSISTENT,
    UNVERIFIED,
    VERIFIED,
    VIOLATION,
    EvidenceReport,
)
from affidavit.verify.findings import Finding

EXIT_CODES: Final = {VERIFIED: 0, VIOLATION: 1, CONSISTENT: 3, UNVERIFIED: 3}
FINDINGS_SHOWN_MAX: Final = 100
_SAID: Final = {
    VERIFIED: "VERIFIED: everything checked in {} is as the log signed it",
    VIOLATION: "VIOLATION: {} in {}",
    CONSISTENT: "CONSISTENT, NOT AUTHENTICATED: {} agrees with itself; whose it is was not shown",
    UNVERIFIED: "NOT VERIFIED: {} agrees with itself, but what was asked for is not met",
}
_NAMES: Final = {
    "signatures": ("signature", "signatures"),
    "entries": ("entry in the log", "entries in the log"),
    "tiles": ("tile", "tiles"),
    "payloads": ("payload", "payloads"),
    "links": ("link of a chain", "links of chains"),
    "seals": ("seal", "seals"),
    "complete": ("session complete", "sessions complete"),
    "proofs": ("proof of a fork", "proofs of a fork"),
}


def answer_evidence(
    where: str, report: EvidenceReport, more: Mapping[str, Any] | None = None
) -> Answer:
    """What `verify` says of a file."""
    data = {"file": where, **report.to_dict(), **(more or {})}
    return Answer(data, list(_describe(where, report)), EXIT_CODES[report.verdict])


def _describe(where: str, report: EvidenceReport) -> Iterator[str]:
    place = one_line(where)
    if report.verdict == VIOLATION:
        found = count(report.finding_count, "finding")
        yield _SAID[VIOLATION].format(found, place)
        yield from describe_findings(report.findings, report.finding_count, "the file")
    else:
        yield _SAID[report.verdict].format(place)
    if report.scope is not None:
        yield f"  holds        {report.scope.kind} {one_line(report.scope.id)}"
    if report.head is not None:
        head = report.head
        origin = one_line(head.origin)
        yield f"  checkpoint   {origin}, {count(head.size, 'entry', 'entries')}, {head.root.hex()}"
    yield from (f"  vouched for  by {one_line(who)}" for who in report.vouchers)
    yield from (f"  missing      {one_line(said)}" for said in report.missing)
    counted = [count(n, *_NAMES[name]) for name, n in report.checked.items() if n]
    if counted:
        yield f"  checked      {', '.join(counted)}"
    yield from (f"  not checked  {one_line(said)}" for said in report.unchecked)


def describe_findings(findings: tuple[Finding, ...], total: int, nowhere: str) -> Iterator[str]:
    """Each finding with its place; `nowhere` stands for one that belongs to no entry."""
    for finding in findings[:FINDINGS_SHOWN_MAX]:
        where = nowhere if finding.index is None else f"entry {finding.index}"
        yield f"  {finding.code}  {where}, {one_line(finding.place)}"
        yield f"      {one_line(finding.message)}"
    if total > FINDINGS_SHOWN_MAX:
        yield f"  and {total - FINDINGS_SHOWN_MAX:,} more (--json shows up to {len(findings):,})"
