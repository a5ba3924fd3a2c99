"""What every use case needs besides the store: clock, ids, randomness, and how facts come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from affidavit.core.entry import Source
from affidavit.ledger.ports import (
    Clock,
    Crew,
    ErasureMemory,
    GuardFolder,
    Publications,
    Signers,
    Store,
)
from affidavit.ledger.served import ServedCall


class Context(NamedTuple):
    """The outside world of one handle on a ledger."""

    store: Store
    ledger_id: str
    src: Source
    clock: Clock
    new_id: Callable[[], str]
    new_salt: Callable[[], bytes]
    keys: Signers
    guards: GuardFolder
    publications: Publications
    crew: Crew
    memory: ErasureMemory
    signs_at_close: bool = False
    # The call of a server that this handle is for.
    call: ServedCall | None = None
    # What paths in callers' JSON are relative to.
    project_root: str = ""
