"""A file that says a log signed two histories: checked alone, by nothing but the log's key."""

from __future__ import annotations

from affidavit.core.misbehaviour import Fork, check_fork, decode_fork
from affidavit.core.note import check_note
from affidavit.errors import CannotVerify, InputError, IntegrityViolation
from affidavit.verify.evidence import CONSISTENT, UNVERIFIED, VIOLATION, EvidenceReport
from affidavit.verify.findings import Findings
from affidavit.verify.trust import NOBODY, Trust


def verify_misbehaviour(data: bytes, trust: Trust = NOBODY) -> EvidenceReport:
    """Whether the file shows that the log forked: then the verdict is a violation, of the log."""
    findings, fork = Findings(), decode_fork(data)
    head = fork.newer.claims
    try:
        check_fork(fork)
        vouchers = _signers(fork, trust)
    except IntegrityViolation as error:
        missing = f"the file shows no fork: {error.message}"
        return _report(findings, UNVERIFIED, (missing,), (), fork)
    except CannotVerify as error:
        verdict = UNVERIFIED if trust.is_named else CONSISTENT
        return _report(findings, verdict, (error.message,), (), fork)
    said = (
        f"{head.origin} signed {fork.older.claims.size:,} entries, and then {head.size:,} that do "
        "not begin with them"
    )
    findings.add("fork", None, "checkpoint", said)
    return _report(findings, VIOLATION, (), vouchers, fork)


def _signers(fork: Fork, trust: Trust) -> tuple[str, ...]:
    """The trusted keys that signed both notes, or one of them each."""
    keys = trust.keys_of(fork.newer.claims.origin)
    if not keys:
        raise CannotVerify(
            f"no key of {fork.newer.claims.origin!r:.200} is yours or was given, so anybody may "
            "have written both notes"
        )
    found = []
    for one in (fork.older, fork.newer):
        try:
            signed = check_note(one.note, keys).signatures
        except InputError as error:
            raise CannotVerify(error.message) from None
        found += [f"key {signature.key}" for signature in signed]
    return tuple(dict.fromkeys(found))


def _report(
    findings: Findings,
    verdict: str,
    missing: tuple[str, ...],
    vouchers: tuple[str, ...],
    fork: Fork,
) -> EvidenceReport:
    checked = {"signatures": 2 if vouchers else 0, "proofs": 1 if not missing else 0}
    told = findings.report(checked, ["which of the two histories is the true one"])
    return EvidenceReport(
        verdict, told.findings, told.finding_count, checked, told.unchecked, missing, vouchers,
        fork.newer.claims, None,
    )  # fmt: skip
