"""Raw queries: one reading statement of a caller's, which cannot write, wait long or see a salt."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from affidavit.core.moment import US_PER_SECOND
from affidavit.errors import AffidavitError, InputError, invalid
from affidavit.stores.sqlite import failures

QUERY_ROWS_MAX: Final = 10_000
QUERY_S_MAX: Final = 10.0
_VALUE_BYTES_MAX: Final = 64 * 1024 * 1024
_STEPS: Final = 10_000
_ALLOWED: Final = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)
_FORBIDDEN_FUNCTIONS: Final = frozenset(("load_extension", "fts3_tokenizer"))


def run_query(
    connection: sqlite3.Connection,
    location: str,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The rows of one statement, by column name; anything but reading is refused."""
    deadline = time.monotonic() + QUERY_S_MAX
    with _limited(connection, deadline):
        try:
            cursor = connection.execute(sql, params)
            rows = cursor.fetchmany(QUERY_ROWS_MAX + 1)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError, ValueError) as error:
            raise _explain(error, location, deadline) from None
    if len(rows) > QUERY_ROWS_MAX:
        raise InputError(
            f"sql: more than {QUERY_ROWS_MAX:,} rows (query_rows_max)",
            code="ERR_TOO_LARGE",
            hint="Add a LIMIT, or ask for less.",
            field="sql",
            limit="query_rows_max",
        )
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in rows]


@contextmanager
def _limited(connection: sqlite3.Connection, deadline: float) -> Iterator[None]:
    connection.create_function("format_timestamp", 1, _format_timestamp, deterministic=True)
    connection.create_function("to_int", 1, _to_int, deterministic=True)
    connection.create_function("to_bool", 1, _to_bool, deterministic=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES_MAX)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    # Statements prepared before are prepared anew under it.
    connection.set_authorizer(_authorize)
    try:
        yield
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)


def _authorize(
    action: int, _first: str | None, second: str | None, _database: str | None, _inside: str | None
) -> int:
    """Reading only. A salt reads as null: with it, a short text could be guessed once erased."""
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_READ and (second or "").lower().endswith("salt"):
        return sqlite3.SQLITE_IGNORE
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _explain(error: Exception, location: str, deadline: float) -> AffidavitError:
    if time.monotonic() > deadline:
        return invalid(
            "sql",
            f"took longer than {QUERY_S_MAX:g} s (query_s_max)",
            hint="Ask for less, or by a column that has an index.",
        )
    if isinstance(error, sqlite3.Error) and failures.is_of_the_store(error):
        return failures.translate(error, location)
    said = failures.without_payload(str(error))[:300]
    return invalid("sql", said, hint="One statement that only reads.")


def _format_timestamp(at_us: Any) -> str | None:
    """RFC 3339 of microseconds."""
    if type(at_us) is not int:
        return None
    try:
        moment = datetime.fromtimestamp(at_us // US_PER_SECOND, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_us % US_PER_SECOND:06d}Z"


def _to_int(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (ValueError, OverflowError):
        return None


def _to_bool(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        return int(value.strip().lower() not in ("", "0", "false", "no", "retract"))
    return int(bool(value))
