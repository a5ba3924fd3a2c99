"""Reading versions: what is in force of a thing, now or as of a moment, by key and in lists."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from affidavit.core.entry import read_at
from affidavit.core.views import View
from affidavit.ledger.ports import Listing

_ALWAYS: Final = 2**62
_DAY: Final = "strftime('%Y-%m-%d', {time} / 1000, 'unixepoch')"
# Where usage stands: the table, its time, and what must hold of a row. What a late result used
# was used, though the call stays given up.
_USING: Final = (
    ("conversation_turns", "created_at_ms", "superseded_by IS NULL AND retracted = 0"),
    ("tool_calls", "started_at_ms", "(superseded_by IS NULL OR late = 1)"),
)
_HALF_BITS: Final = 26


@cache
def _by_key(view: View, *, past: bool) -> str:
    keys = " AND ".join(f"{column} = ?" for column, _ in view.key)
    until = " AND at <= ?" if past else ""
    return (
        f"SELECT * FROM {view.table} WHERE {keys}{until} AND superseded_by IS NOT log_index"
        " ORDER BY at DESC, log_index DESC LIMIT 1"
    )


@cache
def version_before_sql(view: View) -> str:
    """The version of a thing that was in force before an index."""
    keys = " AND ".join(f"{column} = ?" for column, _ in view.key)
    return (
        f"SELECT * FROM {view.table} WHERE {keys} AND log_index < ?"
        " AND superseded_by IS NOT log_index ORDER BY log_index DESC LIMIT 1"
    )


class Observations(ABC):
    """The part of a reader that knows versions."""

    _execute: Callable[..., Any]

    def find_version(self, view: View, name: tuple[str, ...], moment: int | None) -> Any:
        """The row of a thing that was in force at a moment; None where it never was."""
        if moment is None:
            found = self._execute(_by_key(view, past=False), name).fetchone()
        else:
            found = self._execute(_by_key(view, past=True), (*name, moment)).fetchone()
        return None if found is None else view.row._make(found)

    def versions(self, view: View, name: tuple[str, ...]) -> list[Any]:
        """Every row of a thing, in log order."""
        keys = " AND ".join(f"{column} = ?" for column, _ in view.key)
        sql = f"SELECT * FROM {view.table} WHERE {keys} ORDER BY at, log_index"
        return [view.row._make(row) for row in self._execute(sql, name)]

    def version_before(self, view: View, name: tuple[str, ...], index: int) -> Any:
        """The row of a thing that was in force before an entry."""
        sql = version_before_sql(view)
        found = self._execute(sql, (*name, index)).fetchone()
        return None if found is None else view.row._make(found)

    def version_at(self, view: View, index: int) -> Any:
        """The row an entry made; None where it made none of this kind."""
        sql = f"SELECT * FROM {view.table} WHERE log_index = ?"
        found = self._execute(sql, (index,)).fetchone()
        return None if found is None else view.row._make(found)

    def usage(
        self, by: str, since_ms: int | None, until_ms: int | None
    ) -> list[tuple[str | None, str, int]]:
        """Counts of what is in force, added up by model, session or day: key, count, total."""
        key = {"model": "model", "session": "session_id"}.get(by, _DAY)
        facts = " UNION ALL ".join(
            f"SELECT {key.format(time=time)} AS key, usage FROM {table} WHERE {time} >= ? AND"
            f" {time} < ? AND usage IS NOT NULL AND {holds}"
            for table, time, holds in _USING
        )
        # In halves: a sum of whole counts may be larger than SQLite's integers.
        sql = (
            f"SELECT facts.key, counts.key, sum(counts.value >> {_HALF_BITS}),"
            f" sum(counts.value & {2**_HALF_BITS - 1}) FROM ({facts}) AS facts,"
            " json_each(facts.usage) AS counts GROUP BY 1, 2 ORDER BY 1, 2"
        )
        since, until = -_ALWAYS if since_ms is None else since_ms, until_ms
        span = [since, _ALWAYS if until is None else until]
        found = self._execute(sql, span * 2)
        return [(key, name, (high << _HALF_BITS) + low) for key, name, high, low in found]

    def at_of(self, index: int) -> int:
        """The time of an entry."""
        sql = "SELECT substr(entry, 1, 40) FROM log WHERE log_index = ?"
        row = self._execute(sql, (index,)).fetchone()
        return 0 if row is None else read_at(row[0])

    def end_of(self, moment: int) -> int:
        """How many entries the log had at a moment, found by halving."""
        low, high = 0, self.size()
        while low < high:
            middle = (low + high) // 2
            if self.at_of(middle) <= moment:
                low = middle + 1
            else:
                high = middle
        return low

    @abstractmethod
    def size(self) -> int:
        """How many entries the log has."""

    def list_versions(self, wanted: Listing) -> list[Any]:
        """A page of what was in force, in the order of its index."""
        end = None if wanted.moment is None else self.end_of(wanted.moment)
        sql, values = list_statement(wanted, end)
        return [wanted.view.row._make(row) for row in self._execute(sql, values)]


def list_statement(wanted: Listing, end: int | None) -> tuple[str, list[Any]]:
    """The statement of a list, and its values; `end` is the size of the log at its moment."""
    if wanted.view.table == "conversation_turns":
        return _turns_statement(wanted, end)
    time, tie = wanted.order
    direction = "DESC" if wanted.newest_first else "ASC"
    parts, values = [], []
    for index, in_force in _in_force(wanted, end):
        conditions = [*in_force, *_wishes(wanted)]
        where = " AND ".join(condition for condition, _ in conditions)
        parts.append(f"SELECT * FROM {wanted.view.table}{index} WHERE {where}")
        values += [value for _, given in conditions for value in given]
    sql = " UNION ALL ".join(parts)
    sql = f"{sql} ORDER BY {time} {direction}, {tie} {direction} LIMIT ?"
    return sql, [*values, wanted.limit]


_Condition = tuple[str, tuple[Any, ...]]


def _in_force(wanted: Listing, end: int | None) -> list[tuple[str, list[_Condition]]]:
    """Where to look for what was in force, and how to tell; together they are all of it."""
    index = _index_of(wanted)
    hint = f" INDEXED BY {index}"
    now: _Condition = ("superseded_by IS NULL", ())
    if end is None:
        return [(hint, [now])]
    before: _Condition = ("log_index < ?", (end,))
    if index not in _OF_STATES:
        later: _Condition = ("(superseded_by IS NULL OR superseded_by >= ?)", (end,))
        return [(hint, [before, later])]
    # Not named, because a file that is older than the index may be open for reading only.
    return [(hint, [before, now]), ("", [before, ("superseded_by >= ?", (end,))])]


def _wishes(wanted: Listing, of: str = "") -> list[_Condition]:
    """What a caller asks for besides."""
    time, tie = (f"{of}{column}" for column in wanted.order)
    wishes: list[_Condition] = [
        (f"{of}{column} = ?", (value,)) for column, value in wanted.equal.items()
    ]
    for comparison, value in ((">=", wanted.since_ms), ("<", wanted.until_ms)):
        if value is not None:
            wishes.append((f"{time} {comparison} ?", (value,)))
    if wanted.after is not None:
        sign = "<" if wanted.newest_first else ">"
        wishes.append((f"({time}, {tie}) {sign} (?, ?)", wanted.after))
    return wishes


# The walk goes over every version `p` in the order of the list. `f` is what was in force of the
# same turn; it is shown where it still has the time, and all that is asked for, of `p`, and where
# `p` is the first version (there is no earlier `e`) of which that can be said.
_TURNS: Final = """
SELECT f.* FROM conversation_turns AS p INDEXED BY {index}
CROSS JOIN conversation_turns AS f
WHERE {where} AND f.log_index = CASE WHEN p.superseded_by IS NULL{until} THEN p.log_index ELSE (
    SELECT v.log_index FROM conversation_turns AS v INDEXED BY idx_turns_id
    WHERE v.id = p.id AND v.superseded_by IS NOT v.log_index{before}
    ORDER BY v.at DESC, v.log_index DESC LIMIT 1) END
  AND f.retracted = 0 AND f.created_at_ms = p.created_at_ms{same}
  AND NOT EXISTS (SELECT 1 FROM conversation_turns AS e INDEXED BY idx_turns_id
    WHERE e.id = f.id AND e.created_at_ms = f.created_at_ms AND e.log_index < p.log_index{alike})
ORDER BY p.created_at_ms {direction}, p.log_index {direction} LIMIT ?
"""


def _turns_statement(wanted: Listing, end: int | None) -> tuple[str, list[Any]]:
    """The statement of a list of turns: one that was changed stands where it stood before."""
    wishes = _wishes(wanted, "p.") or [("true", ())]
    values = [value for _, given in wishes for value in given]
    where = [condition for condition, _ in wishes]
    if end is not None:
        where, values = [*where, "p.log_index < ?"], [*values, end, end, wanted.moment]
    sql = _TURNS.format(
        index=_index_of(wanted),
        where=" AND ".join(where),
        until="" if end is None else " OR p.superseded_by >= ?",
        before="" if end is None else " AND v.at <= ?",
        same="".join(f" AND f.{column} = p.{column}" for column in wanted.equal),
        alike="".join(f" AND e.{column} = f.{column}" for column in wanted.equal),
        direction="DESC" if wanted.newest_first else "ASC",
    )
    return sql, [*values, wanted.limit]


# Which index a list walks: that of the first column it names here, else that of its time.
_INDEXES: Final = {
    "conversation_turns": {
        "message_id": "idx_turns_message",
        "thread_id": "idx_turns_thread",
        "session_id": "idx_turns_session",
        "": "idx_turns_time",
    },
    "tool_calls": {
        "request_id": "idx_tool_calls_request",
        "parent_id": "idx_tool_calls_parent",
        "session_id": "idx_tool_calls_session",
        "status": "idx_tool_calls_status",
        "tool_name": "idx_tool_calls_tool",
        "vendor": "idx_tool_calls_vendor",
        "": "idx_tool_calls_time",
    },
    "code_edit_proposals": {"status": "idx_proposals_status", "": "idx_proposals_time"},
}


# These hold what is in force now alone; what has left its state stands in another index.
_OF_STATES: Final = ("idx_tool_calls_status", "idx_proposals_status")


def _index_of(wanted: Listing) -> str:
    known = _INDEXES[wanted.view.table]
    return known[next((name for name in known if name in wanted.equal), "")]
