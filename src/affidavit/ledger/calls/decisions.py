"""Recording and reading decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET, Struct

from affidavit.core.moment import render_time
from affidavit.errors import InputError, invalid
from affidavit.ledger import results, thoughts
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import (
    REQUIRED,
    THOUGHTS_MAX,
    ListThoughts,
    RecordThought,
    convert,
    read_callable,
    read_id,
    read_input,
    read_timestamp,
)
from affidavit.ledger.ports import Writer
from affidavit.ledger.results import ThoughtRecord

_PAGE: Final = 1_000
# So many records are written in a few milliseconds.
_QUICK: Final = 100


class Decisions(Handle):
    """Calls about thoughts."""

    def record_thought(
        self,
        *,
        type: str = REQUIRED,
        task_id: str = REQUIRED,
        agent_id: str = REQUIRED,
        content: str = REQUIRED,
        session_id: str | None = None,
        idempotency_key: str | None = None,
        id_fn: Callable[[], str] | None = None,
        now_fn: Callable[[], str] | None = None,
    ) -> ThoughtRecord:
        """Record one decision: a plan, an analysis, a decision or a reflection."""
        given = read_input(
            RecordThought,
            {
                "type": type,
                "task_id": task_id,
                "agent_id": agent_id,
                "content": content,
                "session_id": session_id,
            },
        )
        mint, now = read_callable(id_fn, "id_fn"), read_callable(now_fn, "now_fn")
        record_id = self._context.new_id() if mint is None else read_id(mint())
        timestamp = self._minted() if now is None else read_timestamp(now())
        drafts = [thoughts.draft(given, record_id, timestamp)]
        src = self._context.src

        def unit(tx: Writer) -> tuple[ThoughtRecord, int, int]:
            [row] = thoughts.write_thoughts(tx, drafts, src)
            return results.thought_record(row), row.log_index, row.log_index

        return self._write(given, unit, _replay_thought, idempotency_key)

    def record_thoughts(
        self, records: Iterable[Mapping[str, Any]] = REQUIRED, *, idempotency_key: str | None = None
    ) -> list[ThoughtRecord]:
        """Record several decisions as one unit, all or nothing, at most 10,000."""
        given = _read_records(_bounded(records))
        timestamp, new_id = self._minted(), self._context.new_id
        drafts = [thoughts.draft(one, new_id(), timestamp) for one in given]
        src = self._context.src

        def unit(tx: Writer) -> tuple[list[ThoughtRecord], int, int]:
            rows = thoughts.write_thoughts(tx, drafts, src)
            found = [results.thought_record(row) for row in rows]
            last = tx.size() - 1
            return found, last + 1 - len(rows), last

        if not drafts and idempotency_key is None:
            return []
        quick = len(drafts) <= _QUICK
        return self._write(_Batch(given), unit, _replay_thoughts, idempotency_key, quick=quick)

    def _minted(self) -> str:
        """A timestamp from the ledger's clock, for callers who inject none."""
        return render_time(self._context.clock())

    def get_thought(self, id: str = REQUIRED) -> ThoughtRecord | None:
        """A record by its id, or None."""
        record_id = read_id(id)
        row = self._read(lambda reader: reader.find_thought(record_id))
        return None if row is None else results.thought_record(row)

    def list_thoughts(
        self,
        *,
        task_id: str | None = None,
        session_id: str | None = None,
        type: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[ThoughtRecord]:
        """Records in the order they were written; `after` is the id of the last one seen."""
        wanted = read_input(
            ListThoughts,
            {
                "task_id": task_id,
                "session_id": session_id,
                "type": type,
                "after": after,
                "limit": limit,
            },
        )
        return self._read(
            lambda reader: thoughts.list_thoughts(
                reader, wanted, after=thoughts.find_place(reader, wanted.after), limit=wanted.limit
            )
        )

    def iter_thoughts(
        self,
        *,
        task_id: str | None = None,
        session_id: str | None = None,
        type: str | None = None,
        after: str | None = None,
    ) -> Iterator[ThoughtRecord]:
        """Stream records in the order they were written, up to the newest at the first step."""
        wanted = read_input(
            ListThoughts,
            {"task_id": task_id, "session_id": session_id, "type": type, "after": after},
        )
        return self._stream(wanted)

    def _stream(self, wanted: ListThoughts) -> Iterator[ThoughtRecord]:
        place, end = self._read(
            lambda reader: (thoughts.find_place(reader, wanted.after), reader.size())
        )
        while True:
            with self._context.store.read() as reader:
                page = thoughts.list_thoughts(reader, wanted, after=place, end=end, limit=_PAGE)
            yield from page
            if len(page) < _PAGE:
                return
            place = page[-1].index


class _Batch(Struct):
    records: list[RecordThought]


def _read_records(records: list[Any]) -> list[RecordThought]:
    try:
        return [convert(RecordThought, item) for item in records]
    except InputError:  # once more, to say which of them it is
        return [
            convert(RecordThought, item, f"records[{place}].") for place, item in enumerate(records)
        ]


def _bounded(records: Any) -> list[Any]:
    if records is UNSET:
        raise invalid("records", "is missing")
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise invalid("records", "is not a list of dicts")
    found: list[Any] = []
    for item in records:
        found.append(item)
        if len(found) > THOUGHTS_MAX:
            raise invalid(
                "records", f"more than {THOUGHTS_MAX:,} in one call", code="ERR_TOO_LARGE"
            )
    return found


def _replay_thought(tx: Writer, first: int, last: int) -> ThoughtRecord:
    return results.thought_record(tx.thoughts_between(first, last)[0])


def _replay_thoughts(tx: Writer, first: int, last: int) -> list[ThoughtRecord]:
    return [results.thought_record(row) for row in tx.thoughts_between(first, last)]
