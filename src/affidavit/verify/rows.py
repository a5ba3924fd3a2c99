"""View rows and payloads: each row must be what its entry, derived again, says it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from affidavit.core.entry import Entry, decode_entry, is_commitment_to
from affidavit.core.views import (
    LINKS,
    TABLES,
    VIEW_OF_KIND,
    VIEWS,
    View,
    find_differing,
    payload_columns,
)
from affidavit.core.views.payload import Payload, payload_column, read_payload
from affidavit.core.views.sessions import SessionRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.errors import InputError
from affidavit.verify.damage import Damage
from affidavit.verify.erasures import Erasures
from affidavit.verify.findings import Findings
from affidavit.verify.ports import LedgerSource, RawRow, Repairer, Stretch
from affidavit.verify.versions import Versions

_COUNTED: Final = {view.table: view.counted for view in VIEWS}
# The views of every kind but a thought.
_OTHERS: Final = tuple(view for view in VIEWS if view.row is not ThoughtRow)
_VERSIONS_MAX: Final = 20_000


class Cursor:
    """Rows of one view in log order, taken one index at a time; the skipped belong to no entry."""

    def __init__(self, rows: Iterator[RawRow], say_extra: Callable[[int], None]) -> None:
        self._rows = rows
        self._say_extra = say_extra
        self._next: RawRow | None = next(rows, None)

    def take(self, index: int) -> RawRow | None:
        """The row of this entry, if it has one."""
        row = self.peek(index)
        if row is not None:
            self._step()
        return row

    def peek(self, index: int) -> RawRow | None:
        """The row of this entry, left where it is."""
        while (row := self._next) is not None and row[0] < index:
            self._say_extra(row[0])
            self._step()
        return row if row is not None and row[0] == index else None

    def _step(self) -> None:
        before = self._next
        self._next = next(self._rows, None)
        if self._next is not None and before is not None and self._next[0] <= before[0]:
            self._say_extra(self._next[0])
            self._next = None  # a damaged page leads back to where we were

    def finish(self) -> None:
        """Every row that no entry asked for."""
        while self._next is not None:
            self._say_extra(self._next[0])
            self._step()


class RowCheck:
    """Compares the views with what the log says they are."""

    def __init__(
        self,
        source: LedgerSource,
        findings: Findings,
        repairer: Repairer,
        damage: Damage,
        stretch: Stretch,
        erasures: Erasures,
    ) -> None:
        self._source = source
        self._findings = findings
        self._repairer = repairer
        self._damage = damage
        self._erasures = erasures
        self._versions = {
            view.table: Versions(
                view, source, findings, repairer, _VERSIONS_MAX, forgot=stretch.start > 0
            )
            for view in VIEWS
            if view.key
        }
        self._cursors = {
            table: Cursor(source.rows(table, stretch), self._extra_of(table))
            for table in TABLES.values()
        }
        self.thoughts = self._cursors["thought_records"]
        self.checked = dict.fromkeys((*_COUNTED.values(), "payloads", "erased"), 0)

    def _extra_of(self, table: str) -> Callable[[int], None]:
        return lambda index: self.say_extra(table, index)

    def say_extra(self, table: str, index: int) -> None:
        """A row belongs to no entry, unless it is the last trace of one that was damaged."""
        if self._damage.is_damaged(index):
            return
        said = f"a row of {table} belongs to no entry"
        self._findings.add("view_extra", index, table, said)
        if not self._damage.is_missing(index):
            self._repairer.delete_row(table, index)

    def count(self, table: str) -> None:
        """One more row looked at."""
        self.checked[_COUNTED[table]] += 1

    def find_changed(self, index: int, read: Entry) -> str | None:
        """The first column in which a row says otherwise than its entry; None where they agree.

        Kinds without a row of their own have nobody to contradict them.
        """
        view = VIEW_OF_KIND.get(read.kind)
        rows = {one.table: self._cursors[one.table].peek(index) for one in _OTHERS}
        if any(
            row is not None and (view is None or table != view.table) for table, row in rows.items()
        ):
            return "kind"
        if view is None:
            return None
        raw = rows[view.table]
        if raw is None:
            return ""
        actual = view.row._make(raw)
        payloads = {name: read_payload(actual, name) for name in payload_columns(read.kind)}
        for name, payload in payloads.items():
            erased = self._erasures.find(index, name, is_gone=payload.text is None)
            committed = None if erased else read.body.get(name)
            if committed is not None and not _is_payload_of(committed, payload):
                return name
        before = self._before(index, read, view)
        if view.find_misfit(read, before) is not None:
            return view.key[0][1]
        expected = view.derive(index, read, payloads, before)
        differing = find_differing(actual, expected)
        return next((name for name in differing if name not in view.links), None)

    def trust(self, index: int) -> list[Any]:
        """The rows of an entry that cannot be believed: taken for what was recorded."""
        found: list[Any] = []
        for view in _OTHERS:
            if (raw := self._cursors[view.table].take(index)) is not None:
                found.append(view.row._make(raw))
                if view.key:
                    self._keep(view, found[-1], found[-1].superseded_by)
        return found

    def _keep(self, view: View, row: Any, link: int | bool | None) -> None:
        # What stands aside changes nothing of what is in force.
        if row.superseded_by != row.log_index:
            self._versions[view.table].keep(row, link)

    def _before(self, index: int, read: Entry, view: View) -> Any:
        if not view.key:
            return None
        version = self._versions[view.table].before(view.name_of(read.body), index)
        return None if version is None else version.row

    def check(self, index: int, read: Entry) -> int | bool | None:
        """The row of an entry of any kind but a thought.

        Answers with where a session's row says that it ended; True where nothing is left to judge.
        """
        view = VIEW_OF_KIND[read.kind]
        table = view.table
        self.count(table)
        raw = self._cursors[table].take(index)
        if raw is None:
            self._findings.add("view_missing", index, table, f"the {read.kind} has no row")
        actual = None if raw is None else view.row._make(raw)
        payloads = self._check_payloads(index, read, table, actual)
        if view.key:
            self._check_version(index, read, view, payloads, actual)
            return True
        expected = view.derive(index, read, payloads, None)
        if isinstance(expected, SessionRow):
            expected = expected._replace(**self._true_end(expected, actual))
        self._compare(index, table, actual, expected)
        if actual is None or not isinstance(expected, SessionRow):
            return True
        ended = expected.ended_index
        return ended if ended == actual.ended_index else True

    def _check_version(
        self, index: int, read: Entry, view: View, payloads: dict[str, Payload], actual: Any
    ) -> None:
        versions = self._versions[view.table]
        before = versions.before(view.name_of(read.body), index)
        misfit = view.find_misfit(read, None if before is None else before.row)
        if misfit is not None:
            self._findings.add("chain_broken", index, view.table, misfit)
            if actual is not None:
                self._keep(view, actual, actual.superseded_by)
            return
        expected = view.derive(index, read, payloads, None if before is None else before.row)
        aside = expected.superseded_by is not None
        if before is not None and not aside:
            versions.check_link_to(index, before)
        link = True if actual is None or aside else actual.superseded_by
        if link is not True and versions.leads_on(expected, link):
            self._compare(index, view.table, actual, expected._replace(superseded_by=link))
        else:
            self._compare(index, view.table, actual, expected)
            link = True
        self._keep(view, expected, link)

    def _compare(self, index: int, table: str, actual: Any, expected: Any) -> None:
        if actual is None:
            self._repairer.put_row(expected)
        elif changed := list(find_differing(actual, expected)):
            self._say_differences(index, table, changed)
            self._repairer.put_row(expected)

    def _check_payloads(
        self, index: int, read: Entry, table: str, actual: Any
    ) -> dict[str, Payload]:
        found: dict[str, Payload] = {}
        for name in payload_columns(read.kind):
            committed = read.body.get(name)
            if committed is None:
                continue
            payload, place = read_payload(actual, name), f"{table}.{payload_column(name)}"
            if self._erasures.find(index, name, is_gone=payload.text is None):
                self.checked["erased"] += 1
                continue  # its text and salt must be gone: the row shows it
            found[name] = payload
            self.checked["payloads"] += 1
            if payload.text is None:
                self._findings.add("payload_lost", index, place, f"{name} is gone")
            elif not _is_payload_of(committed, payload):
                said = f"{name} is not what was committed to"
                self._findings.add("payload_mismatch", index, place, said)
        return found

    def _true_end(self, expected: SessionRow, actual: Any) -> dict[str, Any]:
        """How the session ended as far as its row tells, where the log says so too."""
        ended = None if actual is None else actual.ended_index
        if type(ended) is not int or ended <= expected.log_index:
            return {}
        end = read_end(self._source, ended, expected.session_id)
        if end is None:
            return {}
        claimed = (ended, *(end or (actual.ended_at, actual.end_reason)))
        return dict(zip(LINKS["sessions"], claimed, strict=True))

    def _say_differences(self, index: int, table: str, changed: list[str]) -> None:
        links, told = LINKS.get(table, ()), False
        for name in changed:
            if told and name in links:
                continue
            told = told or name in links
            said = f"{name} differs from what the log says"
            self._findings.add("view_differs", index, f"{table}.{name}", said)

    def check_extras(self) -> None:
        """Rows behind the last entry."""
        for cursor in self._cursors.values():
            cursor.finish()


def _is_payload_of(committed: Any, payload: Payload) -> bool:
    text, salt = payload
    if not isinstance(text, str) or not isinstance(salt, bytes):
        return False
    return is_commitment_to(committed, salt, text)


def read_end(source: LedgerSource, index: int, session_id: str) -> tuple[str, ...] | None:
    """When and why a session ended, from the log; None where no such end is at that index.

    Empty where the entry cannot be read: that is told of by itself.
    """
    data = source.entry(index)
    if data is None:
        return None
    try:
        read = decode_entry(data)
    except InputError:
        return ()
    if read.kind != "session.ended" or read.body["session_id"] != session_id:
        return None
    return read.body["ended_at"], read.body["reason"]
