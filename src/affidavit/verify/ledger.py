"""The walk over a whole ledger: log, tree, both chains, seals, views and payloads, in one pass.

The log is derived from nothing and everything else from it: what a row says is compared with what
its entry says, never the other way round. One change should be one finding, at the place of the
change, so the walk goes on from what was most probably recorded:

    entry and kept hash agree      the entry is what was recorded; a row that differs is wrong
    they do not, the row agrees    the kept hash was changed
    they do not, the row differs   the entry was changed; its row is taken for what was recorded
    the entry cannot be read       likewise

Memory stays constant: chain ends are kept for the tasks and sessions seen last, others are looked
up in rows that the walk has already proved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from affidavit.core.entry import Entry, decode_entry
from affidavit.core.merkle import Digest, leaf_hash
from affidavit.core.thought import ZERO_HASH
from affidavit.core.tile import TILE_WIDTH
from affidavit.core.views import VIEW_OF_KIND
from affidavit.core.views.sessions import SealRow, SessionRow
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.errors import InputError
from affidavit.verify.damage import Damage
from affidavit.verify.erasures import Erased, Erasures
from affidavit.verify.findings import UNCHECKED_ENGINE, UNCHECKED_TAIL, Findings, Report
from affidavit.verify.ports import WHOLE, LeaveAlone, LedgerSource, RawRow, Repairer, Stretch
from affidavit.verify.rows import RowCheck
from affidavit.verify.sessions import SessionBook
from affidavit.verify.thoughts import (
    ThoughtChecker,
    derive_row,
    find_broken_link,
    find_changed_column,
    find_difference,
)
from affidavit.verify.tree import TreeCheck

_TASKS_MAX: Final = 50_000
_SESSIONS_MAX: Final = 2_000
_LEAVES_MAX: Final = 200_000

Progress = Callable[[int, int], None]


def verify_ledger(
    source: LedgerSource,
    progress: Progress | None = None,
    *,
    repairer: Repairer | None = None,
) -> Report:
    """Check all that the ledger alone can tell; with a repairer, put views right."""
    findings = Findings()
    for difference in source.schema_differences():
        findings.add("schema_changed", None, "schema", difference)
    unreadable = source.unreadable_tables()
    if unreadable:
        said = f"nothing but the schema was checked: {', '.join(unreadable)} cannot be read"
        return findings.report({}, [UNCHECKED_TAIL, UNCHECKED_ENGINE, said])
    return _Walk(source, findings, progress, repairer or LeaveAlone(), WHOLE).run()


class StretchReport(NamedTuple):
    """The verdict over one stretch of the log; where it is no, only a walk over all can tell.

    So it is, too, where an entry of an unknown kind names a session: no view leads to it.
    """

    valid: bool
    checked: dict[str, int]
    unknown: int


def split(size: int, parts: int) -> list[Stretch]:
    """About equal stretches that begin where a tile does; the last one is open."""
    tiles = size // TILE_WIDTH
    starts = sorted({part * tiles // parts * TILE_WIDTH for part in range(parts)})
    return [Stretch(*pair) for pair in zip(starts, (*starts[1:], None), strict=True)]


def verify_stretch(
    source: LedgerSource, stretch: Stretch, progress: Progress | None = None
) -> StretchReport:
    """Check one stretch; where its chains start from is read from rows of the stretches before.

    So the verdict holds only together with theirs: each proves its own rows, `join` the rest.
    """
    return _Walk(source, Findings(), progress, LeaveAlone(), stretch).run_stretch()


def join(source: LedgerSource, reports: Sequence[StretchReport]) -> Report | None:
    """The report over a log whose stretches all hold; None where only a walk over all can tell."""
    if not all(report.valid for report in reports):
        return None
    findings, checked, unknown = Findings(), Counter[str](), 0
    for report in reports:
        checked.update(report.checked)
        unknown += report.unknown
    size, tree = source.size(), TreeCheck(source, findings, LeaveAlone(), WHOLE)
    tree.check_above(size)
    tree.check_strays(size, Damage())
    check_memory(source, findings, size)
    if findings.count or source.schema_differences():
        return None
    checked["nodes"] += tree.checked
    return findings.report(dict(checked), _unchecked(unknown, checked["erased"]))


def check_memory(source: LedgerSource, findings: Findings, size: int) -> None:
    """What no view tells of may still be remembered: a key of an entry that is gone."""
    newest = source.newest_remembered()
    if newest >= size:
        said = f"an idempotency key stands for entry {newest}, the log ends before it"
        findings.add("tail_removed", size, "log", said)


def _unchecked(unknown: int, erased: int) -> list[str]:
    said = [UNCHECKED_TAIL, UNCHECKED_ENGINE]
    if erased:
        said.append(f"{erased} erased texts, each named by its erasure")
    if unknown:
        said.append(f"{unknown} entries of kinds this version does not know")
    return said


class TaskTips:
    """The hash of the newest record of each task; of the last ones met, from memory."""

    def __init__(self, source: LedgerSource, tasks_max: int, *, forgot: bool) -> None:
        self._source = source
        self._max = tasks_max
        self._tips: dict[str, str] = {}
        self._forgot = forgot

    def get(self, task_id: str, index: int) -> str:
        """What the next record of a task must link to."""
        tip = self._tips.get(task_id)
        if tip is None and self._forgot:
            tip = self._source.task_hash_before(task_id, index)
        return tip or ZERO_HASH

    def put(self, task_id: str, hash_: str) -> None:
        """A record went by."""
        if len(self._tips) > self._max:
            self._tips.clear()
            self._forgot = True
        self._tips[task_id] = hash_


class _Walk:
    """One pass over one snapshot."""

    def __init__(
        self,
        source: LedgerSource,
        findings: Findings,
        progress: Progress | None,
        repairer: Repairer,
        stretch: Stretch,
    ) -> None:
        self._source = source
        self._stretch = stretch
        self._progress = progress
        self._repairer = repairer
        self._findings = findings
        self._damage = Damage()
        self._erasures = Erasures(source)
        self._rows = RowCheck(source, findings, repairer, self._damage, stretch, self._erasures)
        self._tree = TreeCheck(source, findings, repairer, stretch)
        self._sessions = SessionBook(
            source,
            findings,
            repairer,
            self._tree,
            sessions_max=_SESSIONS_MAX,
            leaves_max=_LEAVES_MAX,
            forgot=stretch.start > 0,
        )
        self._thoughts = ThoughtChecker()
        self._tips = TaskTips(source, _TASKS_MAX, forgot=stretch.start > 0)
        self._last_at = 0
        self._unknown = 0

    def run(self) -> Report:
        """Walk the log once, then look for rows that belong to no entry."""
        size = self._walk_log(self._source.size())
        told = self._findings.count
        self._rows.check_extras()
        if self._findings.count == told:
            check_memory(self._source, self._findings, size)
        self._tree.check_strays(size, self._damage)
        checked = {"entries": size, **self._rows.checked, "nodes": self._tree.checked}
        return self._findings.report(checked, _unchecked(self._unknown, checked["erased"]))

    def run_stretch(self) -> StretchReport:
        """Walk a stretch, from where the entries before it left off."""
        start, end = self._stretch
        if start:
            self._resume(start)
        size = self._walk_log(self._source.size() if end is None else end)
        if size != (self._source.size() if end is None else end):
            self._say_gap(size, size + 1)
        self._rows.check_extras()
        checked = {"entries": size - start, **self._rows.checked, "nodes": self._tree.checked}
        holds = self._findings.count == 0 and not self._sessions.must_scan
        return StretchReport(holds, checked, self._unknown)

    def _resume(self, start: int) -> None:
        try:
            first, before = self._source.entry(0), self._source.entry(start - 1)
            self._sessions.ledger_id = decode_entry(first or b"").body["ledger_id"]
            self._last_at = decode_entry(before or b"").at
        except (InputError, KeyError):
            self._say_gap(start - 1, start)  # whoever walks over all of it says what is wrong

    def _walk_log(self, size: int) -> int:
        take, expected = self._rows.thoughts.take, self._stretch.start
        for index, data, kept in self._source.log(self._stretch):
            if index != expected:
                self._say_gap(expected, index)
                if index < expected:
                    continue
            expected = index + 1
            row = take(index)
            entry = data if type(data) is bytes else b""  # damage may bring any type
            leaf = leaf_hash(entry)
            if leaf != kept or row is None or not self._holds(index, entry, leaf, row):
                self._check_slowly(index, entry, leaf, kept, row)
            if self._progress is not None and not index & 1023:
                self._progress(index, size)
        return expected

    def _say_gap(self, expected: int, index: int) -> None:
        if index < expected:
            self._findings.add("index_gap", index, "log", "an entry stands before the first one")
            return
        self._damage.add_gap(expected, index)
        missing = f"entry {expected} is" if index == expected + 1 else ""
        missing = missing or f"entries {expected} to {index - 1} are"
        self._findings.add("index_gap", expected, "log", f"{missing} missing")

    def _holds(self, index: int, entry: bytes, leaf: Digest, row: RawRow) -> bool:
        """Whether this is a record in which everything is as it must be; False says nothing."""
        task_id, session_id, at = row[3], row[10], row[15]
        state, parent, next_seq = None, None, 0
        if session_id is not None:
            state = self._sessions.find(session_id, index)
            if state is None or not state.is_open:
                return False
            parent, next_seq = state.chain_hash, state.next_seq
        prev = self._tips.get(task_id, index)
        if not self._thoughts.is_intact(entry, row, prev, parent, next_seq) or at < self._last_at:
            return False
        self._last_at = at
        self._rows.count("thought_records")
        self._tree.add(index, leaf)
        self._tips.put(task_id, row[8])
        if state is not None:
            state.add_thought(leaf, row[2], task_id, row[13], index)
            self._sessions.count_leaf()
        return True

    def _check_slowly(
        self, index: int, entry: bytes, leaf: Digest, kept: Any, row: RawRow | None
    ) -> None:
        try:
            read = decode_entry(entry)
        except InputError as error:
            if leaf == kept:
                self._findings.add("entry_not_canonical", index, "log.entry", error.message)
            else:
                self._say_changed(index, "log.entry", "the entry is not the one that was hashed")
            self._trust_rows(index, leaf, kept, row)
            return
        if leaf != kept:
            column = self._find_changed(index, read, row)
            if column is not None:
                place = f"log.entry {column}".strip()
                self._say_changed(index, place, f"{column or 'it'} is not what was recorded")
                self._trust_rows(index, leaf, kept, row)
                return
            said = "the entry is not the one that was hashed when it was written"
            self._say_changed(index, "log", said)
        self._check_entry(index, read, leaf, kept, row)

    def _say_changed(self, index: int, place: str, said: str) -> None:
        self._findings.add("entry_changed", index, place, said)

    def _find_changed(self, index: int, read: Entry, row: RawRow | None) -> str | None:
        """The first column in which the row says otherwise; None where nobody contradicts."""
        if read.kind == "thought.recorded":
            if row is None:
                return ""
            erased = self._find_erased(index, row)
            return find_changed_column(read, ThoughtRow._make(row), erased)
        return self._rows.find_changed(index, read) if row is None else "kind"

    def _trust_rows(self, index: int, leaf: Digest, kept: Any, row: RawRow | None) -> None:
        """Go on from the rows of an entry that cannot be believed."""
        if isinstance(kept, bytes) and len(kept) == len(leaf):
            leaf = Digest(kept)
        self._damage.add_entry(index)
        self._tree.add(index, leaf)
        if row is not None:
            record = ThoughtRow._make(row)
            self._tips.put(record.task_id, record.hash)
            self._sessions.trust_thought(record, leaf)
        self._sessions.trust_end(index, leaf)
        for found in self._rows.trust(index):
            if isinstance(found, SessionRow):
                self._sessions.trust_start(found, leaf)
            elif isinstance(found, SealRow):
                self._sessions.trust_seal(found.session_id, index)

    def _check_entry(
        self, index: int, read: Entry, leaf: Digest, kept: Any, row: RawRow | None
    ) -> None:
        """An entry that says what was recorded, as far as can be told."""
        self._check_time(index, read.at)
        doubt = Digest(kept) if kept != leaf and isinstance(kept, bytes) else None
        self._tree.add(index, leaf, doubt)
        if (read.kind == "ledger.created") != (index == 0):
            said = "ledger.created must be the first entry, and only the first"
            self._say_changed(index, "log.entry", said)
        if read.kind == "thought.recorded":
            self._check_thought(index, read, leaf, row)
            return
        if row is not None:
            self._rows.say_extra("thought_records", index)
        link: int | bool | None = True
        if read.kind in VIEW_OF_KIND:
            link = self._rows.check(index, read)
        elif read.kind == "ledger.created":
            self._sessions.ledger_id = read.body["ledger_id"] if index == 0 else None
        elif read.kind != "session.ended":
            self._unknown += 1
        if read.kind == "session.started":
            self._sessions.start(index, read, leaf, link)
        else:
            self._sessions.follow(index, read, leaf)

    def _check_time(self, index: int, at: int) -> None:
        if at < self._last_at:
            said = "the entry is older than the one before it"
            self._findings.add("time_backwards", index, "log.entry at", said)
        # The next one is compared with this one, so that one step back is told once.
        self._last_at = at

    def _check_thought(self, index: int, read: Entry, leaf: Digest, row: RawRow | None) -> None:
        """A record: its row, its place in both chains, and what comes after it."""
        body = read.body
        self._rows.count("thought_records")
        if row is None:
            said = "the record has no row, so its content is lost"
            self._findings.add("view_missing", index, "thought_records", said)
            self._repairer.put_row(derive_row(index, read, "", self._find_erased(index, None)))
        else:
            self._check_row(index, read, row)
            self._check_links(index, body)
        # The next record must link to what this one says, so that one break is told once.
        self._tips.put(body["task_id"], body["hash"])
        if body["session_id"] is not None:
            self._sessions.follow_thought(index, body, leaf)

    def _check_row(self, index: int, read: Entry, row: RawRow) -> None:
        erased = self._find_erased(index, row)
        if erased is not None:
            self._rows.checked["erased"] += 1
        wrong = find_difference(read, row, erased)
        if wrong is not None:
            self._findings.add(wrong.code, index, wrong.place, wrong.message)
            self._repairer.put_row(derive_row(index, read, row[5], erased))

    def _find_erased(self, index: int, row: RawRow | None) -> Erased | None:
        gone = row is None or row[-1] is not None or row[5] in ("", None)
        return self._erasures.find(index, "content", is_gone=gone)

    def _check_links(self, index: int, body: dict[str, Any]) -> None:
        session_id, parent, next_seq = body["session_id"], None, 0
        if session_id is not None and (state := self._sessions.find(session_id, index)) is not None:
            parent, next_seq = state.chain_hash, state.next_seq
        broken = find_broken_link(body, self._tips.get(body["task_id"], index), parent, next_seq)
        if broken is not None:
            self._findings.add(broken.code, index, broken.place, broken.message)
