"""The store: one file, one writing connection per process, as many reading ones as are in use."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from affidavit.errors import AffidavitError, ConflictError, StoreError
from affidavit.ledger.ports import Clock, Hit, WordQuery, Writer
from affidavit.stores.sqlite import failures, files
from affidavit.stores.sqlite.audit import SqliteAudit
from affidavit.stores.sqlite.commits import CommitQueue, Request
from affidavit.stores.sqlite.committing import Committer
from affidavit.stores.sqlite.connection import (
    begin_immediate,
    check_is_ledger,
    migrate,
    open_connection,
)
from affidavit.stores.sqlite.querying import run_query
from affidavit.stores.sqlite.reading import SqliteReader
from affidavit.stores.sqlite.repair import SqliteRepairer
from affidavit.stores.sqlite.search import SearchIndex

T = TypeVar("T")

# How long a fact that nobody waits for may wait for a commit to go with.
_SOON_S: Final = 0.9
_SCRUB_WAIT_MS = 2_000


class SqliteStore:
    """A ledger in one SQLite file. Made by `registry.open_store`, one per file and process."""

    # Tests put a connection here that fails or dies at a chosen statement.
    connection_factory: type[sqlite3.Connection] = sqlite3.Connection

    def __init__(self, path: str, *, readonly: bool) -> None:
        self.location = path
        self.readonly = readonly
        # Held while the writing connection is used, replaced, or the process forks. Taken before
        # _pool, which only guards the lists: a read never waits for a commit.
        self._lock = threading.RLock()
        self._pool = threading.Condition(threading.RLock())
        self._queue = CommitQueue(self._run_batch)
        # Whether the lock is held for something that may take longer than a commit.
        self._apart = False
        self._committer = Committer(path, lambda: self._connect(readonly=False))
        self._idle: list[sqlite3.Connection] = []
        self._owners: list[int] = []
        self._search = SearchIndex(path)
        self._closed = False
        self._forking = False
        self._orphaned = False
        self._will_flush = False
        self._file = None if path == files.MEMORY else files.identity(path)
        self._open_first()

    @property
    def commit_count(self) -> int:
        """How many commits this store has made."""
        return self._committer.commit_count

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
            self._committer.adopt(connection)

    def _connect(self, *, readonly: bool) -> sqlite3.Connection:
        if self._closed:
            raise StoreError("the ledger is closed", hint="Open it again.")
        connection = open_connection(
            self.location, readonly=readonly, factory=self.connection_factory
        )
        try:
            self._check_file()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_file(self) -> None:
        """That the path still leads to the file that was opened: a fact must not go elsewhere."""
        if self._orphaned:
            raise StoreError(
                "this process was forked inside a read of the ledger",
                hint="Open the ledger again in the new process, or fork outside of reads.",
            )
        if self._file is not None and files.identity(self.location) != self._file:
            raise StoreError(
                f"the file at {self.location} was removed or replaced while it was open",
                hint="Close the ledger and open it again; acknowledged facts are in the old file.",
            )

    def write(self, unit: Callable[[Writer], T], clock: Clock, *, quick: bool = False) -> T:
        """Run a unit under the write lock and return its answer once it is durable."""
        self._check_writable()
        result: T = self._queue.submit(Request(unit, clock, quick=quick))
        return result

    def write_soon(self, unit: Callable[[Writer], None], clock: Clock) -> None:
        """Have a unit go with the next commit, a second later at most; it waits for nothing."""
        self._check_writable()
        self._queue.defer(Request(unit, clock, deferred=True, quick=True))
        if not self._will_flush:
            self._will_flush = True
            timer = threading.Timer(_SOON_S, self.flush)
            timer.daemon = True
            timer.start()

    def flush(self) -> None:
        """Commit what was to be written soon; what cannot be now goes with the next commit."""
        self._will_flush = False
        with contextlib.suppress(AffidavitError):
            self._queue.flush()

    def write_alone(self, unit: Callable[[Writer], T], clock: Clock) -> T:
        """Run a unit once, in a commit of its own: it may wait for its caller."""
        self._check_writable()
        result: T = self._queue.submit(Request(unit, clock, alone=True))
        return result

    def _check_writable(self) -> None:
        if self.readonly:
            raise ConflictError(
                f"{self.location} is open for reading only",
                code="ERR_READONLY",
                hint="Open it for writing to record.",
            )

    def _run_batch(self, batch: Sequence[Request]) -> None:
        if self._apart:
            self._queue.let_go()
        with self._lock:
            self._committer.run(batch, self._check_file, self._queue.let_go)

    @contextmanager
    def _hold_apart(self) -> Iterator[None]:
        """Keep commits off, maybe for long; callers who are held for the next one go before."""
        with self._lock:
            self._apart = True
            self._queue.let_go()
            try:
                yield
            finally:
                self._apart = False

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """One snapshot, on a connection of its own: the writer's shows what is not committed."""
        with self._snapshot() as connection:
            yield SqliteReader(connection)

    def explain(self, error: Exception) -> AffidavitError | None:
        """What an error of the database means; None where it is no such error."""
        if isinstance(error, failures.RAISED):
            return failures.translate(error, self.location)
        return None

    def glance(self, ask: Callable[[SqliteReader], T]) -> T:
        """Ask for rows that never change once they are there: no snapshot over statements."""
        if self.location == files.MEMORY:
            with self.read() as reader:
                return ask(reader)
        connection = self._take_reader()
        broken = True
        try:
            found = ask(SqliteReader(connection))
            broken = False
        except failures.RAISED as error:
            raise failures.translate(error, self.location) from None
        finally:
            self._give_back(connection, broken=broken)
        return found

    @contextmanager
    def audit(self) -> Iterator[SqliteAudit]:
        """One snapshot as a verifier reads it."""
        with self._snapshot() as connection:
            audit = SqliteAudit(connection)
            try:
                yield audit
            finally:
                audit.close()

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        if self.location == files.MEMORY:
            with self._hold_apart(), self._transaction(self._committer.connection()) as connection:
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
        except failures.RAISED as error:
            raise failures.translate(error, self.location) from None

    def _take_reader(self) -> sqlite3.Connection:
        own = threading.get_ident()
        with self._pool:
            while self._forking and own not in self._owners:
                self._pool.wait()
            self._owners.append(own)
            connection = self._idle.pop() if self._idle else None
        try:
            return self._connect(readonly=True) if connection is None else connection
        except BaseException:
            self._forget_owner()
            raise

    def _give_back(self, connection: sqlite3.Connection, *, broken: bool) -> None:
        with self._pool:
            if broken or self._closed:
                connection.close()
            else:
                self._idle.append(connection)
        self._forget_owner()

    def _forget_owner(self) -> None:
        with self._pool:
            if threading.get_ident() in self._owners:
                self._owners.remove(threading.get_ident())
            elif self._owners:  # a generator's reader, given back by another thread
                self._owners.pop()
            self._pool.notify_all()

    def rebuild(self, repair: Callable[[SqliteAudit, SqliteRepairer], T]) -> T:
        """Run a repair of the views in one transaction, with the guards lifted."""
        self._check_writable()
        with self._hold_apart():
            self._check_file()
            connection = self._committer.connection()
            try:
                begin_immediate(connection, self.location)
                repairer = SqliteRepairer(connection)
                result = repair(SqliteAudit(connection), repairer)
                repairer.finish()
                connection.execute("COMMIT")
            except failures.RAISED as error:
                raise failures.translate(error, self.location) from None
            finally:
                self._committer.reset()
            return result

    @property
    def is_open(self) -> bool:
        """Whether it was not closed yet."""
        return not self._closed

    def query(self, sql: str, params: Sequence[Any] | Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of one statement that only reads, within limits."""
        if self.location == files.MEMORY:
            with self._snapshot() as connection:
                return run_query(connection, self.location, sql, params)
        # A connection of its own: its functions and limits stay with it.
        with closing(self._connect(readonly=True)) as connection:
            return run_query(connection, self.location, sql, params)

    def check_scrubbable(self) -> None:
        """That something may be erased here."""
        self._check_writable()

    @contextmanager
    def search(self, wanted: WordQuery) -> Iterator[tuple[SqliteReader, list[Hit]]]:
        """What holds all the words, and the snapshot it was found in."""
        with self.read() as reader:
            yield reader, self._search.find(reader, wanted)

    def scrub(self, fields: Sequence[tuple[int, str]]) -> bool:
        """Leave nothing of what was erased in the file and beside it; False when somebody reads."""
        self._check_writable()
        with self._hold_apart():
            connection = self._committer.connection()
            try:
                connection.execute(f"PRAGMA busy_timeout = {_SCRUB_WAIT_MS}")
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except failures.RAISED as error:
                raise failures.translate(error, self.location) from None
            finally:
                connection.execute("PRAGMA busy_timeout = 0")
        # Behind the checkpoint: who still read the texts, and may have put them into the index,
        # has ended by now, or was in the way.
        return self._search.forget(fields) and not busy

    def describe(self) -> Mapping[str, Any]:
        """Facts about the file, from `stat` and from SQLite."""
        with self._snapshot() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        facts: dict[str, Any] = {
            "location": self.location,
            "schema_version": version,
            "sqlite_version": sqlite3.sqlite_version,
            "writers_waiting": self._queue.waiting_count,
        }
        if self.location != files.MEMORY:
            for name, suffix in (
                ("file_bytes", ""),
                ("wal_bytes", "-wal"),
                ("search_bytes", ".search"),
            ):
                with contextlib.suppress(OSError):
                    facts[name] = Path(self.location + suffix).stat().st_size
            with contextlib.suppress(OSError):
                space = os.statvfs(Path(self.location).parent)
                facts["disk_free_bytes"] = space.f_bavail * space.f_frsize
        return facts

    def close(self) -> None:
        """Close every connection; SQLite folds the -wal back when the last process does."""
        self.flush()
        with self._lock, self._pool:
            self._closed = True
            self._close_idle()

    def _close_idle(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        self._search.close()
        self._committer.drop()

    def before_fork(self) -> None:
        """Leave no file open across a fork: SQLite's state about locks must not be inherited.

        A thread that forks inside a read of its own cannot wait for itself; then the child's store
        is orphaned and says so.
        """
        self._lock.acquire()
        self._apart = True
        self._queue.let_go()
        self._pool.acquire()
        self._forking = True
        own = threading.get_ident()
        while any(owner != own for owner in self._owners):
            self._pool.wait()
        if self._file is not None:
            self._close_idle()

    def after_fork_in_parent(self) -> None:
        """Go on; connections are opened again when they are needed."""
        self._forking = self._apart = False
        self._pool.notify_all()
        self._pool.release()
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Start afresh: the threads that led or waited are not in this process."""
        self._forking = self._will_flush = self._apart = False
        self._orphaned = bool(self._owners)
        self._owners.clear()
        self._lock = threading.RLock()
        self._pool = threading.Condition(threading.RLock())
        self._queue = CommitQueue(self._run_batch)
