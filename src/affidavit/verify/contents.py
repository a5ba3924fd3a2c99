"""Payloads of an evidence file: each text is the one its entry commits to, or is accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from affidavit.core.bundle import PAYLOADS, Shown, payload_fields
from affidavit.core.entry import Entry, is_commitment_to
from affidavit.verify.findings import Findings
from affidavit.verify.thoughts import hashes_hold

_THOUGHT: Final = "thought.recorded"
_ERASED: Final = "payload.erased"

Lines = Iterator[tuple[int, Mapping[str, Shown]]]


class PayloadCheck:
    """Every payload field of every entry has its line, and no line is of anything else.

    Entries and lines come in the order of the log, so that both are gone through side by side. What
    is said to be erased waits for the entry that must say so, which stands behind it.
    """

    def __init__(self, lines: Lines, findings: Findings) -> None:
        self._lines = lines
        self._next = next(lines, None)
        self._findings = findings
        self._waiting: dict[int, list[tuple[int, str]]] = {}
        self._counts = {"texts": 0, "erased": 0, "withheld": 0}
        # The entries that are named as having erased something, whoever names them.
        self.erasers: set[int] = set()

    def check(self, index: int, entry: Entry | None) -> None:
        """The next entry; None where it cannot be believed, so that nothing is said of its line."""
        shown = self._shown_of(index)
        if entry is None:
            return
        names = payload_fields(entry.kind, entry.body)
        for name in names:
            if name not in shown:
                said = f"{name} is neither there nor marked erased or withheld"
                self._findings.add("payload_lost", index, f"{PAYLOADS} {name}", said)
            else:
                self._check_field(index, name, entry, shown[name])
        for name in sorted(shown.keys() - set(names)):
            said = f"the entry has no payload {name!r:.60}"
            self._findings.add("view_extra", index, f"{PAYLOADS} {name}"[:200], said)
        if entry.kind == _ERASED:
            self._resolve(index, entry.body["fields"])

    def _shown_of(self, index: int) -> Mapping[str, Shown]:
        """The line of an entry; lines before it are of entries that are not there."""
        while self._next is not None and self._next[0] < index:
            self._say_extra(*self._next)
            self._next = next(self._lines, None)
        if self._next is None or self._next[0] > index:
            return {}
        shown = self._next[1]
        self._next = next(self._lines, None)
        self._note_erasers(shown)
        return shown

    def _say_extra(self, index: int, shown: Mapping[str, Shown]) -> None:
        self._note_erasers(shown)
        self._findings.add("view_extra", index, PAYLOADS, "payloads of an entry that is not there")

    def _note_erasers(self, shown: Mapping[str, Shown]) -> None:
        self.erasers |= {one.erased for one in shown.values() if one.erased is not None}

    def _check_field(self, index: int, name: str, entry: Entry, shown: Shown) -> None:
        if shown.erased is not None:
            if shown.erased > index:
                self._waiting.setdefault(shown.erased, []).append((index, name))
            else:
                self._say_unexplained(shown.erased, index, name)
        elif shown.text is None:
            self._counts["withheld"] += 1
        elif _is_text_of(name, entry, shown, shown.text):
            self._counts["texts"] += 1
        else:
            said = f"{name} is not the text that was recorded"
            self._findings.add("payload_mismatch", index, f"{PAYLOADS} {name}", said)

    def _resolve(self, at: int, fields: Any) -> None:
        """An entry that says what was erased: what waited for it is explained, or is not."""
        waiting = self._waiting.pop(at, [])
        said = {tuple(field) for field in fields} if waiting else ()
        for index, name in waiting:
            if (index, name) in said:
                self._counts["erased"] += 1
            else:
                self._say_unexplained(at, index, name)

    def _say_unexplained(self, at: int, index: int, name: str) -> None:
        said = f"entry {at} does not say that {name} was erased"
        self._findings.add("erasure_unexplained", index, f"{PAYLOADS} {name}", said)

    def finish(self, checked: dict[str, int], unchecked: list[str]) -> None:
        """What is left over, and how much was checked."""
        while self._next is not None:
            self._say_extra(*self._next)
            self._next = next(self._lines, None)
        for at, waiting in self._waiting.items():
            for index, name in waiting:
                self._say_unexplained(at, index, name)
        checked["payloads"] = self._counts["texts"]
        for what in ("erased", "withheld"):
            if self._counts[what]:
                whose = "by the ledger's owner" if what == "erased" else "by whoever made the file"
                unchecked.append(f"{self._counts[what]:,} payloads {what} {whose}")


def _is_text_of(name: str, entry: Entry, shown: Shown, text: str) -> bool:
    if entry.kind == _THOUGHT:
        return shown.salt is None and bool(text) and hashes_hold(entry.body, text)
    return is_commitment_to(entry.body[name], shown.salt, text)
