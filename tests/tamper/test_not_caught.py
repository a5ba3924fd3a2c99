"""What a ledger alone cannot tell, and that its report says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from affidavit import IntegrityViolation
from affidavit.core.views import LINKS, TABLES
from affidavit.verify.findings import Report
from tamper.attack import audit, log_size, looking, open_for_writing, tampering, told
from tamper.forge import forge_thought
from tamper.history import record_history


def cut_everything(connection: sqlite3.Connection, size: int) -> None:
    """Leave the ledger as it was when it had so many entries."""
    for table in ("log", *TABLES.values()):
        connection.execute(f"DELETE FROM {table} WHERE log_index >= ?", (size,))
    connection.execute(
        "DELETE FROM merkle_nodes WHERE tree >= ?1 OR (tree = 0 AND position >= ?1 >> level)",
        (size,),
    )
    connection.execute(
        "UPDATE sessions SET ended_index = NULL, ended_at = NULL, end_reason = NULL"
        " WHERE ended_index >= ?",
        (size,),
    )
    for table, links in LINKS.items():
        if "superseded_by" in links:
            connection.execute(
                f"UPDATE {table} SET superseded_by = NULL WHERE superseded_by >= ?", (size,)
            )
    connection.execute("DELETE FROM idempotency_keys WHERE last_index >= ?", (size,))


def says_so(report: Report) -> bool:
    """Whether the report names the two things nothing in the file can show."""
    return any(
        "rewritten as a whole" in said and "cut at its end" in said for said in report.unchecked
    )


@pytest.mark.parametrize("size", [783, 700, 560, 512, 511, 300, 40, 1])
def test_log_and_views_cut_together_at_the_end_are_not_caught(victim: Path, size: int) -> None:
    """The history is shorter and sound: only a checkpoint kept elsewhere could tell."""
    with tampering(victim) as connection:
        cut_everything(connection, size)
    report = audit(victim)
    assert told(report) == []
    assert report.checked["entries"] == size
    assert says_so(report)


def test_a_ledger_that_was_cut_goes_on_as_if_nothing_had_been(victim: Path) -> None:
    with tampering(victim) as connection:
        cut_everything(connection, 600)
    with open_for_writing(victim) as ledger:
        ledger.record_thought(type="plan", task_id="t-1", agent_id="a", content="instead")
    report = audit(victim)
    assert told(report) == []
    assert says_so(report)


def test_a_history_told_again_with_one_word_changed_is_not_caught(
    original: Path, tmp_path: Path
) -> None:
    """Every hash behind the changed word is another one, and all of them fit together."""
    forged = tmp_path / "forged.db"
    record_history(forged, slip=" not")
    with looking(original) as honest, looking(forged) as other:
        sql = "SELECT entry FROM log ORDER BY log_index"
        entries = list(zip(honest.execute(sql), other.execute(sql), strict=True))
        first = next(index for index, (one, two) in enumerate(entries) if one != two)
        assert log_size(other) == log_size(honest) == len(entries)
        assert 300 < first < 512
    report = audit(forged)
    assert told(report) == []
    assert says_so(report)


def test_an_old_copy_put_in_place_of_the_ledger_is_not_caught(victim: Path, original: Path) -> None:
    with open_for_writing(victim) as ledger:
        ledger.record_thought(type="plan", task_id="t-1", agent_id="a", content="taken back")
    victim.write_bytes(original.read_bytes())
    report = audit(victim)
    assert told(report) == []
    assert says_so(report)


def test_facts_appended_by_somebody_else_are_not_caught(victim: Path) -> None:
    with tampering(victim) as connection:
        forge_thought(connection, "in your name", agent_id="agent-1")
    report = audit(victim)
    assert told(report) == []
    assert says_so(report)


def test_a_sound_ledger_says_what_is_not_checked(original: Path) -> None:
    assert says_so(audit(original))


def test_a_bad_ledger_says_what_is_not_checked_too(victim: Path) -> None:
    with tampering(victim) as connection:
        connection.execute("UPDATE thought_records SET content = 'x' WHERE log_index = 200")
    assert says_so(audit(victim))
    with closing(sqlite3.connect(victim)) as connection:
        connection.execute("DROP TABLE seals")
    assert says_so(audit(victim))


def test_a_cut_that_forgets_a_view_is_caught(victim: Path) -> None:
    with tampering(victim) as connection:
        connection.execute("DELETE FROM log WHERE log_index >= 560")
    found = told(audit(victim))
    codes = {"view_extra", "view_differs", "tree_node_bad", "tail_removed"}
    assert {code for code, _, _ in found} <= codes
    assert "view_extra" in {code for code, _, _ in found}


def test_a_cut_that_forgets_the_links_is_caught(victim: Path) -> None:
    with tampering(victim) as connection:
        for table in ("log", *TABLES.values()):
            connection.execute(f"DELETE FROM {table} WHERE log_index >= 565")
        connection.execute(
            "DELETE FROM merkle_nodes WHERE tree >= 565 OR (tree = 0 AND position = 2)"
        )
        sql = "SELECT log_index FROM sessions WHERE ended_index >= 565"
        ends = {index for (index,) in connection.execute(sql)}
        links = {
            index
            for table, names in LINKS.items()
            if "superseded_by" in names
            for (index,) in connection.execute(
                f"SELECT log_index FROM {table} WHERE superseded_by >= 565"
            )
        }
        connection.execute("DELETE FROM idempotency_keys WHERE last_index >= 565")
    assert ends
    found = told(audit(victim))
    assert {index for _, index, _ in found} == ends | links
    assert {code for code, _, _ in found} == {"view_differs"}


def test_a_cut_that_forgets_the_keys_of_retries_is_caught(victim: Path) -> None:
    with tampering(victim) as connection:
        keys = connection.execute("SELECT * FROM idempotency_keys").fetchall()
        cut_everything(connection, 200)
        connection.execute("DELETE FROM idempotency_keys")
        connection.executemany("INSERT INTO idempotency_keys VALUES (?, ?, ?, ?, ?, ?)", keys)
    assert told(audit(victim)) == [("tail_removed", 200, "log")]


def test_a_log_emptied_but_for_the_keys_of_retries_is_caught(victim: Path) -> None:
    with tampering(victim) as connection:
        for table in ("log", "merkle_nodes", *TABLES.values()):
            connection.execute(f"DELETE FROM {table}")
    assert told(audit(victim)) == [("tail_removed", 0, "log")]
    with pytest.raises(IntegrityViolation), open_for_writing(victim):
        pass


def test_a_cut_that_forgets_the_nodes_is_caught(victim: Path) -> None:
    with tampering(victim) as connection:
        cut_everything(connection, 500)
        connection.execute("INSERT INTO merkle_nodes VALUES (0, 8, 1, ?)", (b"n" * 32,))
    assert told(audit(victim)) == [("tree_node_bad", None, "merkle_nodes")]
