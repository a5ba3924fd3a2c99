r"""Policies: which logs and witnesses are trusted, and how many witnesses are needed.

c2sp.org/tlog-policy. A line a definition; words are parted by spaces and tabs; empty lines and
lines that begin with `#` mean nothing. A line refers to names defined above it only.

    log <verifier key> [<url>]                  type 0x01; any one of them may have signed
    witness <name> <verifier key> [<url>]       type 0x04
    group <name> all|any|<k> <member>...        a member is a witness or a group, in one group only
    quorum <name>|none                          exactly one such line

    >>> policy = parse_policy(b"quorum none\n")
    >>> policy.quorum is None
    True

A witness vouches from the time it cosigned; a group from the time its k-th member did. So the time
a quorum proves is the k-th smallest, and a witness that cosigned twice counts once, at the earlier.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from affidavit.core.checkpoint import (
    Checkpoint,
    UnverifiedCheckpoint,
    check_cosignatures,
    decode_number,
)
from affidavit.core.note import COSIGNATURE, ED25519, VerifierKey, parse_verifier_key
from affidavit.errors import CannotVerify, InputError

_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_NONE: Final = "none"


class Group(NamedTuple):
    """Vouches when `threshold` of its members do."""

    threshold: int
    members: tuple[str, ...]


class Policy(NamedTuple):
    """Whom to trust, and how many of them it takes; groups stand in the order of their lines."""

    logs: tuple[VerifierKey, ...]
    witnesses: dict[str, VerifierKey]
    groups: dict[str, Group]
    quorum: str | None


def parse_policy(data: bytes) -> Policy:
    """Read a policy; one line that cannot be understood refuses all of it."""
    if _CONTROL.search(data):
        raise InputError("policy: has a control character", field="policy")
    reading = _Reading()
    # Names are opaque bytes; what is no UTF-8 is kept as surrogates, which no key name can have.
    for number, line in enumerate(data.decode(errors="surrogateescape").split("\n"), start=1):
        words = line.replace("\t", " ").split(" ")
        words = [word for word in words if word]
        if words and not words[0].startswith("#"):
            try:
                reading.read(words)
            except InputError as error:
                raise InputError(
                    f"policy: line {number}: {error.message}", field="policy"
                ) from None
    return reading.policy()


class _Reading:
    """What the lines read so far define."""

    def __init__(self) -> None:
        self._logs: list[VerifierKey] = []
        self._witnesses: dict[str, VerifierKey] = {}
        self._groups: dict[str, Group] = {}
        self._members: set[str] = set()
        self._quorum: list[str] = []

    def read(self, words: Sequence[str]) -> None:
        """Take in one line."""
        what, rest = words[0], words[1:]
        if what == "log" and len(rest) in (1, 2):
            self._logs.append(_key(rest[0], ED25519, self._logs))
        elif what == "witness" and len(rest) in (2, 3):
            others = list(self._witnesses.values())
            self._witnesses[self._new(rest[0])] = _key(rest[1], COSIGNATURE, others)
        elif what == "group" and len(rest) >= 3:
            self._groups[self._new(rest[0])] = self._group(rest[1], rest[2:])
        elif what == "quorum" and len(rest) == 1:
            if rest[0] != _NONE:
                self._check_known(rest[0])
            self._quorum.append(rest[0])
        else:
            raise InputError(f"{what!r:.40} and {len(rest)} words after it mean nothing here")

    def _new(self, name: str) -> str:
        if name == _NONE or name in self._witnesses or name in self._groups:
            raise InputError(f"{ascii(name)[1:-1]:.80} is defined already")
        return name

    def _check_known(self, name: str) -> None:
        if name not in self._witnesses and name not in self._groups:
            raise InputError(f"{ascii(name)[1:-1]:.80} is not defined above")

    def _group(self, how: str, members: Sequence[str]) -> Group:
        for name in members:
            self._check_known(name)
            if name in self._members:
                raise InputError(f"{ascii(name)[1:-1]:.80} is a member twice")
            self._members.add(name)
        count = len(members)
        threshold = {"any": 1, "all": count}.get(how) or decode_number(how, "threshold")
        if not 1 <= threshold <= count:
            raise InputError(f"{threshold} of {count} members cannot be needed")
        return Group(threshold, tuple(members))

    def policy(self) -> Policy:
        """What all lines together say."""
        if len(self._quorum) != 1:
            raise InputError(
                f"policy: has {len(self._quorum)} quorum lines, not one", field="policy"
            )
        quorum = None if self._quorum[0] == _NONE else self._quorum[0]
        return Policy(tuple(self._logs), self._witnesses, self._groups, quorum)


def _key(text: str, type_: int, others: Sequence[VerifierKey]) -> VerifierKey:
    key = parse_verifier_key(text)
    if key.type != type_:
        raise InputError(f"{key.name} is a key of type 0x{key.type:02x}, not 0x{type_:02x}")
    if any(key.public == other.public for other in others):
        raise InputError(f"the key of {key.name} is there already")
    return key


def check_quorum(policy: Policy, found: Checkpoint) -> int | None:
    """The time in POSIX seconds by which a quorum had seen the checkpoint; None if none is asked.

    Whether the log signed it is not asked here: that is what made it a `Checkpoint`.
    """
    if policy.quorum is None:
        return None
    times = _witnessed(policy, found)
    for name, group in policy.groups.items():
        known = sorted(times[member] for member in group.members if member in times)
        if len(known) >= group.threshold:
            times[name] = known[group.threshold - 1]
    if policy.quorum not in times:
        raise CannotVerify(
            f"the quorum {ascii(policy.quorum)[1:-1]:.80} is not reached; "
            f"{len(_witnessed(policy, found))} of {len(policy.witnesses)} witnesses cosigned",
            hint="Ask the log for a checkpoint with more cosignatures, or change the policy.",
        )
    return times[policy.quorum]


def _witnessed(policy: Policy, found: UnverifiedCheckpoint | Checkpoint) -> dict[str, int]:
    names = {key: name for name, key in policy.witnesses.items()}
    times: dict[str, int] = {}
    for signature in check_cosignatures(found, list(policy.witnesses.values())):
        name, time_s = names[signature.key], signature.time_s or 0
        times[name] = min(time_s, times.get(name, time_s))
    return times
