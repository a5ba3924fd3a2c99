"""Putting views right: the only place that lifts the guards, inside one transaction.

What is to change is first written down beside the views, because a row put right may need a value
that a row still wrong has. `finish` then takes all the wrong rows out and puts the right ones in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from affidavit.core.merkle import Digest
from affidavit.core.views import TABLES
from affidavit.stores.sqlite.audit import as_stored, is_no_text, known_table

_GUARDED: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
_NOTES: Final = {
    "gone": "name TEXT, log_index INTEGER",
    "links": "name TEXT, log_index INTEGER, link TEXT, value",
    "stray_nodes": "tree INTEGER, level INTEGER, position INTEGER",
}


class SqliteRepairer:
    """Notes rows that differ from what the log says, and replaces them in the end."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        for name, columns in _NOTES.items():
            connection.execute(f"CREATE TEMP TABLE {name} ({columns})")
        for table in TABLES.values():
            connection.execute(f"CREATE TEMP TABLE right_{table} AS SELECT * FROM {table} LIMIT 0")
            connection.execute(f"CREATE UNIQUE INDEX right_i_{table} ON right_{table} (log_index)")

    def put_row(self, row: Any) -> None:
        """A view row as it must be."""
        table = TABLES[type(row)]
        marks = ", ".join("CAST(? AS TEXT)" if is_no_text(item) else "?" for item in row)
        values = [as_stored(item) for item in row]
        self._connection.execute(f"INSERT OR REPLACE INTO right_{table} VALUES ({marks})", values)

    def put_links(self, table: str, index: int, links: Mapping[str, Any]) -> None:
        """What a later entry says of a row."""
        rows = [(known_table(table), index, name, value) for name, value in links.items()]
        self._connection.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", rows)

    def delete_row(self, table: str, index: int) -> None:
        """A view row that belongs to no entry."""
        self._connection.execute("INSERT INTO gone VALUES (?, ?)", (known_table(table), index))

    def put_node(self, tree: int, level: int, position: int, digest: Digest) -> None:
        """Write a tree node as it must be."""
        self._connection.execute(
            "INSERT OR REPLACE INTO merkle_nodes VALUES (?, ?, ?, ?)",
            (tree, level, position, digest),
        )

    def delete_node(self, tree: int, level: int, position: int) -> None:
        """A tree node that belongs to nothing."""
        self._connection.execute(
            "INSERT INTO stray_nodes VALUES (?, ?, ?)", (tree, level, position)
        )

    def finish(self) -> None:
        """Change the views as noted, with the guards lifted for as long as that takes."""
        guards = self._connection.execute(_GUARDED).fetchall()
        for name, _ in guards:
            self._connection.execute(f'DROP TRIGGER "{name}"')
        for table in TABLES.values():
            self._replace_rows(table)
        self._set_links()
        self._connection.execute(
            "DELETE FROM merkle_nodes WHERE (tree, level, position) IN (SELECT * FROM stray_nodes)"
        )
        for _, sql in guards:
            self._connection.execute(sql)
        # A ledger in memory keeps this connection.
        for note in (*_NOTES, *(f"right_{table}" for table in TABLES.values())):
            self._connection.execute(f"DROP TABLE temp.{note}")

    def _replace_rows(self, table: str) -> None:
        for wrong in (
            f"SELECT log_index FROM right_{table}",
            f"SELECT log_index FROM gone WHERE name = '{table}'",
        ):
            self._connection.execute(f"DELETE FROM {table} WHERE log_index IN ({wrong})")
        # A second start of one session, say, has no room beside the first: it stays told of.
        self._connection.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM right_{table}")

    def _set_links(self) -> None:
        for table, index, name, value in self._connection.execute("SELECT * FROM links").fetchall():
            sql = f'UPDATE {known_table(table)} SET "{name}" = ? WHERE log_index = ?'
            self._connection.execute(sql, (value, index))
