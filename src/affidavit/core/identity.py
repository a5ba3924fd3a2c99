"""The name a log goes by and the keys that sign for it, as its own entries tell.

    ledger.created   origin                the first name
    origin.changed   origin                the name from here on
    key.added        vkey                  signs from here on, under the name in the key
    key.retired      vkey                  signs no more

A checkpoint of size n goes by the name, and is signed by the keys, that the entries below n tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.note import VerifierKey, parse_verifier_key


class Span(NamedTuple):
    """From which entry on a key signs, and up to which."""

    added: int
    retired: int | None = None


class Identity(NamedTuple):
    """The log's name, and every key of that name with its time, oldest first."""

    origin: str
    spans: dict[VerifierKey, Span]

    @property
    def keys(self) -> tuple[VerifierKey, ...]:
        """The keys that sign."""
        return tuple(key for key, span in self.spans.items() if span.retired is None)


def derive_identity(created: Entry, changes: Iterable[tuple[int, Entry]]) -> Identity:
    """The identity after these entries, which stand in log order, each with its index."""
    origin, spans = str(created.body["origin"]), dict[VerifierKey, Span]()
    for index, entry in changes:
        if entry.kind == "origin.changed":
            origin = entry.body["origin"]
            continue
        key = parse_verifier_key(entry.body["vkey"])
        if entry.kind == "key.added":
            spans.setdefault(key, Span(index))
        elif key in spans:
            spans[key] = spans[key]._replace(retired=index)
    return Identity(origin, {key: span for key, span in spans.items() if key.name == origin})
