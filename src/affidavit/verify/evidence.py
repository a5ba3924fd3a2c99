"""An evidence file, checked: the file itself, its checkpoint, every entry's place in the log.

The order is that of belief. The archive and its shapes; then the checkpoint, by what the verifier
trusts; then each entry under that checkpoint; only then what entries say: payloads, chains, seals,
and whether anything is missing (`verify/contents.py`, `verify/passage.py`). All else in the file is
a claim, compared at the end with what entries and checkpoint say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from affidavit.core.bundle import (
    CHECKPOINT,
    ENTRIES,
    MANIFEST,
    POLICY,
    Evidence,
    Manifest,
    Scope,
    decode_evidence,
    proof_path,
)
from affidavit.core.canonical import hex_digest
from affidavit.core.checkpoint import TreeHead, UnverifiedCheckpoint, parse_checkpoint
from affidavit.core.entry import Entry, decode_entry
from affidavit.core.kinds import BODIES
from affidavit.core.merkle import check_inclusion, leaf_hash
from affidavit.core.note import check_note
from affidavit.core.policy import parse_policy
from affidavit.core.tlog_proof import decode_proof
from affidavit.errors import AffidavitError, InputError, IntegrityViolation
from affidavit.verify.contents import check_payloads
from affidavit.verify.findings import Finding, Findings
from affidavit.verify.passage import check_passage
from affidavit.verify.signers import check_name, check_signers
from affidavit.verify.trust import NOBODY, Trust, claimed_keys, judge_checkpoint, render_seen

Progress = Callable[[int, int], None]

VERIFIED: Final = "verified"
CONSISTENT: Final = "consistent, not authenticated"
VIOLATION: Final = "violation"
UNVERIFIED: Final = "could not be verified"


class EvidenceReport(NamedTuple):
    """The verdict over an evidence file, and what it rests on.

    `missing` is what keeps a file without findings from being verified.
    """

    verdict: str
    findings: tuple[Finding, ...]
    finding_count: int
    checked: dict[str, int]
    unchecked: tuple[str, ...]
    missing: tuple[str, ...]
    vouchers: tuple[str, ...]
    head: TreeHead | None
    scope: Scope | None

    def to_dict(self) -> dict[str, Any]:
        """The report as every surface shows it."""
        head, scope = self.head, self.scope
        return {
            **self._asdict(),
            "findings": [finding.to_dict() for finding in self.findings],
            "head": head and {**head._asdict(), "root": head.root.hex()},
            "scope": scope and scope._asdict(),
        }


def verify_evidence(
    data: bytes, trust: Trust = NOBODY, progress: Progress | None = None
) -> EvidenceReport:
    """Check all that an evidence file shows."""
    findings = Findings()
    try:
        manifest, evidence, files = decode_evidence(data)
        found = _read_checkpoint(evidence.checkpoint)
    except InputError as error:
        findings.add("evidence_malformed", None, error.field or "archive", error.message)
        return _report(findings, VIOLATION)
    standing = judge_checkpoint(found, trust, findings)
    unchecked = [*standing.unchecked, *_check_claimed_keys(evidence.policy, found, findings)]
    _check_manifest(manifest, found.claims, files, findings)
    believed = _check_entries(evidence, found.claims, findings, progress)
    check_signers(believed.entries, found.claims, standing.vouchers, findings)
    check_name(believed.entries, evidence.scope, found.claims, findings)
    checked = {"signatures": sum(who.startswith("key") for who in standing.vouchers)}
    checked |= {"entries": len(believed.entries)}
    check_payloads(evidence, believed.entries, findings, checked, unchecked)
    check_passage(evidence, believed.entries, believed.is_whole, findings, checked, unchecked)
    unchecked += _say_unchecked(believed.entries, found.claims)
    vouchers = list(standing.vouchers)
    if standing.seen_s is not None:
        vouchers.append(f"witnesses, who had seen it by {render_seen(standing.seen_s)}")
    if findings.count:
        verdict = VIOLATION
    elif not standing.missing:
        verdict = VERIFIED
    else:
        verdict = UNVERIFIED if trust.is_named else CONSISTENT
    told = findings.report(checked, unchecked)
    return EvidenceReport(
        verdict, told.findings, told.finding_count, checked, told.unchecked, standing.missing,
        tuple(vouchers), found.claims, evidence.scope,
    )  # fmt: skip


def _report(findings: Findings, verdict: str) -> EvidenceReport:
    said = ["nothing behind the first thing that cannot be read"]
    told = findings.report({}, said)
    return EvidenceReport(
        verdict, told.findings, told.finding_count, {}, told.unchecked, (), (), None, None
    )


def _read_checkpoint(data: bytes) -> UnverifiedCheckpoint:
    try:
        return parse_checkpoint(data)
    except InputError as error:
        raise InputError(f"{CHECKPOINT}: {error.message}", field=CHECKPOINT) from None


def _check_claimed_keys(
    policy: bytes, found: UnverifiedCheckpoint, findings: Findings
) -> list[str]:
    """A sender's own claims must hold, whoever he is; without any there is nothing to check."""
    try:
        keys = claimed_keys(parse_policy(policy), found.claims.origin)
    except InputError as error:
        findings.add("evidence_malformed", None, POLICY, error.message)
        return []
    if not keys:
        return ["the sender claims no key of this log"]
    try:
        check_note(found.note, keys)
    except AffidavitError as error:
        if not any(one.code == "signature_bad" for one in findings.kept):
            code = "signature_bad" if isinstance(error, IntegrityViolation) else "view_differs"
            place = CHECKPOINT if code == "signature_bad" else f"{POLICY} log"
            findings.add(code, None, place, f"by the keys the sender claims: {error.message}")
    return []


def _check_manifest(
    manifest: Manifest, head: TreeHead, files: Mapping[str, bytes], findings: Findings
) -> None:
    claims = {"origin": head.origin, "size": head.size, "root": head.root.hex()}
    for name, is_so in claims.items():
        if getattr(manifest, name) != is_so:
            said = f"{name} is not that of the checkpoint"
            findings.add("view_differs", None, f"{MANIFEST} {name}", said)
    for name, digest in manifest.files.items():
        if hex_digest(files[name]) != digest:
            said = f"{name} is not the file that was listed"
            findings.add("view_differs", None, f"{MANIFEST} files {name}"[:300], said)


class _Believed(NamedTuple):
    """The entries that stand in the log, as they are; whole where none of the file's was lost."""

    entries: dict[int, tuple[bytes, Entry]]
    is_whole: bool


def _check_entries(
    evidence: Evidence, head: TreeHead, findings: Findings, progress: Progress | None
) -> _Believed:
    believed, last_at = dict[int, tuple[bytes, Entry]](), 0
    for index in sorted(evidence.proofs.keys() - evidence.entries.keys()):
        findings.add("entry_missing", index, ENTRIES, "there is a proof of it, and it is not there")
    for done, (index, raw) in enumerate(evidence.entries.items()):
        if progress is not None and not done & 1023:
            progress(done, len(evidence.entries))
        if not _stands_in_log(index, raw, evidence, head, findings):
            continue
        try:
            entry = decode_entry(raw)
        except InputError as error:
            findings.add("entry_not_canonical", index, ENTRIES, error.message)
            continue
        if entry.at < last_at:
            findings.add("time_backwards", index, ENTRIES, "it is older than one before it")
        if (entry.kind == "ledger.created") != (index == 0):
            said = "ledger.created must be the first entry, and only the first"
            findings.add("entry_changed", index, ENTRIES, said)
        last_at = max(last_at, entry.at)
        believed[index] = raw, entry
    is_whole = believed.keys() >= (evidence.entries.keys() | evidence.proofs.keys())
    return _Believed(believed, is_whole)


def _stands_in_log(
    index: int, raw: bytes, evidence: Evidence, head: TreeHead, findings: Findings
) -> bool:
    """Whether the checkpoint's log has this entry at this index."""
    place = proof_path(index)
    if index not in evidence.proofs:
        findings.add("evidence_malformed", index, place, "there is no proof of this entry")
        return False
    try:
        proof = decode_proof(evidence.proofs[index])
    except InputError as error:
        findings.add("evidence_malformed", index, place, error.message)
        return False
    if proof.checkpoint != evidence.checkpoint or proof.log_index != index or proof.extra:
        said = "the proof is of another entry or checkpoint, or says more than it should"
        findings.add("evidence_malformed", index, place, said)
        return False
    try:
        check_inclusion(index, head.size, leaf_hash(raw), proof.hashes, head.root)
    except IntegrityViolation as error:
        said = f"the log does not have this entry here ({error.message})"
        findings.add("entry_changed", index, ENTRIES, said)
        return False
    return True


def _say_unchecked(entries: Mapping[int, tuple[bytes, Entry]], head: TreeHead) -> list[str]:
    said = [f"what was recorded behind this checkpoint, from entry {head.size:,} on"]
    unknown = sum(entry.kind not in BODIES for _, entry in entries.values())
    if unknown:
        said.append(f"{unknown:,} entries of kinds this version does not know")
    return said
