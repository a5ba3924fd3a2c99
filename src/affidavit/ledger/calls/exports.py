"""Handing out parts of the log: as evidence files, and all of it as lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from affidavit.core.bundle import Scope
from affidavit.errors import invalid
from affidavit.ledger import export
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import Export, read_callable, read_input


class Exports(Handle):
    """Calls that hand out what was recorded."""

    def export(
        self,
        *,
        session_id: str | None = None,
        task_id: str | None = None,
        record_id: str | None = None,
        range: str | None = None,
        withhold: Collection[str] = (),
    ) -> bytes:
        """An evidence file of one session, task or record, or of the entries `A:B`, B not included.

        It ends at a checkpoint that is signed now. `withhold` names payload fields to keep back.
        """
        return b"".join(
            self.iter_export(
                session_id=session_id,
                task_id=task_id,
                record_id=record_id,
                range=range,
                withhold=withhold,
            )
        )

    def iter_export(
        self,
        *,
        session_id: str | None = None,
        task_id: str | None = None,
        record_id: str | None = None,
        range: str | None = None,
        withhold: Collection[str] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[bytes]:
        """The same evidence file in pieces, however large it is.

        `progress` is told now and then how much is done, and of how much.
        """
        parts = {
            "session_id": session_id, "task_id": task_id, "record_id": record_id, "range": range,
        }  # fmt: skip
        scope, fields = self._read_export(parts, withhold)
        shown = read_callable(progress, "progress")
        return export.export(self._context, scope, fields, shown)

    def iter_jsonl(self) -> Iterator[bytes]:
        """The whole log as lines, oldest first: each entry with its index and payloads."""
        with self._context.store.read() as reader:
            yield from export.iter_lines(reader)

    def _read_export(
        self, parts: dict[str, str | None], withhold: Collection[str]
    ) -> tuple[Scope, Collection[str]]:
        fields = [withhold] if isinstance(withhold, str) else withhold
        given = read_input(Export, {**parts, "withhold": fields})
        named = [(name, getattr(given, name)) for name in parts]
        chosen = [(name, text) for name, text in named if text is not None]
        if len(chosen) != 1:
            raise invalid(
                "session_id",
                f"{len(chosen)} parts are named, not one",
                hint="Name a session, a task, a record, or a range of entries.",
            )
        unknown = sorted(set(given.withhold) - export.FIELDS)
        if unknown:
            raise invalid(
                "withhold",
                f"{unknown[0]!r:.60} is no payload field",
                hint=f"Fields are {', '.join(sorted(export.FIELDS))}.",
            )
        [(name, text)] = chosen
        return Scope(name.removesuffix("_id"), text), given.withhold
