"""Reading and changing the rules of a ledger."""

from __future__ import annotations

from msgspec import Struct

from affidavit.errors import invalid
from affidavit.ledger.handle import Handle
from affidavit.ledger.ports import Writer
from affidavit.ledger.settings import (
    SETTINGS,
    Value,
    change_settings,
    check_settings,
    read_by,
    read_settings,
)


class Settings(Handle):
    """Calls about settings."""

    @property
    def settings(self) -> dict[str, Value]:
        """The settings in force."""
        return self._read(read_settings)

    def set(
        self, *, by: str | None = None, idempotency_key: str | None = None, **changes: Value
    ) -> dict[str, Value]:
        """Change settings; every change is an entry. Answers with the settings then in force."""
        wanted = check_settings(changes)
        said_by = read_by(by)
        if not wanted:
            raise invalid("settings", f"name one of {', '.join(SETTINGS)}")
        src = self._context.src

        def unit(tx: Writer) -> tuple[dict[str, Value], int, int]:
            first, last = change_settings(tx, wanted, said_by, src)
            return read_settings(tx), first, last

        def replay(tx: Writer, first: int, last: int) -> dict[str, Value]:
            del first
            return read_settings(tx, last + 1)

        return self._write(_Change(wanted, said_by), unit, replay, idempotency_key)


class _Change(Struct):
    changes: dict[str, Value]
    by: str | None
