"""The ledger as callers hold it: every use case under its public name.

Each call checks its input before the write lock, runs one unit under it, and returns once the fact
is durable. `idempotency_key` makes a retry safe: the same key with the same input gives the first
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from affidavit.ledger.calls.captures import Captures
from affidavit.ledger.calls.changes import Changes
from affidavit.ledger.calls.decisions import Decisions
from affidavit.ledger.calls.erasing import Erasing
from affidavit.ledger.calls.exports import Exports
from affidavit.ledger.calls.inspecting import Inspecting
from affidavit.ledger.calls.log import Log
from affidavit.ledger.calls.proof import Proof
from affidavit.ledger.calls.proposals import Proposals
from affidavit.ledger.calls.retaining import Retaining
from affidavit.ledger.calls.searching import Searching
from affidavit.ledger.calls.sessions import Sessions
from affidavit.ledger.calls.signing import Signing
from affidavit.ledger.calls.stories import Stories
from affidavit.ledger.calls.tasks import Tasks
from affidavit.ledger.calls.tool_calls import ToolCalls
from affidavit.ledger.calls.transactions import Transactions
from affidavit.ledger.calls.turns import Turns
from affidavit.ledger.context import Context
from affidavit.ledger.transactions import Held

T = TypeVar("T")


class Ledger(
    Decisions,
    Sessions,
    Tasks,
    Log,
    Stories,
    Proof,
    Exports,
    Erasing,
    Searching,
    Inspecting,
    Signing,
    Retaining,
    Turns,
    ToolCalls,
    Proposals,
    Captures,
    Transactions,
    Changes,
):
    """A handle on one ledger; close it, or use it in a `with` block."""

    def _lend(self, context: Context, held: Held) -> Transaction:
        return Transaction(context, held)


# Calls about what is committed: inside a transaction there is nothing to sign, prove or follow.
_OUTSIDE: Final = frozenset(
    name for kind in (Signing, Proof, Exports, Changes, Transactions) for name in vars(kind)
)


class Transaction(Ledger):
    """A ledger's calls inside one transaction; its writes are seen here before anywhere else."""

    def __init__(self, context: Context, held: Held) -> None:
        super().__init__(context, held.end)
        self._held = held

    def __getattribute__(self, name: str) -> Any:
        """Every public call ends the transaction when it fails, also when nobody tells."""
        found = super().__getattribute__(name)
        if name.startswith("_") or name == "abort" or not callable(found):
            return found
        if name in _OUTSIDE:
            self._held.end(f"{name} in it")
            raise self._held.impossible(name)
        return partial(_ending_on_error, self._held, found)

    def abort(self) -> None:
        """Undo everything; later calls are refused."""
        self._held.abort()


def _ending_on_error(held: Held, call: Callable[..., T], *args: Any, **given: Any) -> T:
    try:
        return call(*args, **given)
    except BaseException as error:
        held.end(f"{type(error).__name__} in it")
        raise
