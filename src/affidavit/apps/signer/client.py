"""The ledger's side: asking a signer, and telling which keys are there and which are here."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from affidavit.apps.signer.messages import HasKey, Last, MakeKey, Sign, raise_error, receive, send
from affidavit.apps.signing_files import KeyFolder
from affidavit.core.checkpoint import TreeHead, parse_checkpoint
from affidavit.core.note import UnverifiedNote, VerifierKey, parse_note, parse_verifier_key
from affidavit.errors import StoreError
from affidavit.ledger.ports import ProveGrowth

_TRIES: Final = 20


class RemoteSigner:
    """A signer of another user, behind a Unix socket."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, key: VerifierKey) -> bool:
        """Whether the signer has this key."""
        found: bool = self._ask(HasKey(str(key)), "has", bool)
        return found

    def make(self, origin: str) -> VerifierKey:
        """A new key that never leaves the signer."""
        return parse_verifier_key(self._ask(MakeKey(origin), "vkey", str))

    def sign(self, head: TreeHead, keys: Sequence[VerifierKey], prove: ProveGrowth) -> bytes:
        """The checkpoint, once the signer has seen that the log only grew."""
        for _ in range(_TRIES):
            last = self._ask(Last(head.origin), "note", str | None)
            old_size = 0 if last is None else parse_checkpoint(last.encode()).claims.size
            proof = prove(old_size) if 0 < old_size <= head.size else ()
            question = Sign(
                head.origin,
                head.size,
                head.root.hex(),
                old_size,
                tuple(digest.hex() for digest in proof),
                tuple(map(str, keys)),
            )
            note: str | None = self._ask(question, "note", str | None)
            if note is not None:
                return note.encode()
        raise StoreError("the signer signs for others all the time", hint="Try again.")

    def _ask(self, question: Any, name: str, type_: Any) -> Any:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(5.0)
                connection.connect(str(self._path))
                send(connection, question)
                answer = msgspec.json.decode(receive(connection, 30.0))
            if "error" in answer:
                raise_error(answer["error"])
            return msgspec.convert(answer[name], type_)
        except (OSError, EOFError, KeyError, TypeError, msgspec.MsgspecError) as error:
            raise StoreError(
                f"the signer at {self._path} does not answer as one does "
                f"({error or type(error).__name__})",
                hint="Is it running, and is this user on its list (`affidavit signer --allow`)? "
                "Recording goes on.",
            ) from None


class SplitSigners:
    """Keys with a signer, and those that are still in this user's own folder.

    New keys are made by the signer; so a ledger moves to it by `key add` and then `key retire`.
    """

    def __init__(self, remote: RemoteSigner, local: KeyFolder) -> None:
        self._remote = remote
        self._local = local

    def has(self, key: VerifierKey) -> bool:
        """Whether the key is here or there."""
        return self._local.has(key) or self._remote.has(key)

    def make(self, origin: str) -> VerifierKey:
        """A new key, with the signer."""
        return self._remote.make(origin)

    def sign(self, head: TreeHead, keys: Sequence[VerifierKey], prove: ProveGrowth) -> bytes:
        """The checkpoint with the signatures of both sides, in the order of the keys."""
        here = [key for key in keys if self._local.has(key)]
        there = [key for key in keys if key not in here]
        notes: list[UnverifiedNote] = []
        if there:  # first: it may refuse
            notes.append(parse_note(self._remote.sign(head, there, prove)))
        if here:
            notes.append(parse_note(self._local.sign(head, here, prove)))
        lines = {(one.name, one.key_id): one for note in notes for one in note.signatures}
        ordered = tuple(lines[key.name, key.id] for key in keys if (key.name, key.id) in lines)
        return UnverifiedNote(notes[0].text, ordered).encode()
