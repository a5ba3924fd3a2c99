"""Puts a ledger together: the only place that picks the store, the clock and the ids."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from affidavit.core.entry import SALT_BYTES, Entry, Source, decode_entry, encode_entry
from affidavit.errors import InputError, invalid
from affidavit.ledger import sessions
from affidavit.ledger.context import Context
from affidavit.ledger.inputs import read_id
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.ports import Clock, Reader, Store, Writer
from affidavit.ledger.settings import (
    Value,
    change_settings,
    check_settings,
    initial_settings,
    read_settings,
)
from affidavit.stores.sqlite import files, registry

_HOUR_US = 3_600_000_000
# RFC 9562: the two top bits of this digit are 10.
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def open_ledger(
    location: str | os.PathLike[str],
    *,
    readonly: bool = False,
    create: bool = True,
    settings: Mapping[str, Value] | None = None,
    clock: Clock | None = None,
    id_fn: Callable[[], str] | None = None,
    source: Source | None = None,
) -> Ledger:
    """Open the ledger at a path, or make it; the edges say in `source` how facts come in."""
    path = _path(location)
    wanted = check_settings(settings or {})
    clock, new_id, src = clock or now_us, _checked(id_fn) if id_fn else new_uuid, source or Source()
    if network := files.find_network_filesystem(path):
        warnings.warn(
            f"{path} is on a network filesystem ({network}): SQLite's locks are not safe there, "
            "records may be lost; keep the ledger on a local disk",
            RuntimeWarning,
            stacklevel=3,
        )
    store = registry.open_store(path, readonly=readonly, create=create)
    try:
        ledger_id = _ledger_id(store, wanted, clock, new_id, src)
        context = Context(store, ledger_id, src, clock, new_id, new_salt)
        if not readonly:
            _end_idle_sessions(context)
    except BaseException:
        registry.close_store(store)
        raise
    return Ledger(context, lambda: registry.close_store(store))


def _path(location: Any) -> str:
    if not isinstance(location, str | os.PathLike):
        raise invalid("path", f"is {type(location).__name__}, not a path")
    path = os.fspath(location)
    if not isinstance(path, str):
        raise invalid("path", "is bytes, not text")
    if path != files.MEMORY and "://" in path:
        raise InputError(
            f"path: {path.partition('://')[0]!r:.40} is not a kind of ledger this version knows",
            hint="Give the path of a file, or ':memory:'.",
            field="path",
        )
    return path if path in (files.MEMORY, "") else str(Path(path).expanduser())


def _ledger_id(
    store: Store,
    wanted: Mapping[str, Value],
    clock: Clock,
    new_id: Callable[[], str],
    src: Source,
) -> str:
    """The id in the first entry, which this writes when the log is still empty."""

    def look(reader: Reader) -> tuple[str | None, dict[str, Value]]:
        if reader.size() == 0:
            return None, {}
        created = decode_entry(reader.entry(0))
        return created.body["ledger_id"], read_settings(reader)

    with store.read() as reader:
        found, now = look(reader)
    if found is not None and all(now[name] == value for name, value in wanted.items()):
        return found
    fresh = new_id()

    def unit(tx: Writer) -> str:
        if tx.size() > 0:
            change_settings(tx, wanted, None, src)
            return str(decode_entry(tx.entry(0)).body["ledger_id"])
        body = {
            "ledger_id": fresh,
            "origin": f"affidavit.local/{fresh}",
            "settings": initial_settings(wanted),
        }
        tx.append(encode_entry(*Entry(tx.at, "ledger.created", body, src)), None)
        return fresh

    return store.write(unit, clock)


def _end_idle_sessions(context: Context) -> None:
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
    """A fresh UUID version 4."""
    digits = os.urandom(16).hex()
    variant = _VARIANT[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _checked(id_fn: Callable[[], str]) -> Callable[[], str]:
    return lambda: read_id(id_fn())


def new_salt() -> bytes:
    """Fresh randomness for a commitment."""
    return os.urandom(SALT_BYTES)
