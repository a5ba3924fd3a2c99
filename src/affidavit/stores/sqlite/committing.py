"""Running a batch of requests in one transaction, and finding out what a failed COMMIT left.

The requests of a larger batch run as one. Should one of them fail after it wrote, all are undone
and each runs again inside a savepoint of its own, so that the bad one fails alone. Whatever stops
this, the connection is left outside any transaction, and a request counts as done exactly when its
fact is committed or refused.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence

from affidavit.errors import AffidavitError, StoreError
from affidavit.stores.sqlite import failures
from affidavit.stores.sqlite.commits import Request
from affidavit.stores.sqlite.connection import (
    WRITER_CACHE_KIB,
    begin_immediate,
    check_is_ledger,
)
from affidavit.stores.sqlite.files import MEMORY
from affidavit.stores.sqlite.writing import SqliteWriter, Tips

_SETTLE_WAIT_MS = 5_000
_TELL_MORE = ("ERR_LEDGER_TOO_NEW", "ERR_NOT_A_LEDGER", "ERR_INTEGRITY")


class Committer:
    """The writing side of a store: one connection, and what its last commit left behind."""

    def __init__(self, location: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._location = location
        self._connect = connect
        self._tips = Tips()
        self._connection: sqlite3.Connection | None = None
        self.commit_count = 0

    def connection(self) -> sqlite3.Connection:
        """The writing connection, opened when it is first needed."""
        return self._connection or self.adopt(self._connect())

    def adopt(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Write through this connection from now on."""
        # begin_immediate waits by itself, with jitter.
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
        self._connection = connection
        return connection

    def drop(self) -> None:
        """Close the connection and forget what is cached."""
        self._tips.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def reset(self) -> None:
        """Leave a connection whose state is not known; a ledger in memory has no other."""
        if self._location != MEMORY:
            self.drop()
            return
        self._tips.clear()
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def run(
        self, batch: Sequence[Request], check: Callable[[], None], let_go: Callable[[], None]
    ) -> None:
        """Commit a batch; `check` says whether the file is still the one that was opened.

        Before anything that may take long `let_go` is called: others are held meanwhile.
        """
        if self._connection is None:
            let_go()
        try:
            connection = self.connection()
        except AffidavitError as error:
            _fail_all(batch, error)
            return
        writer: SqliteWriter | None = None
        try:
            writer = self._begin(connection, batch, check, let_go)
            if len(batch) == 1:
                self._run_each(connection, writer, batch)
            elif not self._run_together(connection, writer, batch):
                let_go()
                connection.execute("ROLLBACK")
                writer = self._begin(connection, batch, check, let_go)
                self._run_each(connection, writer, batch)
            let_go()
            self._commit(connection, writer, batch)
        except failures.RAISED as error:
            _fail_all(batch, self._explain(connection, error))
        except AffidavitError as error:
            _fail_all(batch, error)
        finally:
            try:  # in place, as in `commits`
                self._come_to_rest(connection, writer, batch)
            except BaseException:
                self._come_to_rest(connection, writer, batch)
                raise

    def _explain(self, connection: sqlite3.Connection, error: failures.Raised) -> AffidavitError:
        """What went wrong; a file that became newer, or something else, is told as that."""
        with contextlib.suppress(*failures.RAISED):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            try:
                check_is_ledger(connection, self._location)
            except AffidavitError as found:
                if found.code in _TELL_MORE:
                    return found
        return failures.translate(error, self._location)

    def _begin(
        self,
        connection: sqlite3.Connection,
        batch: Sequence[Request],
        check: Callable[[], None],
        let_go: Callable[[], None],
    ) -> SqliteWriter:
        begin_immediate(connection, self._location, batch[-1].since, let_go)
        check()
        return SqliteWriter(connection, self._tips)

    def _run_together(
        self, connection: sqlite3.Connection, writer: SqliteWriter, batch: Sequence[Request]
    ) -> bool:
        """Run all units as one; False when one failed after it wrote: then none may stay.

        No savepoint: keeping the pages to go back to would cost more than most batches.
        """
        start = writer.mark()
        try:
            for request in batch:
                mark = writer.mark()
                try:
                    self._run_unit(request, writer)
                except AffidavitError as refusal:
                    if writer.mark() != mark:
                        raise
                    request.fail(refusal)
            writer.flush()
        except Exception as error:
            if isinstance(error, failures.RAISED) and _is_final(connection, error):
                raise
            writer.go_back(start)
            for request in batch:
                request.begin_again()
            return False
        return True

    def _run_each(
        self, connection: sqlite3.Connection, writer: SqliteWriter, batch: Sequence[Request]
    ) -> None:
        alone = len(batch) == 1
        for request in batch:
            mark = writer.mark()
            if not alone:
                connection.execute("SAVEPOINT unit")
            try:
                self._run_unit(request, writer)
                writer.flush()
            except failures.RAISED as error:
                if _is_final(connection, error):
                    raise
                request.fail(failures.translate(error, self._location))
            except Exception as error:  # noqa: BLE001 - a refusal, or a bug: it fails alone
                request.fail(error)
            if request.error is not None and writer.mark() != mark:
                connection.execute("ROLLBACK" if alone else "ROLLBACK TO unit")
                writer.go_back(mark)
            if not alone:
                connection.execute("RELEASE unit")

    @staticmethod
    def _run_unit(request: Request, writer: SqliteWriter) -> None:
        writer.start_unit(request.clock)
        request.result = request.unit(writer)

    def _commit(
        self, connection: sqlite3.Connection, writer: SqliteWriter, batch: Sequence[Request]
    ) -> None:
        if writer.writes == 0:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        else:
            writer.committing = True
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._settle(writer, batch, error)
                return
            self.commit_count += 1
        writer.leave_tips()
        _succeed_all(batch)

    def _come_to_rest(
        self,
        connection: sqlite3.Connection,
        writer: SqliteWriter | None,
        batch: Sequence[Request],
    ) -> None:
        """After anything at all: no transaction is open, and what was committed counts as done."""
        if self._connection is not connection:
            return  # it failed at COMMIT and was replaced
        if all(request.done for request in batch) and not connection.in_transaction:
            if any(request.error is not None for request in batch):
                self._tips.clear()
            return
        self._tips.clear()
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        elif writer is not None and writer.committing:
            _succeed_all(batch)

    def _settle(self, writer: SqliteWriter, batch: Sequence[Request], error: sqlite3.Error) -> None:
        """COMMIT failed, which does not say whether it happened: look, then answer."""
        writer.committing = False
        failure: AffidavitError = failures.translate(error, self._location)
        if failure.code != "ERR_STORE_FULL":
            failure = StoreError(
                f"writing to {self._location} failed at the last step ({failure.message})",
                code="ERR_OUTCOME_UNKNOWN",
                hint="The fact may or may not be recorded. Retry with the same idempotency_key.",
            )
        self.reset()
        try:
            if self._is_there(writer):
                _succeed_all(batch)
                return
        except (sqlite3.Error, AffidavitError):
            pass  # whether it is there cannot be told, which is what the failure says
        _fail_all(batch, failure)

    def _is_there(self, writer: SqliteWriter) -> bool:
        """Whether the first entry of the batch is in the log, and the disk says so too."""
        connection = self.connection()
        sql = "SELECT entry FROM log WHERE log_index = ?"
        found = connection.execute(sql, (writer.first,)).fetchone()
        if writer.first_entry is None or found is None or found[0] != writer.first_entry:
            return False
        connection.execute(f"PRAGMA busy_timeout = {_SETTLE_WAIT_MS}")
        busy, size, done = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        connection.execute("PRAGMA busy_timeout = 0")
        return not busy and done >= size


def _is_final(connection: sqlite3.Connection, error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Whether the store failed, not this unit: then no other unit can be written either."""
    return failures.is_of_the_store(error) or not connection.in_transaction


def _fail_all(batch: Sequence[Request], error: AffidavitError) -> None:
    for request in batch:
        if not request.done:
            request.fail(error)


def _succeed_all(batch: Sequence[Request]) -> None:
    for request in batch:
        if not request.done:
            request.succeed()
