"""What a ledger is compared with when it is verified: checkpoints that were kept outside of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from affidavit.apps import wiring
from affidavit.core.checkpoint import UnverifiedCheckpoint
from affidavit.core.merkle import Digest
from affidavit.core.misbehaviour import Fork, find_fork
from affidavit.core.note import VerifierKey, parse_verifier_key
from affidavit.errors import InputError, IntegrityViolation
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import GrowthProof
from affidavit.verify.findings import Findings
from affidavit.verify.trust import Trust, judge_checkpoint

_UNCHECKED_OWN: Final = (
    "nothing was authenticated but against what this user last signed: whoever can write this "
    "user's files can write both anew; a checkpoint kept elsewhere shows more (--pinned)"
)


class Compared(NamedTuple):
    """The checkpoints, who vouches for them, what is missing of what was asked, and a caveat."""

    pins: list[UnverifiedCheckpoint]
    vouchers: list[str]
    missing: list[str]
    unchecked: tuple[str, ...] = ()


def choose_pins(ledger: Ledger, trust: Trust) -> Compared:
    """Those named, those kept for this log, and what this user last signed for it."""
    try:
        origin = ledger.origin
    except IntegrityViolation:
        return Compared(list(trust.pinned), [], [])  # what is damaged is for the report to say
    kept = [pin for pin in trust.kept if pin.claims.origin == origin]
    signed = wiring.last_signed(origin)
    pins = [*trust.pinned, *kept]
    caveat = () if pins or signed is None else (_UNCHECKED_OWN,)
    if signed is not None:
        pins.append(signed)
    if not (trust.keys or trust.policy):
        return Compared(pins, [], [], caveat)
    return _authenticate(ledger, pins, trust)._replace(unchecked=caveat)


def find_forks(ledger: Ledger, pins: Sequence[UnverifiedCheckpoint]) -> list[Fork]:
    """Proofs that two of these checkpoints are of two histories: one is the ledger's, one not.

    The ledger's own tree shows what the larger of the two has at the size of the other.
    """
    ends = [pin for pin in pins if (grown := _grown(ledger, pin, pin)) and _fits(grown, pin)]
    if not ends:
        return []
    end = max(ends, key=lambda pin: pin.claims.size)
    found = []
    for pin in pins:
        if (grown := _grown(ledger, pin, end)) is None:
            continue
        proof = [Digest(bytes.fromhex(one)) for one in grown.hashes]
        found.append(find_fork(pin, end, Digest(bytes.fromhex(grown.old_root)), proof))
    return [fork for fork in dict.fromkeys(found) if fork is not None]


def _fits(grown: GrowthProof, pin: UnverifiedCheckpoint) -> bool:
    return grown.new_root == pin.claims.root.hex()


def _grown(
    ledger: Ledger, pin: UnverifiedCheckpoint, end: UnverifiedCheckpoint
) -> GrowthProof | None:
    """How the ledger grew from the size of one checkpoint to that of another, if it did."""
    try:
        return ledger.prove_growth(pin.claims.size, end.claims.size)
    except (InputError, IntegrityViolation):
        return None


def _authenticate(ledger: Ledger, pins: list[UnverifiedCheckpoint], trust: Trust) -> Compared:
    """Who signed them: every one that was named, or else any that is kept.

    A key that the log added below a checkpoint that is believed is believed from there on. Whether
    the ledger is the one that was signed there is for its verification to say.
    """
    vouchers, missing = dict[str, None](), dict[str, None]()
    asked = trust._replace(pinned=(), kept=(), own=())
    for pin in sorted(pins, key=lambda pin: pin.claims.size):
        findings = Findings()
        found = judge_checkpoint(pin, asked, findings)
        if findings.count:
            raise IntegrityViolation(
                f"a checkpoint kept elsewhere is not sound: {findings.kept[0].message}",
                hint="Ask where it came from.",
                finding=findings.kept[0].code,
            )
        vouchers |= dict.fromkeys(found.vouchers)
        if found.vouchers:
            asked = asked._replace(keys=(*asked.keys, *_keys_below(ledger, pin.claims.size)))
        if pin in trust.pinned or not trust.pinned:
            missing |= dict.fromkeys(found.missing)
    if vouchers and not trust.pinned:
        missing.clear()
    if not pins:
        missing["a checkpoint to check the key on (--pinned NOTE)"] = None
    return Compared(pins, list(vouchers), list(missing))


def _keys_below(ledger: Ledger, size: int) -> list[VerifierKey]:
    found = [key for key in ledger.list_keys() if key.added_index < size]
    return [parse_verifier_key(key.vkey) for key in found]
