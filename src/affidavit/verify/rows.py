"""View rows and payloads: each row must be what its entry, derived again, says it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from affidavit.core.entry import Entry, decode_entry, is_commitment_to
from affidavit.core.views import (
    LINKS,
    NO_PAYLOAD,
    ROW_OF_KIND,
    TABLES,
    Payload,
    SessionRow,
    TaskRow,
    payload_columns,
    seal_row,
    session_row,
    setting_row,
    task_row,
)
from affidavit.errors import InputError
from affidavit.verify.findings import Findings
from affidavit.verify.ports import LedgerSource, RawRow, Repairer

_COUNTED: Final = {
    "thought_records": "thoughts",
    "sessions": "sessions",
    "seals": "seals",
    "task_versions": "tasks",
    "setting_changes": "settings",
}


class Cursor:
    """Rows of one view in log order, taken one index at a time; the skipped belong to no entry."""

    def __init__(self, rows: Iterator[RawRow]) -> None:
        self._rows = rows
        self._next: RawRow | None = next(rows, None)
        self._skipped: list[int] = []

    def take(self, index: int) -> RawRow | None:
        """The row of this entry, if it has one."""
        row = self._next
        if row is not None and row[0] == index:
            self._next = next(self._rows, None)
            return row
        while row is not None and row[0] < index:
            self._skipped.append(row[0])
            row = self._next = next(self._rows, None)
        return self.take(index) if row is not None and row[0] == index else None

    def leftovers(self) -> Iterator[int]:
        """The index of every row that no entry asked for."""
        yield from self._skipped
        if self._next is not None:
            yield self._next[0]
        yield from (row[0] for row in self._rows)


class RowCheck:
    """Compares the views with what the log says they are."""

    def __init__(self, source: LedgerSource, findings: Findings, repairer: Repairer) -> None:
        self._source = source
        self._findings = findings
        self._repairer = repairer
        self._cursors = {table: Cursor(source.rows(table)) for table in TABLES.values()}
        self.thoughts = self._cursors["thought_records"]
        self.checked = dict.fromkeys((*_COUNTED.values(), "payloads"), 0)

    def count(self, table: str) -> None:
        """One more row looked at."""
        self.checked[_COUNTED[table]] += 1

    def check(self, index: int, read: Entry) -> None:
        """The row of an entry of any kind but a thought."""
        row_type = ROW_OF_KIND[read.kind]
        table = TABLES[row_type]
        self.count(table)
        raw = self._cursors[table].take(index)
        if raw is None:
            self._findings.add("view_missing", index, table, f"the {read.kind} has no row")
        actual = None if raw is None else row_type._make(raw)
        before = self._task_before(index, read)
        payloads = self._check_payloads(index, read, table, actual)
        if (row_type is TaskRow) and (before is None) != (read.kind == "task.created"):
            said = "a task was created twice" if before else "the task was never created"
            self._findings.add("chain_broken", index, table, said)
            return
        expected = self._with_links(derive(index, read, payloads, before), actual)
        if actual != expected:
            if actual is not None:
                self._say_differences(index, table, actual, expected)
            self._repairer.put_row(expected)
            if before is not None:
                self._repairer.put_row(before._replace(superseded_by=index))

    def _task_before(self, index: int, read: Entry) -> TaskRow | None:
        if ROW_OF_KIND[read.kind] is not TaskRow:
            return None
        raw = self._source.task_before(read.body["task_id"], index)
        return None if raw is None else TaskRow._make(raw)

    def _check_payloads(
        self, index: int, read: Entry, table: str, actual: Any
    ) -> dict[str, Payload]:
        found: dict[str, Payload] = {}
        for name in payload_columns(read.kind):
            committed = read.body.get(name)
            if committed is None:
                continue
            payload = Payload(getattr(actual, name, None), getattr(actual, f"{name}_salt", None))
            found[name] = payload
            self.checked["payloads"] += 1
            if payload.text is None:
                self._findings.add("payload_lost", index, f"{table}.{name}", f"{name} is gone")
            elif not is_commitment_to(committed, payload.salt, payload.text):
                said = f"{name} is not what was committed to"
                self._findings.add("payload_mismatch", index, f"{table}.{name}", said)
        return found

    def _with_links(self, expected: Any, actual: Any) -> Any:
        """The derived row with the links that later entries call for."""
        if isinstance(expected, TaskRow):
            after = self._source.task_after(expected.id, expected.log_index)
            return expected._replace(superseded_by=after)
        if isinstance(actual, SessionRow) and self._ends_truly(actual):
            return expected._replace(**{name: getattr(actual, name) for name in LINKS["sessions"]})
        return expected

    def _ends_truly(self, actual: SessionRow) -> bool:
        """Whether the end a session's row tells of is in the log."""
        if actual.ended_index is None:
            return False
        end = read_end(self._source, actual.ended_index, actual.session_id)
        return end is not None and end == (actual.ended_at, actual.end_reason)

    def _say_differences(self, index: int, table: str, actual: Any, expected: Any) -> None:
        for name, is_value, must_be in zip(actual._fields, actual, expected, strict=True):
            if is_value != must_be:
                said = f"{name} differs from what the log says"
                self._findings.add("view_differs", index, f"{table}.{name}", said)

    def check_end(self, index: int, read: Entry) -> None:
        """That a session's row points at its end."""
        raw = self._source.session_start(read.body["session_id"])
        if raw is None:
            return
        row = SessionRow._make(raw)
        if row.ended_index == index:
            return
        self._findings.add(
            "view_differs", index, "sessions.ended_index", "the session's row knows no such end"
        )
        self._repairer.put_row(
            row._replace(
                ended_index=index,
                ended_at=read.body["ended_at"],
                end_reason=read.body["reason"],
            )
        )

    def check_extras(self) -> None:
        """Rows that belong to no entry."""
        for table, cursor in self._cursors.items():
            for index in cursor.leftovers():
                said = f"a row of {table} belongs to no entry"
                self._findings.add("view_extra", index, table, said)
                self._repairer.delete_row(table, index)


def derive(index: int, read: Entry, payloads: dict[str, Payload], before: TaskRow | None) -> Any:
    """The row of an entry of any kind but a thought."""
    if read.kind == "session.started":
        return session_row(index, read, payloads.get("intent", NO_PAYLOAD))
    if read.kind == "session.sealed":
        return seal_row(index, read)
    if read.kind == "setting.changed":
        return setting_row(index, read)
    return task_row(index, read, payloads, before)


def read_end(source: LedgerSource, index: int, session_id: str) -> tuple[str, str] | None:
    """When and why a session ended, from the log; None where no such end is at that index."""
    data = source.entry(index)
    if data is None:
        return None
    try:
        read = decode_entry(data)
    except InputError:
        return None
    if read.kind != "session.ended" or read.body["session_id"] != session_id:
        return None
    return read.body["ended_at"], read.body["reason"]
