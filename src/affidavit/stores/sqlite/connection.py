"""Connections: how one is opened, what it promises, and how long it waits for others."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from affidavit.core.views import TABLES
from affidavit.errors import IntegrityViolation, StoreError
from affidavit.stores.sqlite import failures, files
from affidavit.stores.sqlite.files import MEMORY
from affidavit.stores.sqlite.queries import load_migrations

APPLICATION_ID: Final = 0x41464456  # "AFDV"
SQLITE_MIN: Final = (3, 37, 0)
LOCK_WAIT_S: Final = 30.0
# One checkpoint for about 40 MB of log: measured 1.1 to 1.4 times the rate of SQLite's default.
CHECKPOINT_PAGES: Final = 10_000
# Of the writing connection. A record goes into indices at random places: with SQLite's default of
# 2 MB most of these pages are read again and again, measured 1.1 to 1.2 times slower.
WRITER_CACHE_KIB: Final = 16_384
# What is read as rows, and how SQL says that something would run instead.
_READ: Final = frozenset(("log", "merkle_nodes", "idempotency_keys", *TABLES.values()))
_COMPUTES: Final = re.compile(r"\b(VIRTUAL|GENERATED)\b|\bAS\s*\(", re.IGNORECASE)
_TABLE: Final = re.compile(r"^CREATE TABLE ", re.MULTILINE)


def check_sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """Refuse an SQLite too old for STRICT tables."""
    if version < SQLITE_MIN:
        have, need = ".".join(map(str, version)), ".".join(map(str, SQLITE_MIN))
        raise StoreError(
            f"this Python carries SQLite {have}; {need} or newer is needed",
            hint="Use a newer Python, or one built against a newer SQLite.",
        )


def open_connection(
    path: str, *, readonly: bool, factory: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """Open a connection with this store's settings; the file must exist."""
    check_sqlite()
    try:
        if path == MEMORY:
            connection = _connect(MEMORY, uri=False, factory=factory)
        else:
            # As bytes: a folder's name need not be text.
            name = f"file:{quote(os.fsencode(path))}?{_mode(path, readonly=readonly)}"
            connection = _connect(name, uri=True, factory=factory)
        try:
            _prepare(connection, readonly=readonly)
        except BaseException:
            connection.close()
            raise
    except OSError as error:
        raise failures.unavailable(path, error) from None
    except failures.RAISED as error:
        raise failures.translate(error, path) from None
    return connection


def _mode(path: str, *, readonly: bool) -> str:
    """How to open; on a read-only disk no -shm can be made, and nobody can be writing.

    Unless the disk is read-only for this process alone. Then the writer has a -wal, as it has
    where a disk was taken away from one: it holds the newest facts and must be read.
    """
    if not readonly:
        return "mode=rw"
    still = os.statvfs(path).f_flag & os.ST_RDONLY and not files.exists(f"{path}-wal")
    return "mode=ro&immutable=1" if still else "mode=ro"


def _connect(name: str, *, uri: bool, factory: type[sqlite3.Connection]) -> sqlite3.Connection:
    return sqlite3.connect(
        name,
        uri=uri,
        factory=factory,
        isolation_level=None,
        check_same_thread=False,
        timeout=LOCK_WAIT_S,
        cached_statements=256,
    )


def _prepare(connection: sqlite3.Connection, *, readonly: bool) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA secure_delete = ON")
    # FULL: every commit waits for the disk. That is what "acknowledged means durable" rests on.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    if sys.platform == "darwin":
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
    if readonly:
        _stand_in(connection)
        connection.execute("PRAGMA query_only = ON")


def _stand_in(connection: sqlite3.Connection) -> None:
    """Tables that an older file lacks: empty, for this connection alone; only a writer may migrate.

    What a file says of its version is checked elsewhere; here any number is as good as another.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > 0:
        for step in load_migrations()[version:]:
            for statement in split_script(step):
                if made := _TABLE.search(statement):
                    connection.execute(f"CREATE TEMP TABLE {statement[made.end() :]}")


def check_is_ledger(connection: sqlite3.Connection, path: str) -> int:
    """The schema version of a ledger; 0 for an empty file. Anything else is refused, unchanged."""
    try:
        # One snapshot: another process may be making this file right now.
        connection.execute("BEGIN")
        try:
            tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            page_bytes = int(connection.execute("PRAGMA page_size").fetchone()[0])
            computing = _find_computing(connection)
        finally:
            connection.execute("ROLLBACK")
    except failures.RAISED as error:
        raise failures.translate(error, path) from None
    if application != APPLICATION_ID and (application or version or tables):
        raise failures.not_a_ledger(path, "it is a database of another program")
    if computing is not None:
        raise IntegrityViolation(
            f"{path}: {computing} is no plain table: to read it would run what somebody put there",
            hint="Nothing of the file was read. Ask where it came from; restore a backup.",
            finding="schema_changed",
        )
    if path != MEMORY and files.is_cut(path, page_bytes):
        if version == 0:
            raise failures.not_a_ledger(path, "it is not an SQLite database")
        raise failures.damaged(path, "it ends inside a page: something is cut off")
    if version > len(load_migrations()):
        raise StoreError(
            f"{path} was written by a newer affidavit (schema {version}, this one knows "
            f"{len(load_migrations())})",
            code="ERR_LEDGER_TOO_NEW",
            hint="Upgrade this affidavit; nothing was changed in the file.",
        )
    return version


def _find_computing(connection: sqlite3.Connection) -> str | None:
    """A name that must be a table and is a view, virtual, or has columns that are computed.

    A file may come from anybody: such a thing could keep a reader busy for ever.
    """
    rows = connection.execute("SELECT name, type, sql FROM sqlite_schema")
    for name, kind, sql in rows:
        if name in _READ and (kind != "table" or _COMPUTES.search(str(sql))):
            return str(name)
    return None


def migrate(
    connection: sqlite3.Connection, path: str, migrations: tuple[str, ...] | None = None
) -> None:
    """Bring the schema up to date, all of it or nothing; running it again changes nothing."""
    steps = load_migrations() if migrations is None else migrations
    try:
        if path != MEMORY:
            mode = patiently(connection, "PRAGMA journal_mode = WAL", path).fetchone()[0]
            if mode != "wal":
                raise StoreError(
                    f"{path} cannot use a write-ahead log (journal mode {mode})",
                    hint="Keep the ledger on a local disk that supports shared memory.",
                )
        if _is_up_to_date(connection, len(steps)):
            return
        begin_immediate(connection, path)
        try:
            done = int(connection.execute("PRAGMA user_version").fetchone()[0])
            for step in steps[done:]:
                for statement in split_script(step):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {max(done, len(steps))}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except failures.RAISED as error:
        raise failures.translate(error, path) from None


def _is_up_to_date(connection: sqlite3.Connection, version: int) -> bool:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    done = connection.execute("PRAGMA user_version").fetchone()[0]
    return bool(application == APPLICATION_ID and done >= version)


def split_script(script: str) -> list[str]:
    """The statements of a script, so that all of them can run in one transaction."""
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements


def begin_immediate(
    connection: sqlite3.Connection,
    path: str,
    since: float | None = None,
    before_waiting: Callable[[], None] | None = None,
) -> None:
    """Take the write lock; `since` is when the caller began to wait, in monotonic seconds."""
    patiently(connection, "BEGIN IMMEDIATE", path, since, before_waiting)


def patiently(
    connection: sqlite3.Connection,
    sql: str,
    path: str,
    since: float | None = None,
    before_waiting: Callable[[], None] | None = None,
) -> sqlite3.Cursor:
    """Run a statement that needs a lock, waiting with jitter.

    SQLite's own waiting is unfair to late comers, and does not happen for every statement.
    """
    deadline = (time.monotonic() if since is None else since) + LOCK_WAIT_S
    while True:
        try:
            return connection.execute(sql)
        except sqlite3.OperationalError as error:
            if not failures.is_busy(error) or time.monotonic() > deadline:
                raise failures.translate(error, path) from None
        if before_waiting is not None:
            before_waiting()
        time.sleep(random.uniform(0.0002, 0.004))  # noqa: S311 - jitter, not a secret
