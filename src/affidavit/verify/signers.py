"""What a log says of its own name and keys, against the checkpoint that covers it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from affidavit.core.bundle import CHECKPOINT, Scope
from affidavit.core.checkpoint import TreeHead
from affidavit.core.entry import Entry
from affidavit.core.identity import derive_identity
from affidavit.verify.findings import Findings

_CHANGES: Final = ("origin.changed", "key.added", "key.retired")

Entries = Mapping[int, tuple[bytes, Entry]]


def check_signers(
    entries: Entries, head: TreeHead, vouchers: Collection[str], findings: Findings
) -> None:
    """That no key signed on behind its own end."""
    for index, (_, entry) in entries.items():
        if entry.kind == "key.retired" and f"key {entry.body['vkey']}" in vouchers:
            said = (
                f"a key signed {head.size:,} entries, and the log says here that it signs no more"
            )
            findings.add("signature_bad", index, CHECKPOINT, said)


def check_name(entries: Entries, scope: Scope, head: TreeHead, findings: Findings) -> None:
    """That a log that is there as a whole goes by the name it is signed under."""
    if scope != Scope("range", f"0:{head.size}") or len(entries) != head.size:
        return
    changes = [(index, entry) for index, (_, entry) in entries.items() if entry.kind in _CHANGES]
    if entries[0][1].kind == "ledger.created":
        origin = derive_identity(entries[0][1], changes).origin
        if origin != head.origin:
            said = f"the log goes by the name {origin!r:.100}"
            findings.add("signature_bad", None, CHECKPOINT, said)
