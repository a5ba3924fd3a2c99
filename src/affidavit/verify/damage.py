"""Where the log itself cannot be believed: rows that belong there are traces, not strays."""

from __future__ import annotations

from typing import Final

_KEPT_MAX: Final = 100_000


class Damage:
    """Entries that are no entries any more, and stretches of the log that are missing."""

    def __init__(self) -> None:
        self._entries: set[int] = set()
        self._gaps: list[tuple[int, int]] = []

    def add_entry(self, index: int) -> None:
        """Note an entry that says something other than what was recorded."""
        if len(self._entries) < _KEPT_MAX:
            self._entries.add(index)

    def add_gap(self, start: int, end: int) -> None:
        """Note that entries are missing, `end` not included."""
        if len(self._gaps) < _KEPT_MAX:
            self._gaps.append((start, end))

    def is_damaged(self, index: int) -> bool:
        """Whether the entry at this index was changed; past a limit nobody remembers."""
        return index in self._entries or len(self._entries) >= _KEPT_MAX

    def is_missing(self, index: int) -> bool:
        """Whether the entry at this index is gone."""
        return any(start <= index < end for start, end in self._gaps)
