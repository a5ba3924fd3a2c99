"""Brings what hooks left in a spool into its ledger; hooks start it, and it ends by itself.

    python -m affidavit.apps.hook_drain LEDGER

It waits a little for more before it ends, so that a busy agent does not start one at every event.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Final

from affidavit.apps.hook import open_spool
from affidavit.capture.hooks.spool import Spool

LINGER_S: Final = 2.0
_LOOK_S: Final = 0.05


def drain(ledger: str, spool: Spool, *, wait_s: float = 0.0, linger_s: float = 0.0) -> int | None:
    """Empty a spool; None where another process is doing it."""
    with spool.hold(wait_s) as mine:
        if not mine:
            return None
        from affidavit.apps import wiring  # noqa: PLC0415 - heavy, and most find somebody at it
        from affidavit.capture.hooks.drain import Drain  # noqa: PLC0415
        from affidavit.core.entry import Source  # noqa: PLC0415

        sources = {
            "hook": Source("claimed", "claude-code", "hook"),
            "proxy": Source("claimed", "affidavit-proxy", "proxy"),
        }
        warnings.simplefilter("ignore", RuntimeWarning)
        bringing = Drain(
            spool,
            lambda root, channel: wiring.open_ledger(
                ledger, source=sources[channel], project_root=root or None
            ),
        )
        with wiring.open_ledger(ledger, source=sources["hook"], signs_at_close=True):
            return empty(bringing.run, linger_s)


def empty(take: Callable[[], int], linger_s: float) -> int:
    """Take what waits, and what comes until nothing came for a while; how much that was."""
    done, until = take(), time.monotonic() + linger_s
    while time.monotonic() < until:
        time.sleep(_LOOK_S)
        if more := take():
            done, until = done + more, time.monotonic() + linger_s
    return done


def stay(spool: Spool, empty_it: Callable[[], int | None], doing: str) -> None:
    """Empty a spool, and look again: an event may have come at the last moment."""
    with contextlib.suppress(PermissionError):  # it leads a session already
        os.setsid()
    try:
        while empty_it() is not None and spool.names():
            pass
    except Exception as error:  # noqa: BLE001 - nobody reads what this process says
        spool.note(f"{doing}: {type(error).__name__}: {error}")


def main(ledger: str) -> None:
    """Bring in what waits for a ledger."""
    spool = open_spool(ledger)
    stay(spool, lambda: drain(ledger, spool, linger_s=LINGER_S), "drain")


if __name__ == "__main__":
    main(sys.argv[1])
