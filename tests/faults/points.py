"""Named points before and after every statement of a write, and a connection that fails there.

A point is "before NAME #n" or "after NAME #n": the n-th time a statement of this name runs in one
call. Names are those of `queries.sql`, "insert TABLE" for a view's row, and the transaction's own
verbs. A statement without a name here is "?", which no plan holds, so that a new one is noticed.
"""

import itertools
import os
import re
import signal
import sqlite3
from collections import Counter
from contextlib import contextmanager
from typing import ClassVar

from affidavit.core.views import VIEWS
from affidavit.stores.sqlite.observations import _by_key
from affidavit.stores.sqlite.queries import load_queries
from affidavit.stores.sqlite.store import SqliteStore
from affidavit.stores.sqlite.writing import _INSERT, _SUPERSEDE

NAMES = {
    **{sql: name for name, sql in load_queries().items()},
    **{sql: f"insert {sql.split()[2]}" for sql in _INSERT.values()},
    **dict.fromkeys(_SUPERSEDE.values(), "supersede"),
    **{_by_key(view, past=False): "version" for view in VIEWS if view.key},
    "BEGIN IMMEDIATE": "begin",
    "COMMIT": "commit",
    "ROLLBACK": "rollback",
    "SAVEPOINT unit": "savepoint",
    "RELEASE unit": "release",
    "ROLLBACK TO unit": "rollback to",
    "PRAGMA wal_checkpoint(FULL)": "checkpoint",
}


def name_of(sql):
    return NAMES.get(sql, "?")


def beginnings_of(name):
    """How the statements of a name begin, up to the first value."""
    known = (sql for sql, known in NAMES.items() if known == name)
    return tuple(re.split(r"[?:]", sql)[0] for sql in known)


class PointedConnection(sqlite3.Connection):
    """Calls `reach` before and after every statement of the writing connection, or
    of the reading ones, while armed."""

    reach = None
    traced = None
    of_readers = False
    counts: ClassVar[Counter] = Counter()

    def __init__(self, database, *args, **kwargs):
        super().__init__(database, *args, **kwargs)
        self._pointed = ("mode=ro" in database) == type(self).of_readers
        if self._pointed and type(self).traced is not None:
            self.set_trace_callback(type(self).traced.append)

    def _point(self, sql):
        """The next point of this statement, or None where nothing is armed."""
        cls = type(self)
        if cls.reach is None or not self._pointed:
            return None
        name = name_of(sql)
        cls.counts[name] += 1
        return f"{name} #{cls.counts[name]}"

    def execute(self, sql, *values):
        point = self._point(sql)
        if point is None:
            return super().execute(sql, *values)
        type(self).reach(f"before {point}")
        result = super().execute(sql, *values)
        type(self).reach(f"after {point}")
        return result

    def executemany(self, sql, rows):
        return super().executemany(sql, self._each(sql, rows))

    def _each(self, sql, rows):
        """Every row is a statement of its own: SQLite asks for the next one after it."""
        for row in rows:
            point = self._point(sql)
            if point is None:
                yield row
                continue
            type(self).reach(f"before {point}")
            yield row
            type(self).reach(f"after {point}")


@contextmanager
def pointed(*, of_readers=False):
    """Let stores opened from here on use connections with points, which are not armed yet."""
    PointedConnection.of_readers = of_readers
    before = SqliteStore.connection_factory
    SqliteStore.connection_factory = PointedConnection
    try:
        yield
    finally:
        SqliteStore.connection_factory = before
        PointedConnection.reach = PointedConnection.traced = None


@contextmanager
def armed(reach):
    """Have `reach` called with the name of every point that is passed."""
    PointedConnection.counts = Counter()
    PointedConnection.reach = staticmethod(reach)
    try:
        yield
    finally:
        PointedConnection.reach = None


def record_points(call):
    """The points of a call, in order, and what SQLite itself says it ran."""
    seen, traced = [], PointedConnection.traced
    traced.clear()
    with armed(seen.append):
        call()
    return seen, [sql for sql, _ in itertools.groupby(traced)]


def statements_of(plan):
    """The statements of a plan by name, in order."""
    points = [point.removeprefix("before ") for point in plan[0] if point.startswith("before ")]
    return [point.rpartition(" #")[0] for point in points]


def points_of(plan, statement):
    """Where a statement can be stopped: before and after, every time it runs.

    There is no "after" where it is refused, as the row of a record that is there already is.
    """
    named = re.compile(rf"(before|after) {re.escape(statement)} #[0-9]+")
    found = [point for point in plan[0] if named.fullmatch(point)]
    assert found, f"{statement} does not run"
    return found


def die_at(point):
    """A `reach` that ends this process at one point, as kill -9 would."""

    def reach(passed):
        if passed == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def fail_at(*points, code=None, error=None):
    """A `reach` that raises what SQLite raises, or another error, at each of some points, once."""
    left = list(points)

    def reach(passed):
        if passed in left:
            left.remove(passed)
            raise failure(code) if error is None else error

    return reach


def failure(code):
    """An error as SQLite gives it."""
    full = code == sqlite3.SQLITE_FULL
    error = sqlite3.OperationalError("database or disk is full" if full else "disk I/O error")
    error.sqlite_errorcode = code
    return error
