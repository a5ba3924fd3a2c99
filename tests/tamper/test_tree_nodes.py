"""Attacks on the kept nodes of the log's tree and of the trees of sealed sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

import affidavit
from tamper.attack import audit, looking, tampering, told

WRONG = b"w" * 32


def seals(path: Path) -> list[int]:
    with looking(path) as connection:
        rows = connection.execute("SELECT log_index FROM seals ORDER BY log_index")
        return [index for (index,) in rows]


@pytest.mark.parametrize(("position", "index"), [(0, 255), (1, 511), (2, 767)])
@pytest.mark.parametrize("sql", ["UPDATE merkle_nodes SET hash = ?4", "DELETE FROM merkle_nodes"])
def test_a_node_of_the_log(victim: Path, sql: str, position: int, index: int) -> None:
    with tampering(victim) as connection:
        where = " WHERE tree = ?1 AND level = ?2 AND position = ?3 AND hash <> ?4"
        connection.execute(sql + where, (0, 8, position, WRONG))
    assert told(audit(victim)) == [("tree_node_bad", index, "merkle_nodes")]


@pytest.mark.parametrize("sql", ["UPDATE merkle_nodes SET hash = ?1", "DELETE FROM merkle_nodes"])
def test_every_single_node_of_sealed_sessions(victim: Path, sql: str) -> None:
    with looking(victim) as connection:
        nodes = connection.execute(
            "SELECT tree, level, position FROM merkle_nodes WHERE tree > 0"
        ).fetchall()
    assert len(nodes) > 25
    with tampering(victim) as connection:
        connection.execute(sql + " WHERE tree > 0 AND hash <> ?1", (WRONG,))
    found = told(audit(victim))
    assert found == [("tree_node_bad", tree, "merkle_nodes") for tree, _, _ in sorted(nodes)]


@pytest.mark.parametrize(
    ("tree", "level", "position"),
    [
        (0, 8, 3),
        (0, 8, -1),
        (0, 8, 2**40),
        (0, 0, 0),
        (0, 1, 0),
        (0, 7, 1),
        (0, 9, 0),
        (0, 16, 0),
        (0, 24, 0),
        (0, 64, 0),
        (0, 72, 0),
        (0, 2**40, 0),
        (0, -8, 0),
        (0, -16, 1),
        (-1, 8, 0),
        (1, 1, 0),
        (200, 1, 0),
        (2_000, 1, 0),
        (2**62, 1, 0),
    ],
)
def test_a_node_that_belongs_to_nothing(victim: Path, tree: int, level: int, position: int) -> None:
    with tampering(victim) as connection:
        row = (tree, level, position, WRONG)
        connection.execute("INSERT INTO merkle_nodes VALUES (?, ?, ?, ?)", row)
    assert told(audit(victim)) == [("tree_node_bad", None, "merkle_nodes")]


@pytest.mark.parametrize(
    ("level", "position"),
    [(0, 0), (-1, 0), (1, -1), (1, 4), (1, 2**40), (2, 2), (3, 1), (4, 0), (63, 0), (64, 0)],
)
def test_a_node_too_many_in_the_tree_of_a_sealed_session(
    victim: Path, level: int, position: int
) -> None:
    """The session has eight records: nodes 1,0 to 1,3 and 2,0 to 2,1 and 3,0."""
    index = seals(victim)[0]
    with tampering(victim) as connection:
        row = (index, level, position, WRONG)
        connection.execute("INSERT INTO merkle_nodes VALUES (?, ?, ?, ?)", row)
    ((code, place, table),) = told(audit(victim))
    assert (code, table) == ("tree_node_bad", "merkle_nodes")
    assert place in (index, None)


def test_the_trees_of_two_seals_swapped(victim: Path) -> None:
    one, _, other, *_ = seals(victim)
    with tampering(victim) as connection:
        for old, new in ((one, -5), (other, one), (-5, other)):
            sql = "UPDATE merkle_nodes SET tree = ? WHERE tree = ?"
            connection.execute(sql, (new, old))
    found = told(audit(victim))
    assert {code for code, _, _ in found} == {"tree_node_bad"}
    assert {index for _, index, _ in found} == {one, other}


def test_two_nodes_of_the_log_swapped(victim: Path) -> None:
    with tampering(victim) as connection:
        for old, new in ((0, -5), (1, 0), (-5, 1)):
            sql = "UPDATE merkle_nodes SET position = ? WHERE tree = 0 AND position = ?"
            connection.execute(sql, (new, old))
    assert told(audit(victim)) == [
        ("tree_node_bad", 255, "merkle_nodes"),
        ("tree_node_bad", 511, "merkle_nodes"),
    ]


def test_a_wrong_count_in_the_row_of_a_seal_makes_no_node_a_stray(victim: Path) -> None:
    index = seals(victim)[0]
    with tampering(victim) as connection:
        connection.execute("UPDATE seals SET record_count = 1 WHERE log_index = ?", (index,))
    assert told(audit(victim)) == [("view_differs", index, "seals.record_count")]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger whose tree has a kept node of the second kind: 65,536 entries and more."""
    path = tmp_path_factory.mktemp("large") / "large.db"
    with affidavit.open(path) as ledger:
        for start in range(0, 66_000, 10_000):
            ledger.record_thoughts(
                [
                    {"type": "plan", "task_id": f"t{n % 7}", "agent_id": "a", "content": str(n)}
                    for n in range(start, min(start + 10_000, 66_000))
                ]
            )
    return path


def test_a_node_above_the_nodes(large: Path) -> None:
    with looking(large) as connection:
        sql = "SELECT hash FROM merkle_nodes WHERE level = ? AND position = 0"
        top = connection.execute(sql, (16,)).fetchone()[0]
        low = connection.execute(sql, (8,)).fetchone()[0]
    change = "UPDATE merkle_nodes SET hash = ? WHERE level = ? AND position = 0"
    with tampering(large) as connection:
        connection.execute(change, (WRONG, 16))
    assert told(audit(large)) == [("tree_node_bad", 65_535, "merkle_nodes")]
    with tampering(large) as connection:
        connection.execute(change, (top, 16))
        connection.execute(change, (WRONG, 8))
    # The node above is judged by the leaves, not by the node that is wrong.
    assert told(audit(large)) == [("tree_node_bad", 255, "merkle_nodes")]
    with tampering(large) as connection:
        connection.execute("DELETE FROM merkle_nodes WHERE level = 16")
        connection.execute(change, (low, 8))
    assert told(audit(large)) == [("tree_node_bad", 65_535, "merkle_nodes")]
