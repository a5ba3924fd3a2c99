"""What a ledger alone cannot tell is told by a checkpoint that somebody kept elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import affidavit
from affidavit.core.checkpoint import TreeHead, sign_checkpoint
from affidavit.core.merkle import Digest
from affidavit.core.note import SigningKey
from affidavit.errors import CannotVerify
from affidavit.verify.findings import Report
from tamper.attack import tampering, told
from tamper.forge import forge_thought
from tamper.history import record_history
from tamper.test_not_caught import cut_everything


def note_of(path: Path, size: int | None = None, origin: str | None = None) -> str:
    """A checkpoint of a ledger, as an auditor keeps it; whose key signed it is not asked here."""
    with affidavit.open(path, readonly=True) as ledger:
        grown = ledger.prove_growth(1, size)
        name = origin or ledger.origin
    head = TreeHead(name, grown.new_size, Digest(bytes.fromhex(grown.new_root)))
    return sign_checkpoint(head, [SigningKey(name, b"k" * 32)]).decode()


def audit(path: Path, *notes: str) -> Report:
    with affidavit.open(path, readonly=True) as ledger:
        return ledger.verify(pinned=notes)


def test_a_sound_ledger_grew_out_of_every_checkpoint(original: Path) -> None:
    sizes = [783, 700, 512]
    notes = [note_of(original, size) for size in sizes]
    report = audit(original, *notes)
    assert told(report) == []
    assert report.checked["pinned"] == 783
    assert not any("rewritten as a whole" in said for said in report.unchecked)


@pytest.mark.parametrize("size", [783, 700, 512, 40])
def test_log_and_views_cut_together_are_told(original: Path, victim: Path, size: int) -> None:
    note = note_of(original)
    with tampering(victim) as connection:
        cut_everything(connection, size)
    assert told(audit(victim, note)) == [("tail_removed", size, "log")]


def test_a_history_told_again_with_one_word_changed_is_told(original: Path, tmp_path: Path) -> None:
    forged = tmp_path / "forged.db"
    record_history(forged, slip=" not")
    note = note_of(original)
    assert told(audit(forged, note)) == [("fork", None, "log")]
    twice = audit(forged, note, note)
    assert told(twice) == [("fork", None, "log")]
    assert not any("was given" in said for said in twice.unchecked)
    assert any("no checkpoint kept elsewhere fits" in said for said in twice.unchecked)


def test_what_is_appended_behind_the_checkpoint_is_said_to_be_open(
    original: Path, victim: Path
) -> None:
    note = note_of(original)
    with tampering(victim) as connection:
        forge_thought(connection, "in your name", agent_id="agent-1")
    report = audit(victim, note)
    assert told(report) == []
    assert any("the last 1 entries" in said for said in report.unchecked)


def test_an_edited_entry_is_told_once_where_it_stands(original: Path, victim: Path) -> None:
    note = note_of(original)
    with tampering(victim) as connection:
        connection.execute("UPDATE thought_records SET content = 'x' WHERE log_index = 200")
    assert [code for code, *_ in told(audit(victim, note))] == ["payload_mismatch"]


def test_a_checkpoint_of_another_log_judges_nothing(original: Path) -> None:
    with pytest.raises(CannotVerify, match="not a name of this log"):
        audit(original, note_of(original, origin="other.example"))


def test_only_what_is_new_is_read_and_the_rest_is_named(original: Path, victim: Path) -> None:
    note = note_of(original, 600)
    with affidavit.open(victim, readonly=True) as ledger:
        report = ledger.verify(pinned=[note], new_only=True)
        size = len(ledger)
    assert told(report) == []
    assert (report.checked["entries"], report.checked["pinned"]) == (size - 512, 600)
    assert any("the first 512 entries were not read again" in said for said in report.unchecked)


def test_a_change_of_what_is_new_is_told_as_ever(original: Path, victim: Path) -> None:
    note = note_of(original, 600)
    with tampering(victim) as connection:
        connection.execute("UPDATE thought_records SET content = 'x' WHERE log_index = 700")
    with affidavit.open(victim, readonly=True) as ledger:
        report = ledger.verify(pinned=[note], new_only=True)
    assert [(code, index) for code, index, _ in told(report)] == [("payload_mismatch", 700)]


def test_an_old_part_whose_hashes_were_changed_is_read_again_as_a_whole(
    original: Path, victim: Path
) -> None:
    note = note_of(original, 600)
    with tampering(victim) as connection:
        connection.execute("UPDATE merkle_nodes SET hash = ? WHERE tree = 0", (b"n" * 32,))
    with affidavit.open(victim, readonly=True) as ledger:
        report = ledger.verify(pinned=[note], new_only=True)
    assert {code for code, *_ in told(report)} == {"tree_node_bad", "fork"}


def test_a_text_changed_in_the_part_not_read_again_is_not_caught(
    original: Path, victim: Path
) -> None:
    note = note_of(original, 600)
    with tampering(victim) as connection:
        connection.execute("UPDATE thought_records SET content = 'x' WHERE log_index = 200")
    with affidavit.open(victim, readonly=True) as ledger:
        report = ledger.verify(pinned=[note], new_only=True)
        whole = ledger.verify(pinned=[note])
    assert told(report) == []
    assert any("were not read again" in said for said in report.unchecked)
    assert [code for code, *_ in told(whole)] == ["payload_mismatch"]
