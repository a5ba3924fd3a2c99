"""Several calls as one unit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from affidavit.ledger.context import Context
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import read_bool
from affidavit.ledger.transactions import Held, hold_snapshot, hold_writer

if TYPE_CHECKING:
    from affidavit.ledger.ledger import Transaction


class Transactions(Handle, ABC):
    """Calls about transactions."""

    def transaction(self, *, write: bool = True) -> AbstractContextManager[Transaction]:
        """Several calls as one unit, all or nothing; with `write=False` reads of one snapshot.

        Any error, or `abort()`, undoes all of it and ends it. It holds the write lock, for at most
        10 seconds: other writers wait that long.
        """
        return self._hold(write=read_bool(write, "write"))

    @contextmanager
    def _hold(self, *, write: bool) -> Iterator[Transaction]:
        hold = hold_writer if write else hold_snapshot
        with self._within(waits=write), hold(self._context) as (context, held):
            yield self._lend(context, held)
        if write:
            self._note_write()

    @abstractmethod
    def _lend(self, context: Context, held: Held) -> Transaction:
        """The calls of a transaction, on what it holds."""
