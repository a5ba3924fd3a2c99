"""From the spool into the ledger, in the order of arrival.

Events go in stretches, each one unit of the ledger; a file leaves the spool only when its facts are
durable, so that whoever is killed in between does it again, which changes nothing. What the ledger
refuses is laid aside and counted as dropped; while the ledger cannot be used, everything waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any, Final

from affidavit.capture.hooks.event import Event, name_of
from affidavit.capture.hooks.facts import PROBE, record
from affidavit.capture.hooks.losses import find_lost, settle_lost
from affidavit.capture.hooks.runs import CHANNEL
from affidavit.capture.hooks.spool import Spool
from affidavit.capture.proxy import facts as proxy
from affidavit.errors import AffidavitError, StoreError
from affidavit.ledger.ledger import Ledger

# From a project's root to its ledger, for facts of a channel.
OpenLedger = Callable[[str, str], AbstractContextManager[Ledger]]

_STRETCH: Final = 32
_STRETCH_BYTES_MAX: Final = 4_000_000
# A few bytes make an object of many: 64 MiB of them would take two gigabytes, and again after that.
_OBJECTS_MAX: Final = 4_000_000
# How long after `/clear` a new id of the same window belongs to the same run.
_CLEARED_MS: Final = 60_000


class Drain:
    """Empties one spool; make one only while holding the spool."""

    def __init__(self, spool: Spool, open_ledger: OpenLedger) -> None:
        self._spool = spool
        self._open = open_ledger
        self._cleared_file = spool.folder / "cleared.json"

    def run(self) -> int:
        """Bring in everything that waits; how many events that were."""
        done = 0
        for name in self._spool.find_unfinished(time.time()):
            self._lay_aside(name, "half-written")
        for channel in (CHANNEL, proxy.CHANNEL):
            if (unkept := find_lost(self._spool.folder, channel)) is not None:
                with self._open("", CHANNEL) as ledger:
                    ledger.note_dropped(channel, *unkept)
                settle_lost(self._spool.folder, unkept, channel)
        while names := self._spool.names():
            done += self._take(names)
        return done

    def _take(self, names: list[str]) -> int:
        events, size = [], 0
        for name in names[:_STRETCH]:
            event, read = self._read(name)
            size += read
            if event is not None:
                events.append(event)
            if size > _STRETCH_BYTES_MAX:
                break
        for _, some in groupby(events, lambda event: (event.root, event.channel)):
            self._record(list(some))
        return len(events)

    def _read(self, name: str) -> tuple[Event | None, int]:
        head, body = self._spool.read(name)
        try:
            if body.count(b"{") + body.count(b"[") > _OBJECTS_MAX:
                raise ValueError(f"it has more than {_OBJECTS_MAX:,} objects")
            about, says = json.loads(head), json.loads(body.decode(errors="replace"))
            if not isinstance(says, dict):
                raise TypeError(f"is {type(says).__name__}, not an object")
            about = {"ppid": 0, "root": "", **about}
            says.setdefault("hook_event_name", "(without a name)")
        except (ValueError, TypeError, RecursionError) as error:
            self._lay_aside(name, f"cannot be read: {error}")
            return None, 0
        at_ms = int(name.split("-", 1)[0]) // 1_000_000
        channel = proxy.CHANNEL if about.get("channel") == proxy.CHANNEL else CHANNEL
        event = Event(name, at_ms, str(about["root"]), says, channel)
        self._remember(event, about["ppid"])
        return event, len(body)

    def _record(self, events: list[Event]) -> None:
        try:
            self._unit(events)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad event must not stop the others
            if len(events) > 1:
                for event in events:
                    self._record([event])
            else:
                one = events[0]
                self._lay_aside(one.id, f"{one.name}: {_said(error)}", one.channel)

    def _unit(self, events: list[Event]) -> None:
        first = events[0]
        with self._open(first.root, first.channel) as ledger, ledger.transaction() as tx:
            for event in events:
                if event.channel == proxy.CHANNEL:
                    proxy.record(tx, event)
                else:
                    record(tx, event, self._find_cleared(event))
        for event in events:
            if event.name == PROBE:
                self._spool.answer(event.id)
        self._spool.remove([event.id for event in events])

    def _lay_aside(self, name: str, why: str, channel: str = CHANNEL) -> None:
        self._drop([int(name.split("-", 1)[0]) // 1_000_000], why, channel)
        self._spool.refuse(name)

    def _drop(self, times_ms: list[int], why: str, channel: str = CHANNEL) -> None:
        self._spool.note(f"{len(times_ms)} dropped, {why}")
        with self._open("", CHANNEL) as ledger:
            ledger.note_dropped(channel, len(times_ms), min(times_ms), max(times_ms))

    def _remember(self, event: Event, ppid: Any) -> None:
        """`/clear` gives the run of a window a new id, and does not say which one it had."""
        asked = name_of(event.says.get("prompt_id"))  # both events of one `/clear` have the same
        where = f"{name_of(str(ppid))} {name_of(event.says.get('cwd'))}"
        window = where if asked is None else f"prompt {asked}"
        if event.name == "SessionEnd" and event.says.get("reason") == "clear" and event.run:
            known = self._cleared()
            known[window] = [event.run, event.at_ms]
            self._keep(known)
        elif event.name == "SessionStart" and event.says.get("source") == "clear" and event.run:
            known = self._cleared()
            before = known.pop(window, None)
            if before is not None and 0 <= event.at_ms - before[1] < _CLEARED_MS:
                known[f"after {event.run}"] = [before[0], event.at_ms]
            self._keep(known)

    def _find_cleared(self, event: Event) -> str | None:
        if event.name != "SessionStart" or event.says.get("source") != "clear":
            return None
        found = self._cleared().get(f"after {event.run}")
        return None if found is None else str(found[0])

    def _cleared(self) -> dict[str, Any]:
        try:
            known: dict[str, Any] = json.loads(self._cleared_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known

    def _keep(self, known: dict[str, Any]) -> None:
        newest = sorted(known.items(), key=lambda item: item[1][1])[-100:]
        fresh = self._cleared_file.with_suffix(".part")
        fresh.write_text(json.dumps(dict(newest)), encoding="utf-8")
        fresh.replace(self._cleared_file)


def _said(error: Exception) -> str:
    if isinstance(error, AffidavitError):
        return f"{error.code}: {error.message}"
    return f"{type(error).__name__}: {error}"
