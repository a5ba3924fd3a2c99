"""Puts a ledger together: the only place that picks the store, the clock and the ids."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from affidavit.apps import places
from affidavit.apps.erasure_files import ErasureFolder
from affidavit.apps.published_folder import PublishedFolders
from affidavit.apps.signing_files import GuardFolder, KeyFolder
from affidavit.apps.verifying import VerifyingProcesses
from affidavit.core.checkpoint import UnverifiedCheckpoint, parse_checkpoint
from affidavit.core.entry import SALT_BYTES, Entry, Source, encode_entry
from affidavit.core.moment import AT_US_MAX
from affidavit.core.names import NOTE_BYTES_MAX, check_text, quoted
from affidavit.errors import AffidavitError, InputError, IntegrityViolation, invalid
from affidavit.ledger import sessions
from affidavit.ledger.context import Context
from affidavit.ledger.erasing import finish_erasures, is_unfinished
from affidavit.ledger.inputs import read_bool, read_callable, read_id
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.ports import Clock, Signers, Store, Writer
from affidavit.ledger.settings import (
    Value,
    change_settings,
    check_settings,
    initial_settings,
    read_settings,
)
from affidavit.stores.sqlite import connection, files, registry
from affidavit.verify.ports import LedgerSource

# What the store needs, for those who examine a place.
check_sqlite = connection.check_sqlite
find_network_filesystem = files.find_network_filesystem
# Whether this process has a file open as a ledger: then nobody else here may open it.
is_open = registry.is_open

UNREADABLE = "(unreadable)"
_IN_ORIGIN = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
_HOUR_US = 3_600_000_000
# RFC 9562: the two top bits of this digit are 10.
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
_UUIDS_AT_ONCE: Final = 256
_UUIDS: Final[list[str]] = []
# What was drawn is the parent's: a child must not give the same.
os.register_at_fork(after_in_child=_UUIDS.clear)


def open_ledger(
    location: str | os.PathLike[str],
    *,
    readonly: bool = False,
    create: bool = True,
    settings: Mapping[str, Value] | None = None,
    clock: Clock | None = None,
    id_fn: Callable[[], str] | None = None,
    source: Source | None = None,
    signs_at_close: bool = False,
    project_root: str | os.PathLike[str] | None = None,
) -> Ledger:
    """Open the ledger at a path, or make it; the edges say in `source` how facts come in."""
    path = _path(location)
    readonly, create = read_bool(readonly, "readonly"), read_bool(create, "create")
    wanted = check_settings({} if settings is None else settings)
    given_clock, given_ids = read_callable(clock, "clock"), read_callable(id_fn, "id_fn")
    clock = now_us if given_clock is None else _checked_clock(given_clock)
    new_id = new_uuid if given_ids is None else _checked_ids(given_ids)
    src, root = source or Source(), _root(project_root)
    if network := files.find_network_filesystem(path):
        warnings.warn(
            f"{path} is on a network filesystem ({network}): SQLite's locks are not safe there, "
            "records may be lost; keep the ledger on a local disk",
            RuntimeWarning,
            stacklevel=3,
        )
    # Minted before there is a file, so that a bad id or clock leaves none behind.
    fresh = None if files.exists(path) or path == files.MEMORY else _mint(new_id, clock)
    store = registry.open_store(path, readonly=readonly, create=create)
    try:
        ledger_id = _read_id(store) or _create(store, wanted, clock, fresh or new_id(), src)
        context = Context(
            store,
            ledger_id,
            src,
            clock,
            new_id,
            new_salt,
            _find_signers(),
            GuardFolder(places.state_folder),
            PublishedFolders(),
            VerifyingProcesses(),
            ErasureFolder(places.state_folder),
            signs_at_close,
            project_root=root,
        )
        if ledger_id == UNREADABLE:
            _refuse_damaged(store)
        else:
            _apply(context, wanted)
            _end_idle_sessions(context)
            if readonly:
                _tell_of_erasures(context)
            else:
                finish_erasures(context)
    except BaseException:
        registry.close_store(store)
        raise
    return Ledger(context, lambda: registry.close_store(store))


def _tell_of_erasures(context: Context) -> None:
    """Who only reads cannot take out what was erased; what cannot be told stops no reader."""
    with suppress(AffidavitError):
        if is_unfinished(context):
            warnings.warn(
                f"erased texts are in this file, still or again: {context.store.location}; "
                "open it once for writing, and they go",
                RuntimeWarning,
                stacklevel=4,
            )


def _find_signers() -> Signers:
    """Who signs: this user's own keys, and a signer of another user where one is configured."""
    own = KeyFolder(places.keys_folder, new_salt)
    socket = places.signer_socket()
    if socket is None:
        return own
    from affidavit.apps.signer.client import (  # noqa: PLC0415 - few have one
        RemoteSigner,
        SplitSigners,
    )

    return SplitSigners(RemoteSigner(socket), own)


def last_signed(origin: str) -> UnverifiedCheckpoint | None:
    """What this user last signed under a name, if that can be read."""
    try:
        return parse_checkpoint(GuardFolder(places.state_folder).look(origin) or b"")
    except AffidavitError:
        return None


@contextmanager
def open_audit(location: str) -> Iterator[LedgerSource]:
    """A ledger's file as a verifier reads it."""
    store = registry.open_store(location, readonly=True, create=False)
    try:
        with store.audit() as source:
            yield source
    finally:
        registry.close_store(store)


def _root(given: Any) -> str:
    """What paths in callers' JSON are stored relative to."""
    if given is None:
        return str(Path.cwd())
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise invalid("project_root", f"is {type(given).__name__}, not a path")
    return str(Path(given).expanduser().absolute())


def _mint(new_id: Callable[[], str], clock: Clock) -> str:
    clock()
    return new_id()


def _path(location: Any) -> str:
    if not isinstance(location, str | os.PathLike):
        raise invalid("path", f"is {type(location).__name__}, not a path")
    path = os.fspath(location)
    if not isinstance(path, str):
        raise invalid("path", "is bytes, not text")
    check_text(path, "path", NOTE_BYTES_MAX)
    if path != files.MEMORY and "://" in path:
        raise InputError(
            f"path: {path.partition('://')[0]!r:.40} is not a kind of ledger this version knows",
            hint="Give the path of a file, or ':memory:'.",
            field="path",
        )
    try:
        return path if path == files.MEMORY else str(Path(path).expanduser())
    except RuntimeError as error:  # ~somebody who does not exist
        raise invalid("path", str(error)) from None


def _read_id(store: Store) -> str | None:
    """The id in the first entry; None for a ledger that has none yet.

    A damaged first entry stops writing, but not a reader: it is what verification must tell of.
    """
    with store.read() as reader:
        try:
            if reader.size() == 0:
                return UNREADABLE if store.readonly or reader.has_views() else None
            created = reader.entry(0)
        except IntegrityViolation:
            return UNREADABLE
    return str(created.body["ledger_id"]) if created.kind == "ledger.created" else UNREADABLE


def _create(
    store: Store, wanted: Mapping[str, Value], clock: Clock, fresh: str, src: Source
) -> str:
    """Write the first entry; another process may have been faster."""
    # An origin is a URL without a scheme, and a caller's ids may be anything.
    name = fresh if _IN_ORIGIN.match(fresh) else new_uuid()

    def unit(tx: Writer) -> str:
        if tx.size() > 0:
            return str(tx.entry(0).body["ledger_id"])
        body = {
            "ledger_id": fresh,
            "origin": f"affidavit.local/{name}",
            "settings": initial_settings(wanted),
        }
        tx.append(encode_entry(*Entry(tx.at, "ledger.created", body, src)), None)
        return fresh

    return store.write(unit, clock)


def _refuse_damaged(store: Store) -> None:
    if not store.readonly:
        raise IntegrityViolation(
            f"{store.location} does not begin as a ledger does",
            hint="Keep the file as it is and run `affidavit verify`; nothing was written.",
        )


def _apply(context: Context, wanted: Mapping[str, Value]) -> None:
    """Record the settings asked for that are not in force."""
    if not wanted:
        return
    with context.store.read() as reader:
        now = read_settings(reader)
    if any(now[name] != value for name, value in wanted.items()):
        context.store.write(
            lambda tx: change_settings(tx, wanted, None, context.src), context.clock
        )


def _end_idle_sessions(context: Context) -> None:
    if context.store.readonly:
        return
    with context.store.read() as reader:
        hours = int(read_settings(reader)["session_idle_hours"])
        limit = context.clock() - hours * _HOUR_US
        idle = reader.idle_sessions(limit)
    if idle:
        context.store.write(
            lambda tx: sessions.end_idle_sessions(tx, limit, context.src), context.clock
        )


def now_us() -> int:
    """The machine's clock in microseconds."""
    return time.time_ns() // 1000


def new_uuid() -> str:
    """A fresh UUID version 4.

    Drawn many at once: every look at the system's randomness costs a call of the kernel, and lets
    the other threads in between.
    """
    try:
        return _UUIDS.pop()
    except IndexError:
        drawn = os.urandom(16 * _UUIDS_AT_ONCE).hex()
        _UUIDS.extend(_format_uuid(drawn[at : at + 32]) for at in range(32, len(drawn), 32))
        return _format_uuid(drawn[:32])


def _format_uuid(digits: str) -> str:
    variant = _VARIANT[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _checked_ids(id_fn: Callable[[], str]) -> Callable[[], str]:
    return lambda: read_id(id_fn())


def _checked_clock(clock: Clock) -> Clock:
    def now() -> int:
        at_us = clock()
        if type(at_us) is not int or not 0 <= at_us <= AT_US_MAX:
            raise invalid("clock", f"{quoted(at_us, 40)} is not integer microseconds since 1970")
        return at_us

    return now


def new_salt() -> bytes:
    """Fresh randomness for a commitment."""
    return os.urandom(SALT_BYTES)
