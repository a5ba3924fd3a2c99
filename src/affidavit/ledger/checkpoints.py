"""Signing checkpoints of the committed log, and refusing to sign a second history.

What was last signed under an origin is remembered outside of the ledger, by a guard. While it is
held (one process of this user at a time, never inside a database transaction):

    read the committed head again      a slow process beside a fast one is no rollback
    head smaller than the guard's, or another root at its size: evidence is kept, nothing is signed
    head as the guard's                the guard's own note is the answer
    otherwise                          sign, have the guard on disk, and only then hand the note out

A ledger that has a key but no guard here is not signed either, until a person decides (`recover`).
That this is told without a table of checkpoints rests on one order: the first guard is on disk
before `key.added` is written. Recording never asks any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from affidavit.core.canonical import encode_restricted
from affidavit.core.checkpoint import (
    Checkpoint,
    TreeHead,
    check_checkpoint,
    parse_checkpoint,
)
from affidavit.core.entry import Entry, encode_entry
from affidavit.core.identity import Identity
from affidavit.core.merkle import Digest, prove_consistency, read_root
from affidavit.core.note import VerifierKey
from affidavit.core.views.payload import NO_PAYLOAD
from affidavit.core.views.signing import origin_row
from affidavit.errors import (
    AffidavitError,
    CannotVerify,
    ConflictError,
    InputError,
    IntegrityViolation,
    invalid,
)
from affidavit.ledger.context import Context
from affidavit.ledger.keys import (
    Said,
    check_origin,
    check_signers,
    committed,
    make_key,
    read_identity,
    write_key,
)
from affidavit.ledger.ports import Guard, Reader, Writer
from affidavit.ledger.redaction import noted

_NOBODY = Said(None, NO_PAYLOAD)
_KEY_ADDED: Final = b'"kind":"key.added"'


class Position(NamedTuple):
    """Where the committed log stands, and, where a guard claims a size, its root there."""

    identity: Identity
    head: TreeHead
    root_there: bytes | None


def checkpoint(context: Context, *, patient: bool = True) -> Checkpoint:
    """Sign the committed head, or answer with the newest note where nothing was added."""
    if not context.store.readonly:
        context.store.flush()  # what calls left behind is signed with what they did
    while True:
        with context.store.read() as reader:
            origin = read_identity(reader).origin
        with context.guards.hold(origin, patient=patient) as guard:
            found = _sign(context, guard, origin)
        if found is not None:
            return found


def sign_if_keyed(context: Context) -> str | None:
    """Sign where the ledger has a key; the facts stand all the same, so this never fails.

    Answers with why nothing was signed, where it should have been.
    """
    if context.store.readonly:
        return None
    try:
        with context.store.read() as reader:
            if not read_identity(reader).spans:
                return None
        checkpoint(context, patient=False)
    except AffidavitError as error:
        return f"recorded, but not signed: {error.message}"
    return None


def signed_size(context: Context) -> int:
    """How large the log was when this machine last signed it."""
    with context.store.read() as reader:
        origin = read_identity(reader).origin
    with context.guards.hold(origin) as guard:
        claims = _read_guard(guard, origin)
    return 0 if claims is None else claims.size


def last_signed_size(context: Context) -> int:
    """The same at a glance: without waiting for who is signing, and without leaving a trace."""
    with context.store.read() as reader:
        origin = read_identity(reader).origin
    claims = _read_claims(context.guards.look(origin), origin)
    return 0 if claims is None else claims.size


def _sign(context: Context, guard: Guard, origin: str) -> Checkpoint | None:
    """The checkpoint; None where the log got its first key, or another name: look again."""
    claims = _read_guard(guard, origin)
    now = _look(context, claims)
    if now.identity.origin != origin:
        return None
    _check_grown(context, guard, claims, now)
    if not now.identity.spans:
        _add_first_key(context, guard, claims, now.head)
        return None
    if claims is None:
        raise ConflictError(
            f"nothing here remembers what was last signed for {origin}; nothing is signed",
            code="ERR_GUARD_MISSING",
            hint="If this is the newest copy of the ledger: `affidavit recover --adopt`. If it may "
            "be an older or a second one: `affidavit recover --new-origin`. Recording goes on.",
            origin=origin,
        )
    return _sign_head(context, guard, claims, now)


def _sign_head(
    context: Context, guard: Guard, claims: TreeHead | None, now: Position
) -> Checkpoint:
    keys = now.identity.keys
    check_signers(context, keys)
    if claims == now.head and (note := guard.read()) is not None:
        return check_checkpoint(parse_checkpoint(note), keys)
    note = _sign_by(context, now.head, keys)
    guard.write(note)
    return Checkpoint(now.head, parse_checkpoint(note).note)


def _sign_by(context: Context, head: TreeHead, keys: Sequence[VerifierKey]) -> bytes:
    """The note of these keys over this head; who signs may be another process, so it is read."""

    def prove(old_size: int) -> list[Digest]:
        with context.store.read() as reader:
            return prove_consistency(old_size, head.size, LogTree(reader))

    note = context.keys.sign(head, keys, prove)
    signed = check_checkpoint(parse_checkpoint(note), keys)
    if signed.head != head or len(signed.note.signatures) != len(keys):
        raise IntegrityViolation(
            f"what signs for {head.origin} signed something else than it was asked to",
            asked={"root": head.root.hex(), "size": head.size},
            signed=note.decode()[:2000],
        )
    return note


def _read_guard(guard: Guard, origin: str) -> TreeHead | None:
    return _read_claims(guard.read(), origin)


def _read_claims(note: bytes | None, origin: str) -> TreeHead | None:
    if note is None:
        return None
    try:
        claims = parse_checkpoint(note).claims
    except InputError as error:
        raise CannotVerify(
            f"the guard of {origin} cannot be read ({error.message}); nothing is signed",
            hint="Put it back from a copy of the state folder, or take it away and run "
            "`affidavit recover`. Recording goes on.",
        ) from None
    if claims.origin != origin:
        raise CannotVerify(
            f"the guard of {origin} holds a checkpoint of {claims.origin}; nothing is signed",
            hint="Put the right one back from a copy of the state folder. Recording goes on.",
        )
    return claims


def _look(context: Context, claims: TreeHead | None) -> Position:
    with context.store.read() as reader:
        identity, size = read_identity(reader), reader.size()
        head = TreeHead(identity.origin, size, read_root(size, LogTree(reader)))
        there = None
        if claims is not None and claims.size <= size:
            there = read_root(claims.size, LogTree(reader))
        return Position(identity, head, there)


class LogTree:
    """The log's tree as a prover reads it."""

    def __init__(self, reader: Reader) -> None:
        self.read_hashes = reader.read_log_nodes


def _check_grown(context: Context, guard: Guard, claims: TreeHead | None, now: Position) -> None:
    """That the log still begins as it was when this machine last signed it."""
    if claims is None or now.root_there == claims.root:
        return
    finding = "tail_removed" if now.root_there is None else "fork"
    head = now.head
    evidence = {
        "finding": finding,
        "found": {"origin": head.origin, "root": head.root.hex(), "size": head.size},
        # A path may hold bytes that are no text.
        "ledger": context.store.location.encode(errors="backslashreplace").decode(),
        "signed": (guard.read() or b"").decode(),
        "v": 1,
    }
    name = f"{finding}-{head.size}-{head.root.hex()[:16]}.json"
    place = guard.keep_evidence(name, encode_restricted(evidence) + b"\n")
    said = f"it has {head.size:,} entries" if finding == "tail_removed" else "its history differs"
    raise IntegrityViolation(
        f"a checkpoint of {claims.size:,} entries was signed here for {head.origin}, and this "
        f"ledger is not what it was then: {said}; nothing is signed",
        hint="It may be an older copy put back, or a second one. Find the newest copy, or go on "
        "under another name with `affidavit recover --new-origin`. Recording goes on.",
        finding=finding,
        evidence=place,
        signed_size=claims.size,
        size=head.size,
    )


def _add_first_key(context: Context, guard: Guard, claims: TreeHead | None, head: TreeHead) -> None:
    """Make the ledger's first key. Key, guard, entry: a kill in between leaves none too many."""
    _check_no_key(context)
    key = make_key(context, head.origin)
    if claims is None:
        guard.write(_sign_by(context, head, [key]))

    def unit(tx: Writer) -> None:
        identity = read_identity(tx)
        # Another user of the same file may have been faster.
        if identity.origin == key.name and not identity.spans:
            write_key(tx, "key.added", key, _NOBODY, context.src)

    context.store.write(unit, context.clock)


def _check_no_key(context: Context) -> None:
    """That the log itself names no key: a view somebody emptied must not lead to a second one."""
    with context.store.read() as reader:
        for index, entry in reader.entries(0, reader.size()):
            if _KEY_ADDED in entry:
                raise IntegrityViolation(
                    f"entry {index} adds a key that no view shows; nothing is signed",
                    hint="`affidavit verify` says more; `affidavit rebuild` puts views right.",
                    index=index,
                )


def adopt(context: Context, why: Said) -> Checkpoint:
    """Go on from the log as it is here, where no guard is left to say otherwise."""
    with context.store.read() as reader:
        origin = read_identity(reader).origin
    with context.guards.hold(origin) as guard:
        claims = _read_guard(guard, origin)
        now = _look(context, claims)
        _check_grown(context, guard, claims, now)
        if claims is not None or not now.identity.spans or now.identity.origin != origin:
            raise invalid(
                "how",
                f"there is nothing to adopt: {origin} can be signed as it is",
                hint="`affidavit checkpoint` signs it.",
            )
        check_signers(context, now.identity.keys)
        context.store.write(
            lambda tx: _write_origin(context, tx, now.head, origin, why), context.clock
        )
        return _sign_head(context, guard, None, _look(context, None))


def change_origin(context: Context, why: Said) -> Checkpoint:
    """Go on as another log, with a name and a key of its own; what was signed stays signed."""
    with context.store.read() as reader:
        old_origin = read_identity(reader).origin
    # Nobody may come to the same name by himself, not even with a copy of this ledger.
    origin = f"affidavit.local/{context.new_salt().hex()[:32]}"
    with context.guards.hold(old_origin) as guard:
        now = _look(context, None)
        last = _last_signed(guard, old_origin) or now.head
        key = make_key(context, origin)
        with context.guards.hold(origin) as fresh:
            fresh.write(_sign_by(context, now.head._replace(origin=origin), [key]))

        def unit(tx: Writer) -> None:
            check_origin(tx, old_origin)
            _write_origin(context, tx, last, origin, why)
            write_key(tx, "key.added", key, _NOBODY, context.src)

        context.store.write(unit, context.clock)
    return checkpoint(context)


def _last_signed(guard: Guard, origin: str) -> TreeHead | None:
    try:
        return _read_guard(guard, origin)
    except CannotVerify:
        return None


def _write_origin(context: Context, tx: Writer, last: TreeHead, origin: str, why: Said) -> None:
    body = {
        "old_origin": last.origin,
        "old_size": last.size,
        "old_root": last.root.hex(),
        "origin": origin,
        "reason": committed(why.reason),
        **noted(why.removed),
    }
    entry = Entry(tx.at, "origin.changed", body, context.src)
    tx.append(encode_entry(*entry), origin_row(tx.size(), entry, why.reason))
