"""An evidence file, checked: the file itself, its checkpoint, every entry's place in the log.

The order is that of belief. The archive and its shapes; then the checkpoint, by what the verifier
trusts; then each entry under that checkpoint; only then what entries say: payloads, chains, seals,
and whether anything is missing (`verify/contents.py`, `verify/passage.py`, `verify/parts.py`). All
else in the file is a claim, compared at the end with what entries and checkpoint say.

The file is read in pieces and its entries go by once; what is kept of each are some 150 bytes,
whatever its texts hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from affidavit.core.archive import Source
from affidavit.core.bundle import CHECKPOINT, ENTRIES, MANIFEST, POLICY, Scope, proof_path
from affidavit.core.bundle_reading import BundleReader
from affidavit.core.checkpoint import TreeHead, UnverifiedCheckpoint, parse_checkpoint
from affidavit.core.entry import Entry, decode_entry
from affidavit.core.kinds import BODIES
from affidavit.core.merkle import Digest, check_inclusion, leaf_hash
from affidavit.core.note import check_note
from affidavit.core.policy import parse_policy
from affidavit.core.tlog_proof import decode_proof
from affidavit.errors import AffidavitError, InputError, IntegrityViolation
from affidavit.verify.contents import PayloadCheck
from affidavit.verify.findings import Finding, Findings
from affidavit.verify.parts import PartCheck
from affidavit.verify.passage import ScopeCheck, Walk
from affidavit.verify.signers import SignerCheck
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
    source: Source, trust: Trust = NOBODY, progress: Progress | None = None
) -> EvidenceReport:
    """Check all that an evidence file shows."""
    try:
        bundle = BundleReader(source)
        found = _read_checkpoint(bundle.checkpoint)
        return _judge(bundle, found, trust, progress)
    except InputError as error:
        findings = Findings()
        findings.add("evidence_malformed", None, error.field or "archive", error.message)
        return refuse(findings, "nothing behind the first thing that cannot be read")


def _judge(
    bundle: BundleReader, found: UnverifiedCheckpoint, trust: Trust, progress: Progress | None
) -> EvidenceReport:
    findings = Findings()
    standing = judge_checkpoint(found, trust, findings)
    unchecked = [*standing.unchecked, *_check_claimed_keys(bundle.policy, found, findings)]
    _check_manifest(bundle, found.claims, findings)
    # What may be missing is judged otherwise where an entry cannot be believed; that is seldom.
    passage = _Passage(bundle, found.claims, standing.vouchers, is_whole=True)
    if not passage.run(progress):
        passage = _Passage(bundle, found.claims, standing.vouchers, is_whole=False)
        passage.run(progress)
    findings.take(passage.findings)
    checked = {"signatures": sum(who.startswith("key") for who in standing.vouchers)}
    checked |= passage.checked
    unchecked += passage.unchecked
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
        tuple(vouchers), found.claims, bundle.scope,
    )  # fmt: skip


def refuse(findings: Findings, unchecked: str) -> EvidenceReport:
    """The verdict over what cannot be read: nothing of it was checked."""
    told = findings.report({}, [unchecked])
    return EvidenceReport(
        VIOLATION, told.findings, told.finding_count, {}, told.unchecked, (), (), None, None
    )


def check_order(index: int, entry: Entry, last_at: int, place: str, findings: Findings) -> None:
    """That an entry may stand behind those before it."""
    if entry.at < last_at:
        findings.add("time_backwards", index, place, "it is older than one before it")
    if (entry.kind == "ledger.created") != (index == 0):
        said = "ledger.created must be the first entry, and only the first"
        findings.add("entry_changed", index, place, said)


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


def _check_manifest(bundle: BundleReader, head: TreeHead, findings: Findings) -> None:
    claims = {"origin": head.origin, "size": head.size, "root": head.root.hex()}
    for name, is_so in claims.items():
        if getattr(bundle.manifest, name) != is_so:
            said = f"{name} is not that of the checkpoint"
            findings.add("view_differs", None, f"{MANIFEST} {name}", said)
    for name in bundle.find_changed():
        said = f"{name} is not the file that was listed"
        findings.add("view_differs", None, f"{MANIFEST} files {name}"[:300], said)


class _Passage:
    """One walk through the entries of a file, and all that is compared with them."""

    def __init__(
        self,
        bundle: BundleReader,
        head: TreeHead,
        vouchers: tuple[str, ...],
        *,
        is_whole: bool,
    ) -> None:
        self.findings = Findings()
        self.checked: dict[str, int] = {}
        self.unchecked: list[str] = []
        self._bundle = bundle
        self._head = head
        self._is_whole = is_whole
        self._proofs = bundle.proofs()
        self._proof = next(self._proofs, None)
        scope, parts = bundle.scope, bundle.sessions
        self._signers = SignerCheck(head, vouchers, self.findings)
        self._payloads = PayloadCheck(bundle.payloads(), self.findings)
        self._walk = Walk(scope, parts.values(), is_whole, self.findings)
        self._parts = PartCheck(scope, parts, is_whole, self.findings)
        self._scope = ScopeCheck(scope, parts, self.findings)
        self._last_at = self._believed = self._unknown = 0
        # Whether an entry is missing, or there and not to be believed.
        self._is_short = False

    def run(self, progress: Progress | None) -> bool:
        """Whether every entry can be believed; if it was thought so and is not, nothing is told."""
        for done, (index, raw) in enumerate(self._bundle.entries()):
            if progress is not None and not done & 1023:
                progress(done, self._bundle.proof_count)
            leaf = leaf_hash(raw)
            entry = self._read(index, raw, leaf)
            self._payloads.check(index, entry)
            if entry is not None:
                self._follow(index, entry, leaf)
            self._is_short |= entry is None
            if self._is_short and self._is_whole:
                return False
        self._say_missing(None)
        if self._is_short and self._is_whole:
            return False
        self._finish()
        return True

    def _follow(self, index: int, entry: Entry, leaf: Digest) -> None:
        self._believed += 1
        self._unknown += entry.kind not in BODIES
        self._signers.follow(index, entry)
        self._walk.follow(index, entry, leaf)
        self._parts.follow(index, entry, leaf)
        self._scope.follow(index, entry)

    def _finish(self) -> None:
        self._signers.finish(self._bundle.scope)
        self.checked["entries"] = self._believed
        self._payloads.finish(self.checked, self.unchecked)
        for start, part in self._bundle.sessions.items():
            state = self._walk.states.get(part.session_id)
            self._parts.check(start, state, self._bundle.records(start))
        if self._is_whole:
            # What is missing is told already where an entry could not be believed.
            self._scope.finish(self._payloads.erasers)
        parts, walk = self._parts, self._walk
        self.checked |= {
            "links": walk.links,
            "seals": parts.seals + walk.seals,
            "complete": parts.complete + walk.seals,
        }
        self.unchecked += [*parts.unchecked, *walk.unchecked()]
        size = self._head.size
        self.unchecked.append(f"what was recorded behind this checkpoint, from entry {size:,} on")
        if self._unknown:
            said = f"{self._unknown:,} entries of kinds this version does not know"
            self.unchecked.append(said)

    def _read(self, index: int, raw: bytes, leaf: Digest) -> Entry | None:
        """The entry, if it stands in the log and is one."""
        self._say_missing(index)
        if not self._stands_in_log(index, leaf):
            return None
        try:
            entry = decode_entry(raw)
        except InputError as error:
            self.findings.add("entry_not_canonical", index, ENTRIES, error.message)
            return None
        check_order(index, entry, self._last_at, ENTRIES, self.findings)
        self._last_at = max(self._last_at, entry.at)
        return entry

    def _say_missing(self, end: int | None) -> None:
        """Tell of proofs, up to an entry, of entries that are not there."""
        while self._proof is not None and (end is None or self._proof[0] < end):
            said = "there is a proof of it, and it is not there"
            self.findings.add("entry_missing", self._proof[0], ENTRIES, said)
            self._proof = next(self._proofs, None)
            self._is_short = True

    def _stands_in_log(self, index: int, leaf: Digest) -> bool:
        """Whether the checkpoint's log has this entry at this index."""
        place, head = proof_path(index), self._head
        if self._proof is None or self._proof[0] != index:
            self.findings.add("evidence_malformed", index, place, "there is no proof of this entry")
            return False
        data, self._proof = self._proof[1], next(self._proofs, None)
        try:
            proof = decode_proof(data)
        except InputError as error:
            self.findings.add("evidence_malformed", index, place, error.message)
            return False
        if proof.checkpoint != self._bundle.checkpoint or proof.log_index != index or proof.extra:
            said = "the proof is of another entry or checkpoint, or says more than it should"
            self.findings.add("evidence_malformed", index, place, said)
            return False
        try:
            check_inclusion(index, head.size, leaf, proof.hashes, head.root)
        except IntegrityViolation as error:
            said = f"the log does not have this entry here ({error.message})"
            self.findings.add("entry_changed", index, ENTRIES, said)
            return False
        return True
