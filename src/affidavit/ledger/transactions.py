"""Transactions: several calls as one unit, or several reads of one snapshot.

A write transaction holds the ledger's write lock. The unit runs in a thread that keeps the lock and
waits; the caller's thread lends the writer from it, call by call, until it is done. So the lock is
given back after `TRANSACTION_S` whatever the caller does, and committing, undoing and finding out
what a failed commit left are those of every other unit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeVar

from affidavit.errors import AffidavitError, ConflictError
from affidavit.ledger.context import Context
from affidavit.ledger.ports import Clock, Hit, Reader, Store, WordQuery, Writer
from affidavit.verify.ports import LedgerSource, Repairer

T = TypeVar("T")

# How long a write transaction may hold the lock.
TRANSACTION_S: Final = 10.0


class _Undo(Exception):
    """Raised inside the unit, so that it is rolled back."""


class Held:
    """A store as a transaction sees it: one writer, or one reader, lent for each call."""

    def __init__(self, store: Store, *, readonly: bool) -> None:
        self._store = store
        self.location = store.location
        self.readonly = readonly
        self._lending = threading.Lock()
        self._lent: Any = None
        self._over = "it has ended"
        self.aborted = False

    def begin(self, lent: Any) -> None:
        """From now on calls go through this."""
        self._lent = lent

    def end(self, why: str = "it has ended") -> None:
        """From now on every call is refused; waits for a call that is under way."""
        with self._lending:
            if self._lent is not None:
                self._lent, self._over = None, why

    def abort(self) -> None:
        """Undo all of it, as the caller wishes."""
        self.aborted = True
        self.end("it was aborted")

    @property
    def is_over(self) -> bool:
        """Whether it takes no calls any more."""
        return self._lent is None

    def refusal(self) -> ConflictError:
        """What a call after the end is told."""
        return ConflictError(
            f"the transaction is over: {self._over}; nothing of it was recorded",
            code="ERR_TRANSACTION_ENDED",
            hint="Begin a new one and do all of it again.",
        )

    def impossible(self, what: str) -> ConflictError:
        """What cannot be done before the transaction is committed."""
        return ConflictError(
            f"{what} is not possible inside a transaction",
            code="ERR_TRANSACTION_ENDED",
            hint="End the transaction first.",
        )

    def write(self, unit: Callable[[Writer], T], clock: Clock, *, quick: bool = False) -> T:
        """Run a unit as part of the transaction."""
        del clock, quick
        if self.readonly:
            raise ConflictError(
                "the transaction only reads",
                code="ERR_READONLY",
                hint="Begin it with write=True.",
            )
        with self.read() as writer:
            return unit(writer)

    def write_alone(self, unit: Callable[[Writer], T], clock: Clock) -> T:
        """No transaction inside another."""
        del unit, clock
        raise self.impossible("another transaction")

    @contextmanager
    def read(self) -> Iterator[Any]:
        """The transaction's own view, what it wrote included."""
        with self._lending:
            if self._lent is None:
                raise self.refusal()
            try:
                yield self._lent
            except Exception as error:
                known = self.explain(error)
                if known is not None:
                    raise known from None
                raise

    def explain(self, error: Exception) -> AffidavitError | None:
        """What an error of the database means; None where it is no such error."""
        return self._store.explain(error)

    def write_soon(self, unit: Callable[[Writer], None], clock: Clock) -> None:
        """No server answers calls inside a transaction."""
        del unit, clock
        raise self.impossible("a call's own entry")

    def flush(self) -> None:
        """Nothing is kept back."""

    def glance(self, ask: Callable[[Any], T]) -> T:
        """The transaction's own view."""
        with self.read() as lent:
            return ask(lent)

    def audit(self) -> AbstractContextManager[LedgerSource]:
        """Nothing that is not committed can be verified."""
        raise self.impossible("verifying")

    def check_scrubbable(self) -> None:
        """A file is cleaned after a commit."""
        raise self.impossible("erasing")

    def search(self, wanted: WordQuery) -> AbstractContextManager[tuple[Reader, list[Hit]]]:
        """The index knows only what is committed."""
        del wanted
        raise self.impossible("searching")

    def scrub(self, fields: Sequence[tuple[int, str]]) -> bool:
        """A file is cleaned after a commit."""
        del fields
        raise self.impossible("erasing")

    def rebuild(self, repair: Callable[[LedgerSource, Repairer], T]) -> T:
        """Nothing that is not committed can be rebuilt."""
        del repair
        raise self.impossible("rebuilding")

    @property
    def is_open(self) -> bool:
        """Whether it still takes calls."""
        return not self.is_over

    def query(self, sql: str, params: Sequence[Any] | Mapping[str, Any]) -> list[dict[str, Any]]:
        """Raw queries see what is committed."""
        del sql, params
        raise self.impossible("a raw query")

    def describe(self) -> Mapping[str, Any]:
        """Where the ledger is; the rest is the file's."""
        return {"location": self.location}

    def close(self) -> None:
        """Nothing of its own is open."""


@contextmanager
def hold_snapshot(context: Context) -> Iterator[tuple[Context, Held]]:
    """One snapshot for several reads."""
    held = Held(context.store, readonly=True)
    with context.store.read() as reader:
        held.begin(reader)
        try:
            yield context._replace(store=held), held
        finally:
            held.end()


@contextmanager
def hold_writer(context: Context) -> Iterator[tuple[Context, Held]]:
    """The write lock for several calls; commits at the end, undoes all on any error."""
    held = Held(context.store, readonly=False)
    keeper = _Keeper(context, held)
    keeper.begin()
    try:
        yield context._replace(store=held, signs_at_close=False), held
    except BaseException:
        keeper.finish(commit=False)
        raise
    over = held.is_over
    keeper.finish(commit=not over)
    if over and not held.aborted:
        raise held.refusal()


class _Keeper:
    """The thread that keeps the lock while another one works."""

    def __init__(self, context: Context, held: Held) -> None:
        self._context = context
        self._held = held
        self._begun = threading.Event()
        self._done = threading.Event()
        self._commit = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="transaction", daemon=True)

    def begin(self) -> None:
        """Wait for the write lock."""
        self._thread.start()
        self._begun.wait()
        if self._held.is_over and self._error is not None:
            self._thread.join()
            raise self._error

    def finish(self, *, commit: bool) -> None:
        """Commit, or undo, and wait until that is done."""
        self._commit = commit
        self._done.set()
        self._thread.join()
        if commit and self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._context.store.write_alone(self._unit, self._context.clock)
        except _Undo:
            pass
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            self._error = error
        finally:
            self._held.end()
            self._begun.set()

    def _unit(self, tx: Writer) -> None:
        self._held.begin(tx)
        self._begun.set()
        in_time = self._done.wait(TRANSACTION_S)
        self._held.end(f"it took longer than TRANSACTION_S, {TRANSACTION_S:g} s")
        if not in_time:
            raise self._held.refusal()
        if not self._commit:
            raise _Undo
