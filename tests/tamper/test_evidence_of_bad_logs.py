"""Evidence of a log that was signed with its true key and yet breaks a rule: who has the key lies.

Every proof holds and every signature too; what is told comes from the entries themselves.
"""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from affidavit.core.bundle import Scope, Shown
from affidavit.core.canonical import encode_restricted
from affidavit.core.canonical import encode_string as quote
from affidavit.core.note import SigningKey
from affidavit.core.session import chain_hash, content_hash
from tamper.evidence_kit import (
    ENDED,
    ENTRIES,
    KEY,
    SEAL,
    STRANGER,
    ForgedLog,
    change_entry,
    entry,
    judge,
    payloads_of,
    range_file,
    session_file,
    task_file,
    told,
)

LINES = "entries.jsonl"


def rewritten(index, **values):
    """The log with the body of one entry otherwise, signed like that."""
    changed = change_entry(ENTRIES[index], lambda value: value["body"].update(values))
    return [*ENTRIES[:index], changed, *ENTRIES[index + 1 :]]


def with_time(index, at):
    changed = change_entry(ENTRIES[index], lambda value: value.update(at=at))
    return [*ENTRIES[:index], changed, *ENTRIES[index + 1 :]]


def later(index):
    """The same entry once more, behind the others."""
    return change_entry(ENTRIES[index], lambda value: value.update(at=1_776_384_000_000_012))


def appended(*more):
    return [*ENTRIES, *more]


def thought_behind(content="too late", **values):
    """A record of session s1 as it would follow the last one, well linked."""
    last = json.loads(ENTRIES[7])["body"]
    body = {
        "agent_id": "agent-1", "id": "r9", "task_id": "t1", "timestamp": "2026-04-17T00:01:00Z",
        "type": "plan", "session_id": "s1", "session_seq": 5, "prev_hash": last["hash"],
        "parent_chain_hash": last["chain_hash"],
    }  # fmt: skip
    said = f'{{"content":{quote(content)},"id":"r9","prev_hash":"{last["hash"]}","task_id":"t1",'
    said += '"timestamp":"2026-04-17T00:01:00Z","type":"plan"}'
    body["hash"] = sha256(said.encode()).hexdigest()
    fields = (quote(one) for one in ("agent-1", content, "r9", "s1", "t1", body["timestamp"]))
    body["content_hash"] = content_hash(*fields, "plan")
    body["chain_hash"] = chain_hash(body["content_hash"], last["chain_hash"])
    return entry(12, "thought.recorded", **{**body, **values})


RANGES = {
    "time runs backwards": (with_time(5, 1_776_384_000_000_001), ("time_backwards", 5, LINES)),
    "a ledger begins twice": (
        appended(later(0)),
        ("entry_changed", 12, LINES),
    ),
    "a log that does not begin as one": (
        [ENTRIES[1], *ENTRIES[1:]], ("entry_changed", 0, LINES),
    ),
    "an entry in another form": (
        [*ENTRIES[:5], ENTRIES[5].replace(b",", b", ", 1), *ENTRIES[6:]],
        ("entry_not_canonical", 5, LINES),
    ),
    "an entry with a key twice": (
        [*ENTRIES[:5], ENTRIES[5].replace(b'"v":1', b'"v":1,"v":1'), *ENTRIES[6:]],
        ("entry_not_canonical", 5, LINES),
    ),
    "an entry that is no JSON": (
        [*ENTRIES[:5], b"not at all", *ENTRIES[6:]], ("entry_not_canonical", 5, LINES),
    ),
    "a session that started twice": (
        appended(later(1)),
        ("chain_broken", 12, LINES),
    ),
    "a session sealed twice": (
        appended(later(SEAL)),
        ("seal_mismatch", 12, LINES),
    ),
    "a session ended twice": (
        appended(later(ENDED)),
        ("chain_broken", 12, LINES),
    ),
    "a record behind the seal": (appended(thought_behind()), ("seal_mismatch", 12, LINES)),
    "a genesis of other metadata": (rewritten(1, caller="agent-7"), ("chain_broken", 1, LINES)),
    "a record linked to another": (
        rewritten(6, prev_hash="0" * 64),
        ("chain_broken", 6, f"{LINES} thought_records.prev_hash"),
    ),
    "a record linked elsewhere in its session": (
        rewritten(4, parent_chain_hash="0" * 64),
        ("chain_broken", 4, f"{LINES} thought_records.parent_chain_hash"),
    ),
    "a record numbered otherwise": (
        rewritten(4, session_seq=3), ("chain_broken", 4, f"{LINES} thought_records.session_seq"),
    ),
    "a bound record without a number": (
        rewritten(4, session_seq=None), ("chain_broken", 4, f"{LINES} thought_records.session_seq"),
    ),
    "an unbound record with a chain": (
        rewritten(8, chain_hash="0" * 64), ("chain_broken", 8, LINES),
    ),
    "a chain hash of nothing": (rewritten(7, chain_hash="0" * 64), ("chain_broken", 7, LINES)),
    "a hash of nothing": (
        rewritten(7, hash="0" * 64), ("payload_mismatch", 7, "payloads.jsonl content"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_a_range_tells_it(name):
    entries, wanted = RANGES[name]
    log = ForgedLog(entries)
    indices = range(len(entries))
    payloads = payloads_of(indices)
    for index in (0, 12):
        if index < len(entries) and b"session.started" in entries[index]:
            payloads[index] = payloads[1]
        elif index < len(entries) and b"thought.recorded" in entries[index]:
            payloads[index] = {"content": Shown("too late")}
    data = log.evidence(Scope("range", f"0:{len(entries)}"), indices, payloads)
    report = judge(data)
    assert report.verdict == "violation"
    assert wanted in told(report)
    assert report.finding_count <= 3, told(report)


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("root", "0" * 64), ("record_count", 4), ("chain_hash", "0" * 64), ("entry_count", 6),
        ("closing_reflection", False), ("entries_root", "0" * 64), ("first_index", 1),
        ("last_index", 6),
    ],
)  # fmt: skip
def test_a_seal_that_counts_otherwise_is_told(claim, value):
    log = ForgedLog(rewritten(SEAL, **{claim: value}))
    report = judge(session_file(log))
    assert report.verdict == "violation"
    assert {code for code, *_ in told(report)} == {"seal_mismatch"}
    for first in (0, 1):
        assert told(judge(range_file(log, first))) == [
            ("seal_mismatch", SEAL, f"{LINES} seals.{claim}")
        ]


def test_a_seal_whose_session_began_before_the_range_is_not_judged_and_that_is_said():
    report = judge(range_file(ForgedLog(rewritten(SEAL, root="0" * 64)), 2))
    assert (report.verdict, report.checked["seals"]) == ("verified", 0)
    assert "1 seals of sessions that began before the range" in report.unchecked
    whole = judge(range_file(ForgedLog(ENTRIES)))
    assert (whole.checked["seals"], whole.checked["complete"]) == (1, 1)


def test_what_names_a_session_before_its_start_is_told_once():
    early = [
        entry(n, "session.linked", session_id="s1", source="x", external_id="y") for n in (1, 1)
    ]
    log = ForgedLog([ENTRIES[0], *early, *ENTRIES[1:8]])
    payloads = {index + 2: shown for index, shown in payloads_of(range(1, 8)).items()}
    session = log.evidence(Scope("session", "s1"), range(1, 10), payloads, {3: log.part(3)})
    whole = log.evidence(Scope("range", "0:10"), range(10), payloads)
    for data in (session, whole):
        assert told(judge(data)) == [("chain_broken", 1, LINES)]
    assert judge(log.evidence(Scope("range", "1:10"), range(1, 10), payloads)).verdict == "verified"


def test_a_whole_session_tells_a_record_numbered_otherwise():
    report = judge(session_file(ForgedLog(rewritten(4, session_seq=7))))
    assert ("chain_broken", 4, f"{LINES} thought_records.session_seq") in told(report)


def test_a_key_that_signs_behind_its_own_end_is_told():
    retired = entry(12, "key.retired", vkey=str(KEY.verifier), by=None, reason=None)
    data = range_file(ForgedLog(appended(retired)), 0, 13)
    report = judge(data)
    assert (report.verdict, told(report)) == ("violation", [("signature_bad", 12, "checkpoint")])
    other = entry(12, "key.retired", vkey=str(STRANGER.verifier), by=None, reason=None)
    assert judge(range_file(ForgedLog(appended(other)), 0, 13)).verdict == "verified"


def test_a_whole_log_signed_under_another_name_is_told():
    other = SigningKey("other.example", KEY.secret)
    report = judge(range_file(ForgedLog(ENTRIES, other)), other.verifier)
    assert told(report) == [("signature_bad", None, "checkpoint")]


def test_kinds_of_a_later_version_are_counted_and_not_judged():
    log = ForgedLog(appended(entry(12, "weather.observed", text={"bytes": 4, "commit": "0" * 64})))
    data = log.evidence(Scope("range", "12:13"), [12], {12: {"text": Shown()}})
    report = judge(data)
    assert report.verdict == "verified"
    assert any("kinds this version does not know" in said for said in report.unchecked)
    lost = judge(log.evidence(Scope("range", "12:13"), [12]))
    assert told(lost) == [("payload_lost", 12, "payloads.jsonl text")]


def test_an_honest_range_is_verified():
    assert judge(range_file(ForgedLog(ENTRIES))).verdict == "verified"


ODD = (
    None, True, 0, -1, 2**53 - 1, "", "x", [], [[]], {}, {"a": {}}, ["0" * 64], "0" * 64,
    {"bytes": 1, "commit": "0" * 64}, {"bytes": "x", "commit": 5}, [[1, "intent"]], [[1]],
)  # fmt: skip


def hostile_entries():
    """Every entry with every key of it, and of its body, as something else."""
    for index, text in enumerate(ENTRIES):
        value = json.loads(text)
        places = [(value, key) for key in value] + [(value["body"], key) for key in value["body"]]
        for holder, key in places:
            honest = holder[key]
            for odd in ODD:
                holder[key] = odd
                yield index, encode_restricted(value)
            holder[key] = honest


def judge_hostile(every):
    judged = 0
    for number, (index, raw) in enumerate(hostile_entries()):
        if number % every:
            continue
        log = ForgedLog([*ENTRIES[:index], raw, *ENTRIES[index + 1 :]])
        for make in (range_file, session_file, task_file):
            try:
                data = make(log)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # whoever forges cannot even describe such a session
            assert judge(data).verdict in ("verified", "violation")
            judged += 1
    return judged


def test_nothing_that_an_entry_may_hold_crashes_the_verifier():
    assert judge_hostile(17) > 200


@pytest.mark.long
def test_nothing_at_all_that_an_entry_may_hold_crashes_the_verifier():
    assert judge_hostile(1) > 5_000
