"""What an auditor does: check a file with all that is held against it, and keep a checkpoint."""

from __future__ import annotations

from affidavit.apps.auditor.pins import keep_fork, keep_pin, kept_pins
from affidavit.apps.auditor.reading import (
    checkpoint_in,
    open_evidence,
    read_checkpoint,
    verify_source,
)
from affidavit.apps.auditor.showing import answer_evidence
from affidavit.apps.cli.render import Answer, count
from affidavit.core.checkpoint import UnverifiedCheckpoint
from affidavit.core.misbehaviour import find_fork
from affidavit.errors import IntegrityViolation
from affidavit.verify.evidence import Progress
from affidavit.verify.findings import Findings
from affidavit.verify.trust import Trust, judge_checkpoint


def check_file(path: str, trust: Trust, progress: Progress | None = None) -> Answer:
    """The verdict over a file; where it shows a fork, the proof of that is kept."""
    forks = []
    with open_evidence(path) as source:
        report = verify_source(source, path, trust, progress)
        if report.scope is not None and any(one.code == "fork" for one in report.findings):
            forks = keep_forks(checkpoint_in(source, path), (*trust.pinned, *trust.kept))
    answer = answer_evidence(path, report, {"proofs_of_misbehaviour": forks})
    lines = [*answer.lines, *(f"  evidence     {place}" for place in forks)]
    return answer._replace(lines=lines)


def keep_forks(found: UnverifiedCheckpoint, pins: tuple[UnverifiedCheckpoint, ...]) -> list[str]:
    """Proofs that the log signed another history than a pin says, where both have one size."""
    mine = [pin for pin in pins if pin.claims.origin == found.claims.origin]
    forks = [find_fork(pin, found) for pin in mine if pin.claims.size == found.claims.size]
    return [str(keep_fork(fork)) for fork in forks if fork is not None]


def pin(path: str, trust: Trust) -> Answer:
    """Keep a checkpoint, if nothing that is known speaks against it."""
    found, findings = read_checkpoint(path), Findings()
    standing = judge_checkpoint(found, trust, findings)
    head = found.claims
    if findings.count:
        forks = keep_forks(found, (*trust.pinned, *kept_pins(head.origin)))
        finding = findings.kept[0]
        raise IntegrityViolation(
            f"the checkpoint is not kept: {finding.message}",
            hint="Show the evidence to others who hold checkpoints of this log."
            if forks
            else "Ask where it came from.",
            finding=finding.code,
            evidence=forks,
            origin=head.origin,
            size=head.size,
        )
    place = keep_pin(found)
    data = {
        "origin": head.origin, "size": head.size, "root": head.root.hex(), "place": str(place),
        "vouchers": list(standing.vouchers), "missing": list(standing.missing),
    }  # fmt: skip
    lines = [f"Kept: {head.origin}, {count(head.size, 'entry', 'entries')}, {head.root.hex()}"]
    lines += [f"  vouched for  by {who}" for who in standing.vouchers]
    lines += [f"  missing      {said}" for said in standing.missing]
    return Answer(data, lines)
