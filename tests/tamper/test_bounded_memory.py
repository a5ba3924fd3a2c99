"""More tasks and sessions than a verifier keeps in mind: looked up again, judged the same."""

from __future__ import annotations

import itertools
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import affidavit
from affidavit.verify import ledger as walk
from affidavit.verify import rows
from tamper.attack import audit, looking, open_for_writing, tampering, told

THOUGHTS, TASKS, SESSIONS = 10_000, 2_500, 1_500
FIRST_AT_US = 1_776_384_000_000_000
KEPT_MAX = 3


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten thousand thoughts, no two neighbours of one task or of one session."""
    path = tmp_path_factory.mktemp("crowd") / "crowd.db"
    clock = itertools.count(FIRST_AT_US)
    with affidavit.open(":memory:", clock=lambda: next(clock)) as ledger:
        fill(ledger)
        # No disk is waited for while it is made; one statement writes it out.
        ledger._context.store._committer.connection().execute("VACUUM INTO ?", (str(path),))
    return path


def fill(ledger: Any) -> None:
    chance = random.Random("crowd")
    names = [f"s{number}" for number in range(SESSIONS)]
    for name in names:
        ledger.start_session(intent="one of many", session_id=name)
    tasks = [ledger.create_task(title=f"task {number}").id for number in range(100)]
    for start in range(0, THOUGHTS, 2_500):
        ledger.record_thoughts(
            [
                {
                    "type": "reflection" if n > 7_500 else "plan",
                    "task_id": f"t{n * 7 % TASKS}",
                    "agent_id": "a",
                    "content": f"thought {n}",
                    "session_id": names[n * 11 % SESSIONS] if n % 3 else None,
                }
                for n in range(start, start + 2_500)
            ]
        )
        for task_id in tasks:
            ledger.update_task(task_id, priority=f"p{start}")
    for name in chance.sample(names, 900):
        if ledger.get_session(name).record_count:
            ledger.seal_session(name)
    for name in chance.sample(names, 300):
        ledger.end_session(name)


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verifier that keeps next to nothing in mind."""
    for module in (walk, rows):
        for name in limits_of(module):
            monkeypatch.setattr(module, name, KEPT_MAX)


def limits_of(module: ModuleType) -> list[str]:
    return [name for name in vars(module) if name.startswith("_") and name.endswith("S_MAX")]


@pytest.fixture
def crowd_copy(crowd: Path, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "crowd.db"
    shutil.copyfile(crowd, path)
    yield path
    path.unlink()


def find(path: Path, sql: str) -> int:
    with looking(path) as connection:
        return connection.execute(sql).fetchone()[0]


def test_the_limits_are_there_to_be_lowered() -> None:
    assert {"_TASKS_MAX", "_SESSIONS_MAX"} <= set(limits_of(walk))


@pytest.mark.usefixtures("forgetful")
def test_a_large_ledger_is_sound_to_a_forgetful_verifier(crowd: Path) -> None:
    report = audit(crowd)
    assert told(report) == []
    assert report.checked["thoughts"] == THOUGHTS
    assert report.checked["sessions"] == SESSIONS
    assert report.checked["seals"] > 500


def test_it_is_sound_to_a_mindful_one_too(crowd: Path) -> None:
    assert told(audit(crowd)) == []


BOUND = "SELECT log_index FROM thought_records WHERE session_id IS NOT NULL"
ATTACKS = [
    ("thought_records", "content = 'x'", f"{BOUND} ORDER BY log_index LIMIT 1"),
    ("thought_records", "content = 'x'", f"{BOUND} ORDER BY log_index LIMIT 1 OFFSET 3500"),
    ("thought_records", "content = 'x'", "SELECT max(log_index) FROM thought_records"),
    ("thought_records", "agent_id = 'x'", f"{BOUND} ORDER BY log_index LIMIT 1 OFFSET 4500"),
    ("sessions", "caller = 'x'", "SELECT log_index FROM sessions WHERE session_id = 's750'"),
    ("seals", "record_count = 1", "SELECT log_index FROM seals LIMIT 1 OFFSET 300"),
    ("task_versions", "assignee = 'x'", "SELECT log_index FROM task_versions LIMIT 1 OFFSET 250"),
    ("task_versions", "title = 'x'", "SELECT log_index FROM task_versions LIMIT 1 OFFSET 50"),
]


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(("table", "change", "where"), ATTACKS)
def test_a_forgetful_verifier_finds_a_changed_row_all_the_same(
    crowd_copy: Path, table: str, change: str, where: str
) -> None:
    index = find(crowd_copy, where)
    with tampering(crowd_copy) as connection:
        connection.execute(f"UPDATE {table} SET {change} WHERE log_index = ?", (index,))
    (code, place, column), *others = told(audit(crowd_copy))
    assert code in ("view_differs", "payload_mismatch")
    assert (place, column) == (index, f"{table}.{change.split(maxsplit=1)[0]}")
    assert len(others) <= 3, others


@pytest.mark.usefixtures("forgetful")
def test_a_forgetful_verifier_finds_a_second_start(crowd_copy: Path) -> None:
    from tamper.forge import forge_session

    with tampering(crowd_copy) as connection:
        sql = "SELECT * FROM sessions WHERE session_id = 's5'"
        row = connection.execute(sql).fetchone()
        index = forge_session(connection, "s5")
        connection.execute("DELETE FROM sessions WHERE session_id = 's5'")
        connection.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * len(row))})", row)
    found = told(audit(crowd_copy))
    assert ("chain_broken", index, "log") in found
    assert {place for _, place, _ in found} == {index}


@pytest.mark.usefixtures("forgetful")
def test_a_forgetful_verifier_rebuilds_what_is_derived(crowd: Path, crowd_copy: Path) -> None:
    def read(path: Path) -> list[Any]:
        tables = ("sessions", "seals", "task_versions", "merkle_nodes")
        with closing(sqlite3.connect(path)) as connection:
            return [connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables]

    with tampering(crowd_copy) as connection:
        connection.execute("DELETE FROM seals")
        connection.execute("DELETE FROM merkle_nodes")
        connection.execute("UPDATE sessions SET ended_index = NULL, ended_at = 'x', caller = 'y'")
        connection.execute("UPDATE task_versions SET superseded_by = NULL, priority = 'z'")
    with open_for_writing(crowd_copy) as ledger:
        ledger.rebuild()
        assert told(ledger.verify()) == []
    assert read(crowd_copy) == read(crowd)
