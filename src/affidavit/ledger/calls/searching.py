"""Finding what was written."""

from __future__ import annotations

from affidavit.ledger import searching
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, Search, read_input
from affidavit.ledger.results import SearchHit


class Searching(Handle):
    """Calls that search."""

    def search(
        self,
        query: str = REQUIRED,
        *,
        kind: str | None = None,
        session_id: str | None = None,
        task_id: str | None = None,
        since_us: int | None = None,
        until_us: int | None = None,
        limit: int = 20,
    ) -> list[SearchHit]:
        """Texts that hold all the words, the best first; `word*` finds every word beginning so.

        `kind` is an entry's kind (`thought.recorded`) or its noun (`thought`).
        """
        wanted = read_input(
            Search,
            {
                "query": query,
                "kind": kind,
                "session_id": session_id,
                "task_id": task_id,
                "since_us": since_us,
                "until_us": until_us,
                "limit": limit,
            },
        )
        return list(searching.search(self._context, wanted).hits)
