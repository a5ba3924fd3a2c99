"""Applying periods of retention every hour while a server runs.

No failure of it reaches who records: it is said, and tried again an hour later; until it succeeds
`affidavit doctor` says how overdue it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from affidavit.errors import AffidavitError
from affidavit.ledger.ledger import Ledger

EVERY_S: Final = 3_600.0


class KeptRetained:
    """A thread beside a server; `with KeptRetained(ledger, say): serve()`."""

    def __init__(
        self, ledger: Ledger, say: Callable[[str], None], *, every_s: float = EVERY_S
    ) -> None:
        self._ledger = ledger
        self._say = say
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                self._ledger.retain()
            except AffidavitError as error:
                self._say(f"periods of retention were not applied: {error.message}")
            if self._stop.wait(self._every_s):
                return
