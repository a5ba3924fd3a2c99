"""A text that is kept beside the log, where it may be erased."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Payload(NamedTuple):
    """A text that somebody wrote, and the salt of the commitment to it."""

    text: str | None
    salt: bytes | None


NO_PAYLOAD: Final = Payload(None, None)
# Callers' JSON stands in columns that say so.
_JSON: Final = frozenset(("arguments", "outcome", "diffs", "attributes"))


def payload_column(field: str) -> str:
    """The column a payload field stands in; its salt is in the one with `_salt` behind it."""
    return f"{field}_json" if field in _JSON else field


def payload_values(
    fields: tuple[str, ...], payloads: Mapping[str, Payload]
) -> dict[str, str | bytes | None]:
    """The columns of payload fields, texts and salts, null where there is none."""
    values: dict[str, str | bytes | None] = {}
    for field in fields:
        column = payload_column(field)
        values[column], values[f"{column}_salt"] = payloads.get(field, NO_PAYLOAD)
    return values


def read_payload(row: object, field: str) -> Payload:
    """What a row keeps of a payload field."""
    column = payload_column(field)
    return Payload(getattr(row, column, None), getattr(row, f"{column}_salt", None))
