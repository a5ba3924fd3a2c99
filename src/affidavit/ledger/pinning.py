"""Comparing a ledger with checkpoints that somebody kept: the log must have grown out of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from affidavit.core.checkpoint import UnverifiedCheckpoint
from affidavit.core.identity import derive_identity
from affidavit.core.merkle import read_root
from affidavit.errors import CannotVerify, IntegrityViolation
from affidavit.ledger.checkpoints import LogTree
from affidavit.ledger.ports import Reader
from affidavit.verify.findings import UNCHECKED_TAIL, Finding, Report

_NONE_FITS: Final = "nothing was authenticated: no checkpoint kept elsewhere fits this log"


def compare_pins(reader: Reader, report: Report, pins: Sequence[UnverifiedCheckpoint]) -> Report:
    """The report with what the pins say; roots are read from nodes that the walk has computed."""
    found = [(pin, _compare(reader, pin)) for pin in pins]
    # Two checkpoints of one size say the same, once.
    findings = tuple(dict.fromkeys(finding for _, finding in found if finding is not None))
    held = [pin.claims.size for pin, finding in found if finding is None]
    if findings:
        report = report._replace(
            valid=False,
            findings=(*report.findings, *findings),
            finding_count=report.finding_count + len(findings),
        )
    unchecked = [one for one in report.unchecked if one != UNCHECKED_TAIL]
    if not held:
        return report._replace(unchecked=(_NONE_FITS, *unchecked))
    size, behind = max(held), reader.size() - max(held)
    said = f"the last {behind:,} entries: the newest checkpoint kept elsewhere has {size:,}"
    return report._replace(
        checked={**report.checked, "pinned": size},
        unchecked=(*([said] if behind else []), *unchecked),
    )


def held_size(reader: Reader, pins: Sequence[UnverifiedCheckpoint]) -> int:
    """How many entries the pins stand for; 0 where one of them does not fit."""
    if any(_compare(reader, pin) is not None for pin in pins):
        return 0
    return max((pin.claims.size for pin in pins), default=0)


def _compare(reader: Reader, pin: UnverifiedCheckpoint) -> Finding | None:
    """What is wrong between a ledger and a pin, if anything is."""
    head, size = pin.claims, reader.size()
    if head.size > size:
        said = f"a checkpoint kept elsewhere has {head.size:,} entries, the log has {size:,}"
        return Finding("tail_removed", size, "log", said)
    _check_name(reader, pin)
    try:
        root = read_root(head.size, LogTree(reader))
    except IntegrityViolation as error:
        return Finding("fork", None, "log", f"not comparable with a checkpoint: {error.message}")
    if root != head.root:
        said = f"its first {head.size:,} entries are not those of a checkpoint kept elsewhere"
        return Finding("fork", None, "log", said)
    return None


def _check_name(reader: Reader, pin: UnverifiedCheckpoint) -> None:
    """That the log went by the pin's name when it had that size."""
    changes = reader.identity_changes()
    then = [(index, entry) for index, entry in changes if index < pin.claims.size]
    try:
        names = {derive_identity(reader.entry(0), until).origin for until in (changes, then)}
    except IntegrityViolation:
        return  # its first entry is damaged, and told of; the root says more than a name
    if pin.claims.origin not in names:
        raise CannotVerify(
            f"the checkpoint is of {pin.claims.origin!r:.200}, which is not a name of this log",
            hint="Give a checkpoint of this ledger.",
        )
