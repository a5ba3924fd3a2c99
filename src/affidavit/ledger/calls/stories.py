"""Telling what happened, in an order that a person follows."""

from __future__ import annotations

from affidavit.core.names import PAYLOAD_BYTES_MAX
from affidavit.ledger import provenance, stories
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, FindTail, TellStory, TraceFile, read_input
from affidavit.ledger.ports import Reader
from affidavit.ledger.provenance import Trace
from affidavit.ledger.stories import Step


class Stories(Handle):
    """Calls that tell stories."""

    def tell_story(
        self,
        session_id: str = REQUIRED,
        *,
        after: int | None = None,
        limit: int | None = None,
        text_bytes_max: int = PAYLOAD_BYTES_MAX,
    ) -> list[Step]:
        """The steps of a session in the order of the log, with what to doubt about them.

        A tool call is told with how it ended; a call nobody finished, and a claim that tests pass
        without a run of tests that was seen, are marked. `after` is the index of an entry.
        """
        wanted = read_input(
            TellStory,
            {
                "session_id": session_id,
                "after": after,
                "limit": limit,
                "text_bytes_max": text_bytes_max,
            },
        )
        now_us = self._context.clock()
        return self._read(lambda reader: stories.tell_story(reader, wanted, now_us))

    def find_tail(self, session_id: str = REQUIRED, count: int = 50) -> int | None:
        """The index behind which the last entries of a session lie; None where these are all."""
        wanted = read_input(FindTail, {"session_id": session_id, "count": count})

        def ask(reader: Reader) -> int | None:
            indices = reader.entry_indices(session_id=wanted.session_id, task_id=None)
            return indices[-wanted.count - 1] if len(indices) > wanted.count else None

        return self._read(ask)

    def trace_file(
        self, path: str = REQUIRED, *, line: str | None = None, limit: int = 20
    ) -> list[Trace]:
        """The recorded edits of a file, the newest first, each with the decision before it.

        With `line`, the text of a line, only those edits that wrote it.
        """
        wanted = read_input(TraceFile, {"path": path, "line": line, "limit": limit})
        root = self._context.project_root
        return self._read(lambda reader: provenance.trace_file(reader, wanted, root))
