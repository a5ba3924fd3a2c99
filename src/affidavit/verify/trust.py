"""Whether a checkpoint is to be believed: by the keys, witnesses and notes that a verifier trusts.

Trust comes from the verifier alone. What a file says about keys is a claim; that such a key signed
shows that the file agrees with itself, no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from affidavit.core.checkpoint import Checkpoint, TreeHead, UnverifiedCheckpoint
from affidavit.core.moment import US_PER_SECOND, render_time
from affidavit.core.note import ED25519, VerifierKey, check_note
from affidavit.core.policy import Policy, check_quorum
from affidavit.errors import CannotVerify, InputError, IntegrityViolation
from affidavit.verify.findings import Findings

_PLACE = "checkpoint"


class Trust(NamedTuple):
    """Whom a verifier believes: keys, a policy, and checkpoints kept from before.

    Those three were named for this verification and must be met; `own` keys and `kept` checkpoints
    lie in the verifier's folders and are used where they can be.
    """

    keys: tuple[VerifierKey, ...] = ()
    policy: Policy | None = None
    pinned: tuple[UnverifiedCheckpoint, ...] = ()
    own: tuple[VerifierKey, ...] = ()
    kept: tuple[UnverifiedCheckpoint, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether anything was named, so that it must be met."""
        return bool(self.keys or self.policy or self.pinned)

    @property
    def pins(self) -> tuple[UnverifiedCheckpoint, ...]:
        """All checkpoints, those that were named first, each once."""
        return tuple(dict.fromkeys((*self.pinned, *self.kept)))

    def keys_of(self, origin: str) -> list[VerifierKey]:
        """The keys that may sign for this log."""
        named = (*self.keys, *(self.policy.logs if self.policy else ()), *self.own)
        found = [key for key in named if key.type == ED25519 and key.name == origin]
        return list(dict.fromkeys(found))


NOBODY = Trust()


class Standing(NamedTuple):
    """Who stands for a checkpoint, what is missing for it to be believed, and what was not asked.

    `seen_s` is when a quorum of witnesses had seen it, in POSIX seconds.
    """

    vouchers: tuple[str, ...]
    seen_s: int | None
    missing: tuple[str, ...]
    unchecked: tuple[str, ...]


def judge_checkpoint(found: UnverifiedCheckpoint, trust: Trust, findings: Findings) -> Standing:
    """What the verifier's trust says of a checkpoint; what is false goes to the findings."""
    vouchers, missing = _check_signatures(found, trust, findings)
    pins, unmet, left = _compare_pins(found, trust, findings)
    seen_s, unseen, unasked = _check_witnesses(found, trust.policy, findings)
    if not (trust.is_named or vouchers or pins or missing):
        missing = ["no key, policy or pinned checkpoint of yours says who may sign this log"]
    # A pinned checkpoint needs no signature: whoever verifies kept it himself.
    if pins and not (trust.keys or trust.policy):
        missing = []
    return Standing((*vouchers, *pins), seen_s, (*missing, *unmet, *unseen), (*left, *unasked))


def _check_signatures(
    found: UnverifiedCheckpoint, trust: Trust, findings: Findings
) -> tuple[list[str], list[str]]:
    """The trusted keys that signed; or why none did."""
    origin = found.claims.origin
    keys = trust.keys_of(origin)
    if not keys:
        named = trust.keys or trust.policy
        return [], [f"none of the keys given is one of {origin!r:.200}"] if named else []
    try:
        signed = check_note(found.note, keys).signatures
    except CannotVerify as error:
        return [], [error.message]
    except (InputError, IntegrityViolation) as error:
        findings.add("signature_bad", None, _PLACE, error.message)
        return [], []
    return [f"key {signature.key}" for signature in signed], []


def _compare_pins(
    found: UnverifiedCheckpoint, trust: Trust, findings: Findings
) -> tuple[list[str], list[str], list[str]]:
    """Pins that say the same; pins that were to be met and cannot; kept ones of another size."""
    same, unmet, left = list[str](), list[str](), list[str]()
    for pin in trust.pins:
        named = pin in trust.pinned
        if pin.claims.origin != found.claims.origin:
            if named:
                unmet.append(f"the pinned checkpoint is of another log, {pin.claims.origin!r:.200}")
        elif pin.claims.size != found.claims.size:
            said = _say_other_size(pin.claims, found.claims)
            (unmet if named else left).append(said)
        elif pin.claims.root != found.claims.root:
            said = f"at {pin.claims.size:,} entries the pinned checkpoint has another root"
            findings.add("fork", None, _PLACE, said)
        else:
            same.append(f"pinned checkpoint of {pin.claims.size:,} entries")
    return same[:1], unmet, left


def _say_other_size(pin: TreeHead, found: TreeHead) -> str:
    return (
        f"the pinned checkpoint has {pin.size:,} entries and this one {found.size:,}: whether one "
        "grew out of the other is not shown by a file; the ledger, or where it is published, does"
    )


def _check_witnesses(
    found: UnverifiedCheckpoint, policy: Policy | None, findings: Findings
) -> tuple[int | None, list[str], list[str]]:
    if policy is None or policy.quorum is None:
        return None, [], ["no witness was asked for (--policy)"]
    try:
        return check_quorum(policy, Checkpoint(found.claims, found.note)), [], []
    except CannotVerify as error:
        return None, [error.message], []
    except (InputError, IntegrityViolation) as error:
        findings.add("signature_bad", None, _PLACE, error.message)
        return None, [], []


def render_seen(seen_s: int) -> str:
    """When witnesses had seen a checkpoint, for a person."""
    try:
        return render_time(seen_s * US_PER_SECOND)
    except (OverflowError, ValueError, OSError):
        return f"second {seen_s}"


def claimed_keys(policy: Policy, origin: str) -> Sequence[VerifierKey]:
    """The keys a sender claims for a log."""
    return [key for key in policy.logs if key.name == origin]
