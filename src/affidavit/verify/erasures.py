"""What the log says was erased: what is gone with a word is not lost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from affidavit.core.entry import decode_entry
from affidavit.core.moment import render_time
from affidavit.errors import InputError
from affidavit.verify.ports import LedgerSource


class Erased(NamedTuple):
    """The entry that says so, and when that was."""

    by_index: int
    erased_at: str


class Erasures:
    """Every field that a `payload.erased` names.

    The view leads to these entries; the log is searched for others only when a text is gone that
    none of them names, because the view may have been changed.
    """

    def __init__(self, source: LedgerSource) -> None:
        self._source = source
        self._found: dict[tuple[int, str], Erased] = {}
        self._searched = False
        self._add(source.erasures(scan=False))

    def _add(self, entries: Iterable[tuple[int, bytes, Any, Any]]) -> None:
        for index, data, fields, at in entries:
            try:
                read = decode_entry(data)
            except InputError:
                # That entry is told of by itself; its row is taken for what was recorded.
                self._add_fields(index, at, fields)
                continue
            if read.kind == "payload.erased":
                self._add_fields(index, read.at, read.body["fields"])

    def _add_fields(self, index: int, at: Any, fields: Any) -> None:
        try:
            said = Erased(index, render_time(at))
            named = json.loads(fields) if isinstance(fields, str) else fields
            for target, name in named:
                self._found.setdefault((target, name), said)
        except (TypeError, ValueError):
            pass  # a row that was damaged as well

    def __len__(self) -> int:
        return len(self._found)

    def find(self, index: int, name: str, *, is_gone: bool) -> Erased | None:
        """Where it says that this payload of an entry was erased."""
        if is_gone and not self._searched and (index, name) not in self._found:
            self._searched = True
            self._add(self._source.erasures(scan=True))
        return self._found.get((index, name))
