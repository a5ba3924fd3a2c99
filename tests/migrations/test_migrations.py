"""Old files open, also for reading only; migrations run again change nothing; newer files wait."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import affidavit
from affidavit.core.views import TABLES
from affidavit.stores.sqlite.audit import expected_schema, read_schema
from affidavit.stores.sqlite.connection import APPLICATION_ID, migrate
from affidavit.stores.sqlite.queries import load_migrations

NEWEST = len(load_migrations())
OLDER = range(1, NEWEST)


def fill(path: Path) -> None:
    """A ledger of facts that the first version could write."""
    with affidavit.open(path) as ledger:
        task = ledger.create_task(title="x", description="more")
        session = ledger.start_session(intent="x", task_id=task.id).session_id
        for number in range(300):
            ledger.record_thought(
                type="reflection", task_id=task.id, agent_id="a", content=f"c{number}",
                session_id=session if number % 2 else None,
            )  # fmt: skip
        ledger.update_task(task.id, status="DONE")
        ledger.seal_session(session)
        ledger.end_session(session)
        ledger.set(writeback="reflection")


def make_older(path: Path, version: int) -> None:
    """The same facts in a file as an earlier version left it."""
    newer = path.with_suffix(".newer")
    shutil.move(path, newer)
    with closing(sqlite3.connect(path)) as file:
        for script in load_migrations()[:version]:
            file.executescript(script)
        file.execute("ATTACH ? AS newer", (str(newer),))
        tables = file.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            names = [row[1] for row in file.execute(f"PRAGMA main.table_info({table})")]
            columns = ", ".join(names)
            file.execute(f"INSERT INTO main.{table} SELECT {columns} FROM newer.{table}")
        file.execute(f"PRAGMA main.application_id = {APPLICATION_ID}")
        file.execute(f"PRAGMA main.user_version = {version}")
        file.commit()
        file.execute("DETACH newer")
        file.execute("PRAGMA journal_mode = WAL")


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "trail.db"
    fill(path)
    return path


@pytest.mark.parametrize("version", OLDER)
def test_an_older_file_is_read_and_holds_without_being_changed(filled: Path, version: int) -> None:
    make_older(filled, version)
    before = filled.read_bytes()
    with affidavit.open(filled, readonly=True) as ledger:
        report = ledger.verify()
        assert report.valid, report.findings
        assert ledger.verify_chain(all=True).valid
        assert ledger.rebuild(check=True).valid
        assert ledger.list_keys() == []
        assert len(ledger.list_thoughts()) == 300
        assert ledger.settings["writeback"] == "reflection"
    assert filled.read_bytes() == before


@pytest.mark.parametrize("version", OLDER)
def test_an_older_file_is_brought_up_to_date_by_a_writer(filled: Path, version: int) -> None:
    make_older(filled, version)
    with affidavit.open(filled) as ledger:
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content="newer")
        assert ledger.describe()["schema_version"] == NEWEST
        assert ledger.verify().valid


@pytest.mark.parametrize("version", OLDER)
def test_a_newer_file_that_says_it_is_older_is_told_of(filled: Path, version: int) -> None:
    with closing(sqlite3.connect(filled)) as file:
        file.execute(f"PRAGMA user_version = {version}")
    with affidavit.open(filled, readonly=True) as ledger:
        assert {found.code for found in ledger.verify().findings} == {"schema_changed"}


def test_all_migrations_make_the_schema_of_a_fresh_ledger(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as file:
        found = read_schema(file)
    assert found == expected_schema(NEWEST)
    tables = {name for kind, name in found if kind == "table"}
    assert tables >= {*TABLES.values(), "log", "merkle_nodes", "idempotency_keys"}


def test_migrations_run_again_change_nothing(filled: Path) -> None:
    with closing(sqlite3.connect(filled, isolation_level=None)) as file:
        before = sorted(file.iterdump())
        file.execute("PRAGMA user_version = 1")
        for script in load_migrations():
            file.executescript(script)
        migrate(file, str(filled))
        assert file.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        assert sorted(file.iterdump()) == before
