"""The store: one file, one writing connection per process, as many reading ones as are in use."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from affidavit.errors import AffidavitError, ConflictError, StoreError
from affidavit.ledger.ports import Clock, Writer
from affidavit.stores.sqlite import failures, files
from affidavit.stores.sqlite.audit import SqliteAudit
from affidavit.stores.sqlite.commits import CommitQueue, Request
from affidavit.stores.sqlite.connection import (
    begin_immediate,
    check_is_ledger,
    migrate,
    open_connection,
)
from affidavit.stores.sqlite.reading import SqliteReader
from affidavit.stores.sqlite.repair import SqliteRepairer
from affidavit.stores.sqlite.writing import SqliteWriter, Tips

T = TypeVar("T")


class SqliteStore:
    """A ledger in one SQLite file. Made by `registry.open_store`, one per file and process."""

    # Tests put a connection here that fails or dies at a chosen statement.
    connection_factory: type[sqlite3.Connection] = sqlite3.Connection

    def __init__(self, path: str, *, readonly: bool) -> None:
        self.location = path
        self.readonly = readonly
        # Held while the writing connection is used, replaced, or the process forks.
        self._lock = threading.RLock()
        self._queue = CommitQueue(self._run_batch)
        self._tips = Tips()
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._in_use = 0
        self._readers_gone = threading.Condition(self._lock)
        self._closed = False
        self.commit_count = 0
        self._open_first()

    def _open_first(self) -> None:
        connection = self._connect(readonly=self.readonly)
        try:
            version = check_is_ledger(connection, self.location)
            if not self.readonly:
                migrate(connection, self.location)
            elif version == 0:
                raise failures.not_a_ledger(self.location, "the file is empty")
        except BaseException:
            connection.close()
            raise
        if self.readonly:
            self._idle.append(connection)
        else:
            self._writer = self._for_writing(connection)

    def _connect(self, *, readonly: bool) -> sqlite3.Connection:
        return open_connection(self.location, readonly=readonly, factory=self.connection_factory)

    def _for_writing(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        # begin_immediate waits by itself, with jitter.
        connection.execute("PRAGMA busy_timeout = 0")
        return connection

    def _writing_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError("the ledger is closed", hint="Open it again.")
        if self._writer is None:
            self._writer = self._for_writing(self._connect(readonly=False))
        return self._writer

    def write(self, unit: Callable[[Writer], T], clock: Clock) -> T:
        """Run a unit under the write lock and return its answer once it is durable."""
        self._check_writable()
        result: T = self._queue.submit(Request(unit, clock))
        return result

    def _check_writable(self) -> None:
        if self.readonly:
            raise ConflictError(
                f"{self.location} is open for reading only",
                code="ERR_READONLY",
                hint="Open it without readonly=True to record.",
            )

    def _run_batch(self, batch: Sequence[Request]) -> None:
        with self._lock:
            if self._try_batch(batch):
                return
            # One of them spoiled the transaction: each runs by itself, so that it fails alone.
            for request in batch:
                if len(batch) > 1:
                    self._try_batch([request])

    def _try_batch(self, batch: Sequence[Request]) -> bool:
        """Run requests in one transaction; False if a failing one undid the others' work."""
        try:
            connection = self._writing_connection()
            begin_immediate(connection, self.location)
        except AffidavitError as error:
            _answer_all(batch, error)
            return True
        writer = None
        try:
            writer = SqliteWriter(connection, self._tips)
            for request in batch:
                if not _run(request, writer):
                    self._roll_back(connection)
                    return len(batch) == 1
        except sqlite3.Error as error:
            self._roll_back(connection)
            _answer_all(batch, failures.translate(error, self.location))
            return True
        except BaseException:
            self._roll_back(connection)
            raise
        self._commit(connection, writer, batch)
        return True

    def _commit(
        self, connection: sqlite3.Connection, writer: SqliteWriter, batch: Sequence[Request]
    ) -> None:
        if writer.writes == 0:
            self._roll_back(connection, forget=False)
        else:
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._settle(writer, batch, error)
                return
            self.commit_count += 1
        writer.leave_tips()
        for request in batch:
            request.done = True

    def _roll_back(self, connection: sqlite3.Connection, *, forget: bool = True) -> None:
        if forget:
            self._tips.clear()
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _settle(self, writer: SqliteWriter, batch: Sequence[Request], error: sqlite3.Error) -> None:
        """COMMIT failed, which does not say whether it happened: look, then answer."""
        self._tips.clear()
        first = writer.first_entry
        failure: AffidavitError = failures.translate(error, self.location)
        if failure.code != "ERR_STORE_FULL":
            failure = StoreError(
                f"writing to {self.location} failed at the last step ({failure.message})",
                code="ERR_OUTCOME_UNKNOWN",
                hint="The fact may or may not be recorded. Retry with the same idempotency_key.",
            )
        self._drop_writer()
        try:
            connection = self._writing_connection()
            row = connection.execute("SELECT entry FROM log WHERE log_index = ?", (writer.first,))
            found = row.fetchone()
            if first is None or found is None or found[0] != first:
                _answer_all(batch, failure)
                return
            # It is there; a full checkpoint makes the disk confirm it.
            connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
        except (sqlite3.Error, AffidavitError):
            _answer_all(batch, failure)
            return
        for request in batch:
            request.done = True

    def _drop_writer(self) -> None:
        connection, self._writer = self._writer, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """One snapshot, on a connection of its own: the writer's shows what is not committed."""
        with self._snapshot() as connection:
            yield SqliteReader(connection)

    @contextmanager
    def audit(self) -> Iterator[SqliteAudit]:
        """One snapshot as a verifier reads it."""
        with self._snapshot() as connection:
            yield SqliteAudit(connection)

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        if self.location == files.MEMORY:
            with self._lock, self._transaction(self._writing_connection()) as connection:
                yield connection
            return
        connection = self._take_reader()
        broken = True
        try:
            with self._transaction(connection):
                yield connection
            broken = False
        finally:
            self._give_back(connection, broken=broken)

    @contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise failures.translate(error, self.location) from None

    def _take_reader(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise StoreError("the ledger is closed", hint="Open it again.")
            connection = self._idle.pop() if self._idle else self._connect(readonly=True)
            self._in_use += 1
            return connection

    def _give_back(self, connection: sqlite3.Connection, *, broken: bool) -> None:
        with self._lock:
            self._in_use -= 1
            if broken or self._closed:
                connection.close()
            else:
                self._idle.append(connection)
            self._readers_gone.notify_all()

    def rebuild(self, repair: Callable[[SqliteAudit, SqliteRepairer], T]) -> T:
        """Run a repair of the views in one transaction, with the guards lifted."""
        self._check_writable()
        with self._lock:
            connection = self._writing_connection()
            begin_immediate(connection, self.location)
            try:
                repairer = SqliteRepairer(connection)
                result = repair(SqliteAudit(connection), repairer)
                repairer.finish()
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise failures.translate(error, self.location) from None
            finally:
                self._roll_back(connection)
            return result

    def describe(self) -> Mapping[str, Any]:
        """Facts about the file, from `stat` and from SQLite."""
        with self._snapshot() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        facts: dict[str, Any] = {
            "location": self.location,
            "schema_version": version,
            "sqlite_version": sqlite3.sqlite_version,
        }
        if self.location != files.MEMORY:
            for name, suffix in (("file_bytes", ""), ("wal_bytes", "-wal")):
                with contextlib.suppress(OSError):
                    facts[name] = Path(self.location + suffix).stat().st_size
            space = os.statvfs(Path(self.location).parent)
            facts["disk_free_bytes"] = space.f_bavail * space.f_frsize
        return facts

    def close(self) -> None:
        """Close every connection; SQLite folds the -wal back when the last process does."""
        with self._lock:
            self._closed = True
            self._close_idle()

    def _close_idle(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        self._drop_writer()

    def before_fork(self) -> None:
        """Leave nothing open across a fork: SQLite's state about locks must not be inherited."""
        self._lock.acquire()
        while self._in_use:
            self._readers_gone.wait()
        if self.location != files.MEMORY:
            self._close_idle()
            self._tips.clear()

    def after_fork_in_parent(self) -> None:
        """Go on; connections are opened again when they are needed."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Start afresh: the threads that led or waited are not in this process."""
        self._lock = threading.RLock()
        self._readers_gone = threading.Condition(self._lock)
        self._queue = CommitQueue(self._run_batch)


def _run(request: Request, writer: SqliteWriter) -> bool:
    """Run one unit; False if it failed after writing, so that the transaction is spoiled."""
    writes = writer.writes
    request.error = None
    try:
        writer.start_unit(request.clock)
        request.result = request.unit(writer)
    except AffidavitError as error:
        request.error = error
    except sqlite3.IntegrityError as error:
        request.error, request.done = failures.translate_constraint(error), True
        return False
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - a bug in a unit, or in a caller's clock: it fails alone
        request.error = error
    if request.error is None:
        return True
    request.done = True
    return writer.writes == writes


def _answer_all(batch: Sequence[Request], error: AffidavitError) -> None:
    for request in batch:
        request.error, request.done = error, True
