"""Entries as a person reads them: the log's own words, with the texts that belong to them.

Nothing here trusts what it reads: an entry that was damaged is listed with what is wrong with it,
so that a story can be told, and its broken place shown, after somebody edited the file.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Final

from affidavit.errors import IntegrityViolation
from affidavit.ledger.inputs import ListEntries
from affidavit.ledger.ports import Reader
from affidavit.ledger.results import LogEntry

# Told that more would follow, it leaves a character out that was cut in two.
_DECODER: Final = codecs.getincrementaldecoder("utf-8")


def list_entries(reader: Reader, wanted: ListEntries) -> list[LogEntry]:
    """Entries in log order: all, or those that name a session or a task."""
    after = -1 if wanted.after is None else wanted.after
    indices: Sequence[int]
    if wanted.session_id is None and wanted.task_id is None:
        indices = range(after + 1, reader.size())
    else:
        found = reader.entry_indices(session_id=wanted.session_id, task_id=wanted.task_id)
        indices = [index for index in found if index > after]
    return [read_entry(reader, index, wanted.text_bytes_max) for index in indices[: wanted.limit]]


def read_entry(reader: Reader, index: int, text_bytes_max: int) -> LogEntry:
    """One entry, or what is wrong with it."""
    try:
        at, kind, body, src = reader.entry(index)
    except IntegrityViolation as error:
        return LogEntry(index, None, None, {}, None, None, None, {}, damage=error.message)
    # One byte more than asked for tells whether there is more.
    raw = reader.texts(index, kind, text_bytes_max + 1)
    cut = tuple(name for name, text in raw.items() if text and len(text) > text_bytes_max)
    texts = {
        name: None if text is None else _decode(text[:text_bytes_max], is_cut=name in cut)
        for name, text in raw.items()
    }
    return LogEntry(index, at, kind, body, *src, texts, cut)


def _decode(text: bytes, *, is_cut: bool) -> str | None:
    """Nobody can record an empty text: an empty one was erased, or it is lost."""
    return _DECODER("replace").decode(text, final=not is_cut) or None
