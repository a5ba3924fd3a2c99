"""Several processes verify one ledger: the same report as by one walk, whatever it says."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import pytest

import affidavit
from affidavit.ledger import verifying
from affidavit.verify.ledger import split


@pytest.fixture
def long(open_ledger, path, monkeypatch):
    """A ledger that counts as long, with sessions and tasks across every seam."""
    monkeypatch.setattr(verifying, "LONG", 1_000)
    ledger = open_ledger()
    sessions = [ledger.start_session(intent="x").session_id for _ in range(3)]
    task = ledger.create_task(title="x").id
    for step in range(6):
        ledger.record_thoughts(
            [
                {"type": "plan", "task_id": f"t{n % 5}", "agent_id": "a", "content": f"{step} {n}",
                 "session_id": sessions[n % 3]}
                for n in range(300)
            ]
        )  # fmt: skip
        ledger.update_task(task, priority=f"{step}")
    for session in sessions:
        ledger.seal_session(session)
        ledger.end_session(session)
    return ledger


def test_together_they_say_what_one_walk_says(long):
    alone, shown = long.verify(cores=1), []
    assert long.verify(cores=2, progress=lambda done, size: shown.append((done, size))) == alone
    assert alone.valid
    assert alone.checked["seals"] == 3
    assert shown
    assert all(done <= size == len(long) for done, size in shown)


def test_what_is_wrong_is_told_as_by_one_walk(long, path, tmp_path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"VACUUM INTO '{tmp_path}/bad.db'")
    with closing(sqlite3.connect(tmp_path / "bad.db")) as connection:
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE thought_records SET content = 'x' WHERE log_index = 1500")
        connection.commit()
    with affidavit.open(tmp_path / "bad.db", readonly=True) as ledger:
        report = ledger.verify(cores=2)
        assert report == ledger.verify(cores=1)
        assert ("payload_mismatch", 1500) in [(one.code, one.index) for one in report.findings]


@pytest.mark.parametrize("program", ["/bin/false", "/bin/true", "/nowhere/python", ""])
def test_where_no_process_can_help_one_walk_does_it(long, monkeypatch, program):
    expected = long.verify(cores=1)
    monkeypatch.setattr(sys, "executable", program)
    assert long.verify(cores=2) == expected


def test_a_ledger_in_memory_is_verified_by_one_walk(monkeypatch):
    monkeypatch.setattr(verifying, "LONG", 1)
    with affidavit.open(":memory:") as ledger:
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content="c")
        assert ledger.verify(cores=2).valid


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 5_000, 100_000])
@pytest.mark.parametrize("parts", [1, 2, 8])
def test_stretches_cover_a_log_without_a_gap(size, parts):
    stretches = split(size, parts)
    assert stretches[0].start == 0
    assert stretches[-1].end is None
    assert [one.end for one in stretches[:-1]] == [one.start for one in stretches[1:]]
    assert all(one.start % 256 == 0 and one.start <= size for one in stretches)
