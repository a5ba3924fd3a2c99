"""Whether a write would succeed, told from trying everything but the write."""

from __future__ import annotations

import time
from typing import Any, Final

from affidavit import __version__
from affidavit.apps.mcp.answers import Health
from affidavit.apps.mcp.tools import Facts
from affidavit.errors import AffidavitError
from affidavit.ledger.ledger import Ledger

_FULL_BYTES: Final = 1 << 20
_NEARLY_FULL_BYTES: Final = 100 << 20
_SKEW_US_MAX: Final = 5_000_000
_WAITING_MAX: Final = 500
_SHOWN: Final = ("ledger_id", "location", "schema_version", "entries", "clock_ahead_us",
                 "disk_free_bytes", "writers_waiting")  # fmt: skip


def examine(ledger: Ledger, facts: Facts) -> Health:
    """The state of the ledger behind a server; never raises."""
    shown: dict[str, Any] = {}
    failing: list[str] = []
    readonly = False
    try:
        found = ledger.describe()
        shown = {name: found[name] for name in _SHOWN if name in found}
        shown["last_checkpoint"] = ledger.last_checkpoint()
        readonly = bool(found["readonly"])
        if not readonly:
            ledger.check_writable()
    except AffidavitError as error:
        failing.append(f"{error.code}: {error.message}")
    if shown.get("disk_free_bytes", _FULL_BYTES) < _FULL_BYTES:
        failing.append("the disk is full")
    degraded = _doubts(shown, readonly=readonly)
    status = "failing" if failing else "degraded" if degraded else "ok"
    return Health(
        status=status,
        reasons=(*failing, *degraded),
        version=__version__,
        mode=facts.mode,
        uptime_s=int(time.monotonic() - facts.started_s),
        **shown,
    )


def _doubts(shown: dict[str, Any], *, readonly: bool) -> list[str]:
    found = []
    if readonly:
        found.append("the ledger is open for reading only: nothing can be recorded")
    if _FULL_BYTES <= shown.get("disk_free_bytes", _NEARLY_FULL_BYTES) < _NEARLY_FULL_BYTES:
        found.append("less than 100 MiB are free on the ledger's disk")
    if shown.get("clock_ahead_us", 0) > _SKEW_US_MAX:
        found.append("the newest entry is later than this machine's clock")
    if shown.get("writers_waiting", 0) > _WAITING_MAX:
        found.append("many writers are waiting")
    return found
