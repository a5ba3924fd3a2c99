"""Putting views right: the only place that lifts the guards, inside one transaction."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from affidavit.core.merkle import Digest
from affidavit.core.views import TABLES
from affidavit.stores.sqlite.audit import known_table

_GUARDED: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"


class SqliteRepairer:
    """Replaces and removes rows that differ from what the log says."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        guards = connection.execute(_GUARDED).fetchall()
        self._guards = list(guards)
        for name, _ in self._guards:
            connection.execute(f'DROP TRIGGER "{name}"')

    def finish(self) -> None:
        """Put the guards back."""
        for _, sql in self._guards:
            self._connection.execute(sql)

    def put_row(self, row: Any) -> None:
        """Write a view row as it must be."""
        table = TABLES[type(row)]
        marks = ", ".join("?" * len(row))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)

    def delete_row(self, table: str, index: int) -> None:
        """Remove a view row that belongs to no entry."""
        self._connection.execute(f"DELETE FROM {known_table(table)} WHERE log_index = ?", (index,))

    def put_node(self, tree: int, level: int, position: int, digest: Digest) -> None:
        """Write a tree node as it must be."""
        self._connection.execute(
            "INSERT OR REPLACE INTO merkle_nodes VALUES (?, ?, ?, ?)",
            (tree, level, position, digest),
        )

    def delete_node(self, tree: int, level: int, position: int) -> None:
        """Remove a tree node that belongs to nothing."""
        self._connection.execute(
            "DELETE FROM merkle_nodes WHERE tree = ? AND level = ? AND position = ?",
            (tree, level, position),
        )
