"""Attacks on sessions by someone who forges entry, leaf hash, row and nodes together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamper.attack import audit, log_size, looking, tampering, told
from tamper.forge import (
    forge,
    forge_end,
    forge_seal,
    forge_session,
    forge_thought,
    seal_claims,
)

WRONG_HASH = "ab" * 32
OPEN, ENDED, SEALED = "c-open", "b-lost", "a-proof"


def seal_index(path: Path, session_id: str) -> int:
    with looking(path) as connection:
        sql = "SELECT log_index FROM seals WHERE session_id = ?"
        return connection.execute(sql, (session_id,)).fetchone()[0]


def test_facts_forged_without_a_fault_are_not_found(victim: Path) -> None:
    """The control of every test below: an attacker who may append can append."""
    with tampering(victim) as connection:
        forge_thought(connection, "never said")
        forge_thought(connection, "never said in here", OPEN, type="reflection")
        forge_seal(connection, OPEN)
        forge_end(connection, OPEN)
        forge_session(connection, "forged")
        forge_thought(connection, "nor this", "forged")
        forge_seal(connection, "forged")
    report = audit(victim)
    assert told(report) == []
    assert "nothing was authenticated" in report.unchecked[0]


def test_a_record_after_the_seal_of_its_session(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_thought(connection, "late", SEALED)
    assert told(audit(victim)) == [("seal_mismatch", index, "log")]


def test_a_record_after_the_end_of_its_session(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_thought(connection, "late", ENDED)
    assert told(audit(victim)) == [("chain_broken", index, "log")]


def test_a_record_after_seal_and_end_of_its_session(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_thought(connection, "late", "a-sealed")
    assert told(audit(victim)) == [("seal_mismatch", index, "log")]


def test_an_entry_of_another_kind_naming_a_sealed_session(victim: Path) -> None:
    body = {"session_id": SEALED, "source": "hook", "external_id": "x"}
    with tampering(victim) as connection:
        forge(connection, "session.visited", body)
        index = log_size(connection) - 1
    assert told(audit(victim)) == [("seal_mismatch", index, "log")]


def test_the_end_of_a_sealed_session_is_no_attack(victim: Path) -> None:
    with tampering(victim) as connection:
        forge_end(connection, SEALED)
    assert audit(victim).valid


def test_a_second_end_of_a_session(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_end(connection, ENDED)
    assert told(audit(victim)) == [("chain_broken", index, "log")]


@pytest.mark.parametrize("session_id", [OPEN, ENDED, SEALED])
def test_a_second_start_of_a_session(victim: Path, session_id: str) -> None:
    with tampering(victim) as connection:
        row = connection.execute(
            "SELECT * FROM sessions WHERE session_id = ?", (session_id,)
        ).fetchone()
        index = forge_session(connection, session_id)
        # One row a session is all there can be: the first one stays.
        connection.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO sessions VALUES ({marks})", row)
    found = told(audit(victim))
    assert ("chain_broken", index, "log") in found
    assert {place for _, place, _ in found} == {index}


def test_a_second_seal_of_a_session(victim: Path) -> None:
    first = seal_index(victim, SEALED)
    with tampering(victim) as connection:
        row = connection.execute("SELECT * FROM seals WHERE log_index = ?", (first,)).fetchone()
        index = forge_seal(connection, SEALED)
        connection.execute("DELETE FROM seals WHERE session_id = ?", (SEALED,))
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO seals VALUES ({marks})", row)
        connection.execute("DELETE FROM merkle_nodes WHERE tree = ?", (index,))
    found = told(audit(victim))
    assert ("seal_mismatch", index, "log") in found
    assert {place for _, place, _ in found} == {index}


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("root", WRONG_HASH),
        ("record_count", 8),
        ("record_count", 6),
        ("record_count", 0),
        ("chain_hash", WRONG_HASH),
        ("closing_reflection", True),
        ("entries_root", WRONG_HASH),
        ("entry_count", 9),
        ("entry_count", 0),
        ("first_index", 1),
        ("last_index", 1),
    ],
)
def test_a_seal_that_claims_what_is_not_so(victim: Path, claim: str, value: Any) -> None:
    with tampering(victim) as connection:
        index = forge_seal(connection, OPEN, **{claim: value})
    assert told(audit(victim)) == [("seal_mismatch", index, f"seals.{claim}")]


def test_a_seal_of_a_session_without_records(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_seal(connection, "c-silent")
    assert told(audit(victim)) == [("seal_mismatch", index, "seals.first_index")]


def test_a_seal_that_leaves_the_last_record_out(victim: Path) -> None:
    with tampering(victim) as connection:
        claims = seal_claims(connection, OPEN)
        forge_thought(connection, "to be left out", OPEN)
        index = forge_seal(connection, OPEN, **claims)
    found = told(audit(victim))
    assert found[0] == ("seal_mismatch", index, "seals.root")
    assert {place for _, place, _ in found} == {index}


def test_a_seal_of_a_session_that_is_not_there(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_seal(connection, "nowhere")
    found = told(audit(victim))
    assert ("chain_broken", index, "log") in found


def test_a_genesis_that_is_not_that_of_the_metadata(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_session(connection, "forged", genesis=WRONG_HASH)
    assert told(audit(victim)) == [("chain_broken", index, "log.entry genesis")]


@pytest.mark.parametrize(
    ("session_id", "chain_hash"),
    [("nowhere", WRONG_HASH), (OPEN, None), (ENDED, WRONG_HASH), (SEALED, WRONG_HASH)],
    ids=["unknown", "still open", "other hash, ended", "other hash, sealed"],
)
def test_a_session_that_continues_what_it_cannot(
    victim: Path, session_id: str, chain_hash: str | None
) -> None:
    with tampering(victim) as connection:
        if chain_hash is None:
            sql = (
                "SELECT chain_hash FROM thought_records WHERE session_id = ?"
                " ORDER BY log_index DESC LIMIT 1"
            )
            chain_hash = connection.execute(sql, (session_id,)).fetchone()[0]
        continues = {"chain_hash": chain_hash, "session_id": session_id}
        index = forge_session(connection, "forged", continues=continues)
    assert told(audit(victim)) == [("chain_broken", index, "log.entry continues")]


def test_a_session_of_another_ledger(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_session(connection, "forged", ledger_id="elsewhere")
    assert told(audit(victim)) == [("chain_broken", index, "log.entry ledger_id")]


def test_a_record_of_a_session_that_is_not_there(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_thought(connection, "where?", "nowhere")
        forge_thought(connection, "and on", "nowhere")
    found = told(audit(victim))
    assert found == [("chain_broken", index, "thought_records.session_id")]


@pytest.mark.parametrize(
    ("column", "value"),
    [("prev_hash", WRONG_HASH), ("parent_chain_hash", WRONG_HASH), ("session_seq", 9)],
)
def test_a_record_that_does_not_link_to_the_one_before(
    victim: Path, column: str, value: Any
) -> None:
    with tampering(victim) as connection:
        index = forge_thought(connection, "unlinked", OPEN, **{column: value})
        forge_thought(connection, "linked to that", OPEN)
        forge_thought(connection, "and to that", OPEN)
    assert told(audit(victim)) == [("chain_broken", index, f"thought_records.{column}")]


def test_a_record_whose_hashes_are_not_its_own(victim: Path) -> None:
    with tampering(victim) as connection:
        index = forge_thought(connection, "said so", OPEN)
        connection.execute(
            "UPDATE thought_records SET content = 'said no' WHERE log_index = ?", (index,)
        )
    assert told(audit(victim)) == [("payload_mismatch", index, "thought_records.content")]
