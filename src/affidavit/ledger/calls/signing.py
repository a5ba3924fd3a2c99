"""Signing checkpoints, the keys that do it, and publishing what is signed."""

from __future__ import annotations

from affidavit.core.checkpoint import Checkpoint
from affidavit.ledger import checkpoints, keys, publishing, results
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, AddKey, Publish, Recover, RetireKey, read_input
from affidavit.ledger.results import Key, Published, SignedCheckpoint


class Signing(Handle):
    """Calls about checkpoints and keys; they are for the ledger's owner, never tools for agents."""

    def checkpoint(self) -> SignedCheckpoint:
        """Sign the log as it is committed; the first time, a key is made."""
        return _describe(checkpoints.checkpoint(self._context))

    def last_checkpoint(self) -> int | None:
        """How large the log was when this machine last signed it; None where it never did."""
        if not self._read(keys.read_identity).spans:
            return None
        return checkpoints.last_signed_size(self._context) or None

    def publish(self, place: str = REQUIRED) -> Published:
        """Publish the log in a folder, as tiles anybody can check; a checkpoint is signed first."""
        given = read_input(Publish, {"place": place})
        return publishing.publish(self._context, given.place)

    def list_keys(self) -> list[Key]:
        """Every key of the log's present name, oldest first."""
        context = self._context
        spans = self._read(keys.read_identity).spans
        return [
            results.key(key, span.added, span.retired, here=context.keys.has(key))
            for key, span in spans.items()
        ]

    def add_key(self, *, by: str | None = None, reason: str | None = None) -> Key:
        """Add a key beside the present one; the next checkpoint, signed at once, carries both."""
        context = self._context
        given = read_input(AddKey, {"by": by, "reason": reason})
        checkpoints.checkpoint(context)
        added = keys.add_key(context, keys.said(context, given.by, given.reason))
        checkpoints.checkpoint(context)
        return self._key(str(added))

    def retire_key(
        self, vkey: str = REQUIRED, *, by: str | None = None, reason: str | None = None
    ) -> Key:
        """Let a key sign no more, once another has signed together with it."""
        context = self._context
        given = read_input(RetireKey, {"vkey": vkey, "by": by, "reason": reason})
        size = checkpoints.signed_size(context)
        said = keys.said(context, given.by, given.reason)
        keys.retire_key(context, given.vkey, size, said)
        return self._key(given.vkey)

    def recover(self, how: str = REQUIRED, *, reason: str | None = None) -> SignedCheckpoint:
        """Sign again after a person decided: `adopt` this copy, or go on under a `new-origin`."""
        given = read_input(Recover, {"how": how, "reason": reason})
        said = keys.said(self._context, None, given.reason)
        go_on = checkpoints.adopt if given.how == "adopt" else checkpoints.change_origin
        return _describe(go_on(self._context, said))

    def _key(self, vkey: str) -> Key:
        return next(key for key in self.list_keys() if key.vkey == vkey)


def _describe(found: Checkpoint) -> SignedCheckpoint:
    head = found.head
    note = found.note.encode().decode()
    return SignedCheckpoint(head.origin, head.size, head.root.hex(), note)
