"""Applying periods of retention every hour while a server runs.

No failure of it reaches who records: it is said, and tried again an hour later; until it succeeds
`affidavit doctor` says how overdue it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from affidavit.apps.beside import Beside
from affidavit.errors import AffidavitError
from affidavit.ledger.ledger import Ledger

EVERY_S: Final = 3_600.0


class KeptRetained(Beside):
    """A thread beside a server; `with KeptRetained(ledger, say): serve()`."""

    def __init__(
        self, ledger: Ledger, say: Callable[[str], None], *, every_s: float = EVERY_S
    ) -> None:
        super().__init__("retention")
        self._ledger = ledger
        self._say = say
        self._every_s = every_s

    def _run(self) -> None:
        while True:
            try:
                self._ledger.retain()
            except AffidavitError as error:
                self._say(f"periods of retention were not applied: {error.message}")
            if self._stop.wait(self._every_s):
                return
