"""Keeping a log signed, and published where that is wanted, while a server runs.

Once a second at most: look whether the log has grown, sign it, publish it; once more at the end.
Recording never waits for this, and no failure of it ever reaches who records: it is said once, and
tried again, at first soon, then ever less often, because only a person can end most refusals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from affidavit.apps.beside import Beside
from affidavit.errors import AffidavitError, IntegrityViolation
from affidavit.ledger.ledger import Ledger

EVERY_S: Final = 1.0
_FAILED_MAX_S: Final = 60.0
# A violation leaves evidence each time it is met.
_VIOLATED_S: Final = 3_600.0


class KeptSigned(Beside):
    """A thread beside a server; `with KeptSigned(ledger, say): serve()`."""

    def __init__(
        self,
        ledger: Ledger,
        say: Callable[[str], None],
        *,
        publish_to: str | None = None,
        every_s: float = EVERY_S,
    ) -> None:
        super().__init__("signing")
        self._ledger = ledger
        self._say = say
        self._publish_to = publish_to
        self._every_s = every_s
        self._wait_s = every_s
        self._size = len(ledger) if publish_to is None else -1
        self._has_signed = False
        self._said = ""

    def _run(self) -> None:
        while not self._stop.wait(self._wait_s):
            self._sign(at_end=False)
        self._sign(at_end=True)

    def _sign(self, *, at_end: bool) -> None:
        try:
            # At the end also what waits to be written; a log nobody touched gets no key for it.
            is_left = at_end and self._has_signed
            if len(self._ledger) == self._size and not is_left:
                return
            self._size, self._has_signed = self._sign_and_publish(), True
        except AffidavitError as error:
            self._put_off(error)
        else:
            self._wait_s, self._said = self._every_s, ""

    def _sign_and_publish(self) -> int:
        if self._publish_to is None:
            return self._ledger.checkpoint().size
        return self._ledger.publish(self._publish_to).size

    def _put_off(self, error: AffidavitError) -> None:
        self._wait_s = min(2 * self._wait_s, _FAILED_MAX_S)
        if isinstance(error, IntegrityViolation):
            self._wait_s = _VIOLATED_S
        if error.message != self._said:
            self._said = error.message
            what = "not signed" if self._publish_to is None else "not signed and published"
            self._say(f"recorded, but {what}: {error.message} {error.hint}".strip())
