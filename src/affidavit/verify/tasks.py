"""Versions of tasks as a walk over the log meets them, each derived from the one before."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from affidavit.core.entry import decode_entry
from affidavit.core.views import TaskRow
from affidavit.errors import InputError
from affidavit.verify.findings import Findings
from affidavit.verify.ports import LedgerSource, Repairer

_NO_TEXTS: Final[dict[str, Any]] = {
    f"{name}{ending}": None
    for name in ("title", "description", "reason")
    for ending in ("", "_salt")
}


class Version(NamedTuple):
    """The newest version of a task so far, and where its row says the next one is.

    `link` is True where that was judged already, or where there is no row to say it.
    """

    row: TaskRow
    link: int | bool | None


class TaskVersions:
    """The tasks met lately; others are looked up in rows that the walk has already proved."""

    def __init__(
        self, source: LedgerSource, findings: Findings, repairer: Repairer, versions_max: int
    ) -> None:
        self._source = source
        self._findings = findings
        self._repairer = repairer
        self._max = versions_max
        self._newest: dict[str, Version] = {}
        self._forgot = False

    def before(self, task_id: str, index: int) -> Version | None:
        """The version of a task before an entry."""
        version = self._newest.get(task_id)
        if version is None and self._forgot:
            raw = self._source.task_before(task_id, index)
            if raw is not None:
                row = TaskRow._make(raw)
                return Version(row, row.superseded_by)
        return version

    def keep(self, row: TaskRow, link: int | bool | None) -> None:
        """The newest version of its task from here on."""
        if row.id not in self._newest and len(self._newest) >= self._max:
            del self._newest[next(iter(self._newest))]
            self._forgot = True
        self._newest[row.id] = Version(row._replace(**_NO_TEXTS), link)

    def check_link_to(self, index: int, before: Version) -> None:
        """That the version before leads to the one at this index."""
        if before.link == index and before.link is not True:
            return
        place = before.row.log_index
        if before.link is not True:
            said = f"the next version of the task is entry {index}"
            self._findings.add("view_differs", place, "task_versions.superseded_by", said)
        self._repairer.put_links("task_versions", place, {"superseded_by": index})

    def leads_on(self, row: TaskRow, link: object) -> bool:
        """Whether a link is one a version may have: none, or a later version of the same task."""
        if link is None:
            return True
        if type(link) is not int or link <= row.log_index:
            return False
        data = self._source.entry(link)
        if data is None:
            return False
        try:
            read = decode_entry(data)
        except InputError:
            return True  # that entry is told of by itself
        return read.kind.startswith("task.") and read.body.get("task_id") == row.id
