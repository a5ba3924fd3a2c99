"""Rows of `erasures`: which texts were erased, by whom and why."""

from __future__ import annotations

import json
from typing import NamedTuple

from affidavit.core.entry import Entry
from affidavit.core.views.payload import Payload


class ErasureRow(NamedTuple):
    """A row of `erasures`; `fields` is the list of the entry as JSON."""

    log_index: int
    fields: str
    field_count: int
    erased_by: str
    reason: str | None
    reason_salt: bytes | None
    at: int


def erasure_row(index: int, entry: Entry, reason: Payload) -> ErasureRow:
    """The row of `payload.erased`."""
    body = entry.body
    return ErasureRow(
        log_index=index,
        fields=json.dumps(body["fields"], separators=(",", ":")),
        field_count=body["field_count"],
        erased_by=body["by"],
        reason=reason.text,
        reason_salt=reason.salt,
        at=entry.at,
    )
