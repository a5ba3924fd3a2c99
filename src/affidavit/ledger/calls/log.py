"""Reading the log itself, entry by entry."""

from __future__ import annotations

from affidavit.core.names import PAYLOAD_BYTES_MAX
from affidavit.errors import invalid
from affidavit.ledger.entries import list_entries, read_entry
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import ListEntries, NewestThoughts, read_input
from affidavit.ledger.ports import Reader
from affidavit.ledger.results import LogEntry


class Log(Handle):
    """Calls about the log."""

    def list_entries(
        self,
        *,
        session_id: str | None = None,
        task_id: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        text_bytes_max: int = PAYLOAD_BYTES_MAX,
    ) -> list[LogEntry]:
        """Entries in log order, of one session or task where it is named; `after` is an index."""
        wanted = read_input(
            ListEntries,
            {
                "session_id": session_id,
                "task_id": task_id,
                "after": after,
                "limit": limit,
                "text_bytes_max": text_bytes_max,
            },
        )
        if wanted.session_id is not None and wanted.task_id is not None:
            raise invalid("session_id", "give task_id or session_id, not both")
        return self._read(lambda reader: list_entries(reader, wanted))

    def newest_thoughts(
        self, *, limit: int = 10, text_bytes_max: int = PAYLOAD_BYTES_MAX
    ) -> list[LogEntry]:
        """The entries of the newest records, the newest first."""
        wanted = read_input(NewestThoughts, {"limit": limit, "text_bytes_max": text_bytes_max})

        def ask(reader: Reader) -> list[LogEntry]:
            indices = reader.newest_thoughts(wanted.limit)
            return [read_entry(reader, index, wanted.text_bytes_max) for index in indices]

        return self._read(ask)
