"""Under which name and keys a log signs: kept in the log itself, so that others can follow it.

A key is bound to the origin by its name. From `key.added` on, every checkpoint carries its
signature beside that of the others; from `key.retired` on it does not. So whoever knows one key of
the log is led to the next by a checkpoint that both signed. The secrets lie outside of the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from affidavit.core.entry import Entry, Source, commitment, encode_entry
from affidavit.core.identity import Identity, derive_identity
from affidavit.core.note import VerifierKey
from affidavit.core.redact import redact_text
from affidavit.core.views.payload import NO_PAYLOAD, Payload
from affidavit.core.views.signing import key_row
from affidavit.errors import ConflictError, invalid
from affidavit.ledger.context import Context
from affidavit.ledger.ports import Reader, Writer
from affidavit.ledger.redaction import noted
from affidavit.ledger.settings import read_settings


class Said(NamedTuple):
    """Who wants a change of keys, and why."""

    by: str | None
    reason: Payload
    removed: int = 0


def read_identity(reader: Reader) -> Identity:
    """The name and the keys of the log now."""
    return derive_identity(reader.entry(0), reader.identity_changes())


def check_origin(tx: Writer, origin: str) -> None:
    """That the log still has the name that a change was prepared for."""
    if read_identity(tx).origin != origin:
        raise ConflictError(
            f"the log does not go by the name {origin} any more",
            code="ERR_ORIGIN_CHANGED",
            hint="Somebody ran `affidavit recover` meanwhile; look, and try again.",
        )


def check_signers(context: Context, keys: Sequence[VerifierKey]) -> None:
    """That all keys that must sign can; without one of them nothing is signed."""
    for key in keys:
        if not context.keys.has(key):
            raise ConflictError(
                f"the ledger's key {key.name}+{key.id.hex()} is not on this machine, or not this "
                "user's; nothing is signed",
                code="ERR_KEY_MISSING",
                hint="Sign where the key is. If it is lost: `affidavit key retire`, where another "
                "key signs too, or `affidavit recover --new-origin`. Recording goes on.",
                vkey=str(key),
            )


def make_key(context: Context, origin: str) -> VerifierKey:
    """A fresh key, on disk before anything says that it exists."""
    if context.store.readonly:
        raise ConflictError(
            "the ledger is open for reading only, so no key can be made for it",
            code="ERR_READONLY",
            hint="Open it for writing.",
        )
    return context.keys.make(origin)


def write_key(tx: Writer, kind: str, key: VerifierKey, why: Said, src: Source) -> None:
    """Record `key.added` or `key.retired`."""
    body = {
        "vkey": str(key),
        "by": why.by,
        "reason": committed(why.reason),
        **noted(why.removed),
    }
    entry = Entry(tx.at, kind, body, src)
    tx.append(encode_entry(*entry), key_row(tx.size(), entry, why.reason))


def committed(payload: Payload) -> dict[str, object] | None:
    """What stands in a body for a reason."""
    if payload.text is None or payload.salt is None:
        return None
    return commitment(payload.salt, payload.text)


def said(context: Context, by: str | None, reason: str | None) -> Said:
    """What somebody says who decides, the reason with its salt."""
    if reason is None:
        return Said(by, NO_PAYLOAD)
    kept, removed = redact_text(reason)
    if removed:
        with context.store.read() as reader:
            if read_settings(reader)["redaction"] == "off":
                kept, removed = reason, 0
    return Said(by, Payload(kept, context.new_salt()), removed)


def add_key(context: Context, why: Said) -> VerifierKey:
    """A second key for the origin; from the next checkpoint on both sign."""
    with context.store.read() as reader:
        origin = read_identity(reader).origin
    key = make_key(context, origin)

    def unit(tx: Writer) -> None:
        check_origin(tx, origin)
        write_key(tx, "key.added", key, why, context.src)

    context.store.write(unit, context.clock)
    return key


def retire_key(context: Context, vkey: str, signed_size: int, why: Said) -> None:
    """Let a key sign no more; the others must have signed together with it before."""

    def unit(tx: Writer) -> None:
        spans = read_identity(tx).spans
        found = [key for key, span in spans.items() if span.retired is None and vkey == str(key)]
        if not found:
            raise invalid("vkey", f"{vkey!r:.200} is not a key that signs for this ledger")
        others = [span.added for key, span in spans.items() if key != found[0] and not span.retired]
        if not any(index < signed_size for index in others):
            raise invalid(
                "vkey",
                "no other key has signed a checkpoint together with this one",
                hint="Run `affidavit key add` first.",
            )
        write_key(tx, "key.retired", found[0], why, context.src)

    context.store.write(unit, context.clock)
