"""What a verifier found, and what it says it looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

FINDING_CODES: Final = (
    "entry_changed",
    "entry_missing",
    "entry_not_canonical",
    "index_gap",
    "time_backwards",
    "view_differs",
    "view_missing",
    "view_extra",
    "chain_broken",
    "seal_mismatch",
    "payload_mismatch",
    "payload_lost",
    "erasure_unexplained",
    "tail_removed",
    "signature_bad",
    "fork",
    "schema_changed",
    "tree_node_bad",
    "evidence_malformed",
)
FINDINGS_MAX: Final = 10_000

UNCHECKED_ENGINE: Final = (
    "the database engine's own pages and indexes were not checked (`affidavit doctor` does)"
)
UNCHECKED_TAIL: Final = (
    "nothing was authenticated: no checkpoint kept elsewhere was given, so a log rewritten as a "
    "whole, or cut at its end, would look the same"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not hold: what, where, and in which words."""

    code: str
    index: int | None
    place: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The finding as every surface shows it."""
        return asdict(self)


class Report(NamedTuple):
    """The verdict over a whole ledger."""

    valid: bool
    findings: tuple[Finding, ...]
    finding_count: int
    checked: dict[str, int]
    unchecked: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as every surface shows it."""
        shown = self._asdict()
        shown["findings"] = [finding.to_dict() for finding in self.findings]
        shown["unchecked"] = list(self.unchecked)
        return shown


class Findings:
    """Collects findings; past a limit they are counted, no longer kept."""

    def __init__(self) -> None:
        self.kept: list[Finding] = []
        self.count = 0

    def add(self, code: str, index: int | None, place: str, message: str) -> None:
        """Note one thing that does not hold."""
        self.count += 1
        if len(self.kept) < FINDINGS_MAX:
            self.kept.append(Finding(code, index, place, message))

    def take(self, others: Findings) -> None:
        """Note what somebody else found."""
        self.count += others.count
        self.kept += others.kept[: FINDINGS_MAX - len(self.kept)]

    def report(self, checked: dict[str, int], unchecked: list[str]) -> Report:
        """The verdict, with findings in log order."""
        kept = sorted(self.kept, key=lambda found: (found.index is None, found.index or 0))
        return Report(self.count == 0, tuple(kept), self.count, checked, tuple(unchecked))


class ChainCount(NamedTuple):
    """The verdict over one chain among many."""

    valid: bool
    record_count: int
    broken_count: int


class ChainReport(NamedTuple):
    """The verdict over one chain, or over every chain when none was named."""

    valid: bool
    record_count: int
    broken_count: int
    first_broken_index: int | None
    first_broken_at: str | None
    reason: str | None
    by_task: dict[str, ChainCount]
    by_session: dict[str, ChainCount]

    def to_dict(self) -> dict[str, Any]:
        """The report as every surface shows it."""
        shown = self._asdict()
        for key in ("by_task", "by_session"):
            shown[key] = {name: count._asdict() for name, count in shown[key].items()}
        return shown
