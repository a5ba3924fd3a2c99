"""Versions as a walk over the log meets them, each derived from the one before."""

from __future__ import annotations

from typing import Any, NamedTuple

from affidavit.core.entry import decode_entry
from affidavit.core.views import View, payload_columns
from affidavit.core.views.payload import payload_values
from affidavit.errors import InputError
from affidavit.verify.findings import Findings
from affidavit.verify.ports import LedgerSource, Repairer


class Version(NamedTuple):
    """The newest version of a thing so far, and where its row says the next one is.

    `link` is True where that was judged already, or where there is no row to say it.
    """

    row: Any
    link: int | bool | None


class Versions:
    """The things of one view met lately; others are looked up in rows already proved."""

    def __init__(
        self,
        view: View,
        source: LedgerSource,
        findings: Findings,
        repairer: Repairer,
        versions_max: int,
        *,
        forgot: bool,
    ) -> None:
        self._view = view
        self._source = source
        self._findings = findings
        self._repairer = repairer
        self._max = versions_max
        self._newest: dict[tuple[str, ...], Version] = {}
        self._forgot = forgot
        fields = tuple({name for kind in view.kinds for name in payload_columns(kind)})
        self._no_texts = payload_values(fields, {})

    def before(self, name: tuple[str, ...], index: int) -> Version | None:
        """The version of a thing before an entry."""
        version = self._newest.get(name)
        if version is None and self._forgot:
            raw = self._source.version_before(self._view, name, index)
            if raw is not None:
                row = self._view.row._make(raw)
                return Version(row, row.superseded_by)
        return version

    def keep(self, row: Any, link: int | bool | None) -> None:
        """The newest version of its thing from here on."""
        name = self._view.name_in(row)
        if name not in self._newest and len(self._newest) >= self._max:
            del self._newest[next(iter(self._newest))]
            self._forgot = True
        self._newest[name] = Version(row._replace(**self._no_texts), link)

    def check_link_to(self, index: int, before: Version) -> None:
        """That the version before leads to the one at this index."""
        if before.link == index and before.link is not True:
            return
        place = before.row.log_index
        if before.link is not True:
            said = f"the next version of it is entry {index}"
            self._findings.add("view_differs", place, f"{self._view.table}.superseded_by", said)
        self._repairer.put_links(self._view.table, place, {"superseded_by": index})

    def leads_on(self, row: Any, link: object) -> bool:
        """Whether a link is one a version may have: none, or a later version of the same thing."""
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
        view = self._view
        if read.kind not in view.kinds or view.name_of(read.body) != view.name_in(row):
            return False
        return view.derive(link, read, {}, row).superseded_by is None
