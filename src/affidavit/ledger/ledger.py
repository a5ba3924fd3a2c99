"""The ledger as callers hold it: every use case under its public name.

Each call checks its input before the write lock, runs one unit under it, and returns once the fact
is durable. `idempotency_key` makes a retry safe: the same key with the same input gives the first
answer.
"""

from __future__ import annotations

from affidavit.ledger.calls.decisions import Decisions
from affidavit.ledger.calls.exports import Exports
from affidavit.ledger.calls.log import Log
from affidavit.ledger.calls.proof import Proof
from affidavit.ledger.calls.sessions import Sessions
from affidavit.ledger.calls.settings import Settings
from affidavit.ledger.calls.signing import Signing
from affidavit.ledger.calls.tasks import Tasks


class Ledger(Decisions, Sessions, Tasks, Log, Proof, Exports, Signing, Settings):
    """A handle on one ledger; close it, or use it in a `with` block."""
