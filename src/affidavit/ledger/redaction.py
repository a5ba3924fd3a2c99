"""Secrets go out of every text before it is stored, unless a setting of the ledger keeps them in.

The work is done before the write lock; under it only the setting is asked, and only where there was
something to remove.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, structs

from affidavit.core.redact import RULES, redact_text
from affidavit.ledger.ports import Writer
from affidavit.ledger.settings import setting

G = TypeVar("G", bound=Struct)

# The fields of a call that a person or a model writes freely.
_FREE: Final = ("content", "title", "description", "reason", "intent")


class Cleaned(NamedTuple):
    """What a call gave, without the secrets in it."""

    given: Any
    removed: int


def clean(given: Struct) -> Cleaned:
    """A call's input as it may be stored, and how many secrets that took."""
    changes, total = {}, 0
    for name in _FREE:
        text = getattr(given, name, None)
        if isinstance(text, str):
            kept, count = redact_text(text)
            if count:
                changes[name] = kept
                total += count
    return Cleaned(structs.replace(given, **changes) if changes else given, total)


def choose(tx: Writer, given: G, cleaned: Cleaned) -> tuple[G, int]:
    """What is stored, and how many secrets were removed from it."""
    if cleaned.removed == 0 or is_off(tx):
        return given, 0
    return cleaned.given, cleaned.removed


def is_off(tx: Writer) -> bool:
    """Whether this ledger stores texts as they come."""
    return setting(tx, "redaction") == "off"


def noted(count: int) -> dict[str, Any]:
    """What a body says of it."""
    return {"redaction": {"count": count, "rules": RULES}} if count else {}
