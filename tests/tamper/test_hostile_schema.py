"""A file made to keep whoever reads it busy: refused before anything of it is run."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import affidavit
from affidavit.core.views import TABLES
from affidavit.errors import IntegrityViolation

NAMES = ("log", "merkle_nodes", "idempotency_keys", *TABLES.values())
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"


def replace_table(path: Path, name: str, make: Callable[[list[str]], str]) -> None:
    """Put something else in the place of a table, with the same columns."""
    with closing(sqlite3.connect(path)) as connection:
        for kind in ("trigger", "view"):
            sql = "SELECT name FROM sqlite_schema WHERE type = ?"
            for (other,) in connection.execute(sql, (kind,)).fetchall():
                connection.execute(f"DROP {kind} {other}")
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        connection.execute(f"ALTER TABLE {name} RENAME TO real_{name}")
        connection.execute(make(columns))
        connection.commit()


def refused(path: Path, name: str) -> None:
    for readonly in (True, False):
        with pytest.raises(IntegrityViolation, match=f"{name} is no plain table") as error:
            affidavit.open(path, readonly=readonly)
        assert error.value.details["finding"] == "schema_changed"
        assert error.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_a_view_in_the_place_of_a_table_is_not_asked(victim: Path, name: str) -> None:
    def endless(columns: list[str]) -> str:
        rows = ", ".join(f"r.n AS {column}" for column in columns)
        return f"CREATE VIEW {name} AS {ENDLESS} SELECT {rows} FROM r WHERE n < 0"

    replace_table(victim, name, endless)
    refused(victim, name)


def test_a_column_that_is_computed_is_not_asked(victim: Path) -> None:
    def heavy(columns: list[str]) -> str:
        rest = ", ".join(column for column in columns if column != "entry")
        return f"CREATE TABLE log ({rest}, entry AS (hex(zeroblob(400000000))))"

    replace_table(victim, "log", heavy)
    refused(victim, "log")


def test_a_virtual_table_is_not_asked(victim: Path) -> None:
    def virtual(columns: list[str]) -> str:
        return f"CREATE VIRTUAL TABLE log USING fts5({', '.join(columns)})"

    replace_table(victim, "log", virtual)
    refused(victim, "log")


def test_the_command_says_so_at_once(victim: Path, tmp_path: Path) -> None:
    replace_table(
        victim, "log", lambda _: f"CREATE VIEW log AS {ENDLESS} SELECT n AS log_index FROM r"
    )
    done = subprocess.run(
        [sys.executable, "-m", "affidavit", "verify", str(victim)],
        env={"AFFIDAVIT_HOME": str(tmp_path / "home"), "PATH": ""},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "log is no plain table" in done.stderr
