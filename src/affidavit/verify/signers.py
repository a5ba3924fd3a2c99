"""What a log says of its own name and keys, against the checkpoint that covers it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from affidavit.core.bundle import CHECKPOINT, Scope
from affidavit.core.checkpoint import TreeHead
from affidavit.core.entry import Entry
from affidavit.core.identity import derive_identity
from affidavit.verify.findings import Findings

_CHANGES: Final = ("origin.changed", "key.added", "key.retired")


class SignerCheck:
    """Follows the entries that say who signs, and under which name."""

    def __init__(self, head: TreeHead, vouchers: Collection[str], findings: Findings) -> None:
        self._head = head
        self._vouchers = vouchers
        self._findings = findings
        self._first: Entry | None = None
        self._changes: list[tuple[int, Entry]] = []
        self._count = 0

    def follow(self, index: int, entry: Entry) -> None:
        """The next entry: no key may have signed on behind its own end."""
        self._count += 1
        if index == 0 and entry.kind == "ledger.created":
            self._first = entry
        if entry.kind not in _CHANGES:
            return
        self._changes.append((index, entry))
        if entry.kind == "key.retired" and f"key {entry.body['vkey']}" in self._vouchers:
            size = self._head.size
            said = f"a key signed {size:,} entries, and the log says here that it signs no more"
            self._findings.add("signature_bad", index, CHECKPOINT, said)

    def finish(self, scope: Scope) -> None:
        """That a log that is there as a whole goes by the name it is signed under."""
        size = self._head.size
        if scope != Scope("range", f"0:{size}") or self._count != size or self._first is None:
            return
        origin = derive_identity(self._first, self._changes).origin
        if origin != self._head.origin:
            said = f"the log goes by the name {origin!r:.100}"
            self._findings.add("signature_bad", None, CHECKPOINT, said)
