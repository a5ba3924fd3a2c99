"""A spool and its ledger, for tests that play the events of hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import affidavit
from affidavit.apps import hook as taking
from affidavit.apps.hook_drain import drain
from surfaces.hook_events import ROOT


class Desk:
    """What is put in is brought in at once, unless it is to wait."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.spool = taking.open_spool(self.path)

    def put(self, says: Any, ppid: int = 7) -> None:
        """Leave an event in the spool, as a hook does."""
        body = says if isinstance(says, bytes) else json.dumps(says).encode()
        self.spool.put(json.dumps({"ppid": ppid, "root": ROOT}).encode(), body)

    def take(self, *events: Any) -> Any:
        """Bring events in; the ledger that has them."""
        for says in events:
            self.put(says)
        assert drain(self.path, self.spool, wait_s=30) is not None
        assert self.spool.names() == []
        return affidavit.open(self.path, readonly=True)

    def take_twice(self, *events: Any) -> tuple[int, int]:
        """Bring events in, and the very same again; how many entries there are after each."""
        for says in events:
            self.put(says)
        kept = [(name, *self.spool.read(name)) for name in self.spool.names()]
        with self.take() as ledger:
            once = len(ledger)
        for one in kept:
            self.spool.keep(*one)
        with self.take() as ledger:
            return once, len(ledger)
