"""Affidavit: the sworn record of what AI agents did and why.

    import affidavit

    with affidavit.open("trail.db") as ledger:
        session = ledger.start_session(intent="ship it", caller="agent-1")
        ledger.record_thought(
            type="decision", task_id="t1", agent_id="agent-1",
            content="B, because the index fits in memory", session_id=session.session_id,
        )
        ledger.seal_session(session.session_id)

Importing this is cheap: everything else is loaded when it is first used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from affidavit.errors import (
    AffidavitError,
    CannotVerify,
    ConflictError,
    InputError,
    IntegrityViolation,
    StoreError,
)

if TYPE_CHECKING:
    from affidavit.ledger.ledger import Ledger as Ledger

__version__ = "0.1.0"
__all__ = [
    "AffidavitError",
    "CannotVerify",
    "ConflictError",
    "InputError",
    "IntegrityViolation",
    "StoreError",
    "__version__",
    "open",
]


def open(  # noqa: A001 - the public name
    path: str | os.PathLike[str] = "",
    *,
    readonly: bool = False,
    create: bool = True,
    settings: Mapping[str, str | int | bool] | None = None,
    clock: Callable[[], int] | None = None,
    id_fn: Callable[[], str] | None = None,
    project_root: str | os.PathLike[str] | None = None,
) -> Ledger:
    """Open the ledger at a path, or create it; `:memory:` is one that vanishes when closed.

    `settings` differing from those in force are recorded as changes. `clock` gives integer
    microseconds since 1970 and `id_fn` fresh ids, for tests and simulations. Paths in tool calls
    and proposals are stored relative to `project_root`, by default the working directory.
    """
    from affidavit.apps.wiring import open_ledger  # noqa: PLC0415 - keeps the import cheap

    return open_ledger(
        path,
        readonly=readonly,
        create=create,
        settings=settings,
        clock=clock,
        id_fn=id_fn,
        signs_at_close=True,
        project_root=project_root,
    )
