"""What a signer decides: which keys there are, and whether a tree head may be signed.

    nothing signed for the origin yet    signed, and remembered
    no smaller than what was signed, and the proof leads from its root to the new one
                                         signed, remembered, and only then handed out
    anything else                        evidence kept with the signer, nothing signed

It believes nothing it is told: the proof is checked against what this user remembers himself.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from affidavit.apps.signer.messages import AnyQuestion, HasKey, Last, MakeKey, Sign
from affidavit.apps.signing_files import Guard, GuardFolder, KeyFolder
from affidavit.core.canonical import encode_restricted
from affidavit.core.checkpoint import TreeHead, parse_checkpoint
from affidavit.core.merkle import Digest, check_consistency
from affidavit.core.note import is_key_name, parse_verifier_key
from affidavit.errors import ConflictError, IntegrityViolation, invalid

KEYS_MAX: Final = 16
ALL_KEYS_MAX: Final = 4_096


class Desk:
    """Answers questions with this user's keys and guards."""

    def __init__(self, keys: KeyFolder, guards: GuardFolder) -> None:
        self._keys = keys
        self._guards = guards

    def answer(self, question: AnyQuestion) -> dict[str, Any]:
        """The answer, or an error."""
        if isinstance(question, HasKey):
            return {"has": self._keys.has(parse_verifier_key(question.vkey))}
        if not is_key_name(question.origin):
            raise invalid("origin", f"{question.origin!r:.100} is no name of a key")
        if isinstance(question, MakeKey):
            return {"vkey": self._make(question)}
        # Nothing is kept for an origin without a key, so that keys bound what anybody can fill.
        if not self._keys.count(question.origin):
            return {"note": None} if isinstance(question, Last) else self._refuse_keys()
        with self._guards.hold(question.origin, patient=False) as guard:
            note = guard.read()
            if isinstance(question, Last):
                return {"note": None if note is None else note.decode()}
            return self._sign(guard, note, question)

    def _refuse_keys(self) -> NoReturn:
        raise invalid("vkeys", "not all of them are keys of this origin that are kept here")

    def _make(self, question: MakeKey) -> str:
        count, total = self._keys.count(question.origin), self._keys.count()
        if count >= KEYS_MAX or total >= ALL_KEYS_MAX:
            raise ConflictError(
                f"there are {count} keys for {question.origin} already, and {total} in all",
                code="ERR_KEY_LIMIT",
                hint="Look why so many were asked for; take unused key files away.",
            )
        return str(self._keys.make(question.origin))

    def _sign(self, guard: Guard, note: bytes | None, asked: Sign) -> dict[str, Any]:
        head = TreeHead(asked.origin, asked.size, Digest(bytes.fromhex(asked.root)))
        if note is not None:
            last = parse_checkpoint(note).claims
            if last.size != asked.old_size and last.size <= head.size:
                return {"note": None}  # somebody else signed meanwhile: prove from there
            _check_grown(guard, note, last, head, asked)
        keys = [parse_verifier_key(vkey) for vkey in asked.vkeys]
        if not all(key.name == head.origin and self._keys.has(key) for key in keys):
            self._refuse_keys()
        signed = self._keys.sign(head, keys, lambda _: ())
        guard.write(signed)
        return {"note": signed.decode()}


def _check_grown(guard: Guard, note: bytes, last: TreeHead, head: TreeHead, asked: Sign) -> None:
    """That the log that is to be signed begins with the one that was."""
    try:
        if last.size == 0:
            return
        proof = [bytes.fromhex(one) for one in asked.proof]
        check_consistency(last.size, head.size, last.root, head.root, proof)
    except IntegrityViolation as error:
        finding = "tail_removed" if head.size < last.size else "fork"
        evidence = {
            "finding": finding,
            "found": {"origin": head.origin, "root": head.root.hex(), "size": head.size},
            "proof": list(asked.proof),
            "signed": note.decode(),
            "v": 1,
        }
        name = f"{finding}-{head.size}-{head.root.hex()[:16]}.json"
        guard.keep_evidence(name, encode_restricted(evidence) + b"\n")
        raise IntegrityViolation(
            f"the signer signed {last.size:,} entries of {head.origin}, and what it is to sign "
            f"now ({head.size:,} entries) is not the same log grown: {error.message}",
            hint="It may be an older copy, or one that was rewritten. The signer keeps the "
            "evidence. Recording goes on.",
        ) from None
