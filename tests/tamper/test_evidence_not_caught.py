"""What an evidence file alone cannot tell, and that its report says so."""

from __future__ import annotations

import json
from hashlib import sha256

from affidavit.core.bundle import Scope, Shown
from affidavit.core.checkpoint import parse_checkpoint
from affidavit.core.thought import ZERO_HASH
from affidavit.verify.evidence import verify_evidence
from affidavit.verify.trust import Trust
from tamper.evidence_kit import (
    ENDED,
    ENTRIES,
    KEY,
    SEAL,
    STRANGER,
    TRUST,
    ForgedLog,
    Opened,
    change_entry,
    judge,
    payloads_of,
    range_file,
    session_file,
    task_file,
    told,
)

LOG = ForgedLog(ENTRIES)
SESSION = session_file(LOG)


def says(report, words):
    """A verdict that nothing is wrong, and a line that says what nobody could tell."""
    assert told(report) == []
    return any(words in said for said in (*report.unchecked, *report.missing))


def test_a_content_kept_back_by_the_sender_is_not_caught():
    opened = Opened(SESSION)
    opened.change_line(
        "payloads.jsonl", 4, lambda line: line.update(fields={"content": {"withheld": True}})
    )
    report = judge(opened.sealed())
    assert report.verdict == "verified"
    assert says(report, "1 payloads withheld by whoever made the file")


def test_a_seal_left_out_with_all_claims_about_it_is_not_caught():
    """A file of the same session from before it was sealed looks alike."""
    part = LOG.part(1)._replace(entry_count=7)
    indices = range(1, 8)
    data = LOG.evidence(Scope("session", "s1"), indices, payloads_of(indices), {1: part})
    report = judge(data)
    assert report.verdict == "verified"
    assert report.checked["complete"] == 0
    assert says(report, "whether entries of session 's1' are missing: no seal of it is in the file")


def test_what_followed_a_seal_left_out_is_not_caught():
    opened = Opened(SESSION)
    opened.drop_entry(ENDED)
    report = judge(opened.sealed())
    assert report.verdict == "verified"
    assert report.checked["complete"] == 1


def test_what_followed_a_seal_is_counted_and_said_to_be_open():
    assert says(judge(SESSION), "whether more entries name session 's1' behind its seal than the 1")


def test_the_last_record_of_a_task_left_out_is_not_caught():
    opened = Opened(task_file(LOG))
    opened.drop_entry(7)
    report = judge(opened.sealed())
    assert report.verdict == "verified"
    assert says(report, "whether the task has records behind the last one here")


def test_an_older_checkpoint_is_not_caught():
    """Somebody hands out what the log was before; what came behind it is not in the file."""
    report = judge(range_file(ForgedLog(ENTRIES[:8]), 0, 8))
    assert report.verdict == "verified"
    assert says(report, "what was recorded behind this checkpoint, from entry 8 on")


def retold():
    """The log with one word of it otherwise, every hash behind it made anew, and signed so."""
    body = json.loads(ENTRIES[8])["body"]
    said = {key: body[key] for key in ("id", "task_id", "timestamp", "type", "prev_hash")}
    text = json.dumps({"content": "bound", **said}, sort_keys=True, separators=(",", ":"))
    hash_ = sha256(text.encode()).hexdigest()
    changed = change_entry(ENTRIES[8], lambda value: value["body"].update(hash=hash_))
    return ForgedLog([*ENTRIES[:8], changed, *ENTRIES[9:]])


def retold_file():
    indices = range(12)
    payloads = payloads_of(indices) | {8: {"content": Shown("bound")}}
    return retold().evidence(Scope("range", "0:12"), indices, payloads)


def test_a_log_retold_and_signed_again_with_its_own_key_is_not_caught():
    report = judge(retold_file())
    assert report.verdict == "verified"
    assert says(report, "no witness was asked for")


def test_a_log_retold_is_caught_by_a_checkpoint_kept_from_before():
    pin = parse_checkpoint(LOG.note)
    for trust in (TRUST._replace(pinned=(pin,)), TRUST._replace(kept=(pin,)), Trust(kept=(pin,))):
        report = verify_evidence(retold_file(), trust)
        assert (report.verdict, told(report)) == ("violation", [("fork", None, "checkpoint")])
    assert verify_evidence(range_file(LOG), Trust(pinned=(pin,))).verdict == "verified"


def test_a_pin_of_another_size_or_log_is_said_to_show_nothing():
    shorter = parse_checkpoint(ForgedLog(ENTRIES[:8]).note)
    report = verify_evidence(SESSION, TRUST._replace(pinned=(shorter,)))
    assert report.verdict == "could not be verified"
    assert says(report, "whether one grew out of the other is not shown by a file")
    twice = verify_evidence(SESSION, TRUST._replace(pinned=(shorter,), kept=(shorter,)))
    assert twice == report
    report = verify_evidence(SESSION, TRUST._replace(kept=(shorter,)))
    assert report.verdict == "verified"
    assert says(report, "the pinned checkpoint has 8 entries and this one 12")
    other = parse_checkpoint(ForgedLog(ENTRIES, KEY.__class__("other.example", KEY.secret)).note)
    report = verify_evidence(SESSION, TRUST._replace(pinned=(other,)))
    assert says(report, "of another log")


def test_a_file_that_a_stranger_made_up_is_not_caught_without_a_key():
    report = verify_evidence(range_file(ForgedLog(ENTRIES, STRANGER)))
    assert report.verdict == "consistent, not authenticated"
    assert says(report, "says who may sign this log")


def test_a_record_alone_does_not_show_what_stood_before_it():
    indices = [1, 4, SEAL]
    part = LOG.part(1, seal=SEAL, present=[4])
    data = LOG.evidence(Scope("record", "r3"), indices, payloads_of(indices), {1: part})
    assert says(judge(data), "the record before, in its task, of 1 records")
    assert json.loads(ENTRIES[4])["body"]["prev_hash"] == ZERO_HASH
