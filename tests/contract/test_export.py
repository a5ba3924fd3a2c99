"""Evidence files: which entries they hold, the same bytes each time, and what is refused."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
import time
import zipfile

import pytest

from affidavit.core.checkpoint import check_checkpoint, parse_checkpoint
from affidavit.core.entry import decode_entry
from affidavit.core.merkle import check_inclusion, leaf_hash
from affidavit.core.note import parse_verifier_key
from affidavit.core.tlog_proof import check_proof, decode_proof
from affidavit.errors import InputError
from affidavit.verify.evidence import verify_evidence
from affidavit.verify.trust import Trust
from tamper.evidence_kit import Opened, judge, read_whole, told


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))


def think(ledger, content, task="t", session=None, type="decision"):
    return ledger.record_thought(
        type=type, task_id=task, agent_id="a", content=content, session_id=session
    )


@pytest.fixture
def story(ledger):
    """Two sessions side by side, one of them sealed, and thoughts of neither."""
    ledger.start_session(intent="choose an index", session_id="one", caller="agent-1")
    ledger.start_session(intent="look on", session_id="two")
    for turn in range(5):
        think(ledger, f"step {turn}", f"t{turn % 2}", "one")
        think(ledger, f"aside {turn}", "t0", "two")
        think(ledger, f"alone {turn}", "t0")
    think(ledger, "so it was", "t1", "one", "reflection")
    ledger.seal_session("one")
    ledger.end_session("one")
    ledger.create_task(title="Ship it", description="Now.")
    return ledger


def kinds(evidence):
    return [decode_entry(entry).kind for entry in evidence.entries.values()]


def read(data):
    return read_whole(data)[1]


def test_every_entry_comes_with_a_proof_under_the_signed_checkpoint(story):
    manifest, evidence = read_whole(story.export(session_id="one"))
    keys = [parse_verifier_key(story.list_keys()[0].vkey)]
    head = check_checkpoint(parse_checkpoint(evidence.checkpoint), keys).head
    assert (manifest.origin, manifest.size, manifest.root) == (*head[:2], head.root.hex())
    assert len(evidence.entries) == 9
    for index, entry in evidence.entries.items():
        proof = decode_proof(evidence.proofs[index])
        assert (proof.log_index, proof.checkpoint) == (index, evidence.checkpoint)
        assert check_proof(proof, entry, keys).head == head


def test_a_session_holds_what_its_seal_counts_and_what_came_behind_it(story):
    evidence = read(story.export(session_id="one"))
    assert kinds(evidence) == [
        "session.started", *["thought.recorded"] * 6, "session.sealed", "session.ended"
    ]  # fmt: skip
    [(start, part)] = evidence.sessions.items()
    seal = story.merkle_root("one")
    assert start == min(evidence.entries)
    assert (part.whole, part.root, part.entry_count) == (True, seal.root, 7)
    for place, (index, path) in enumerate(part.records):
        leaf = leaf_hash(evidence.entries[index])
        check_inclusion(place, part.record_count, leaf, path, bytes.fromhex(part.root))
    texts = [fields["content"].text for fields in list(evidence.payloads.values())[1:]]
    assert texts == [*(f"step {turn}" for turn in range(5)), "so it was"]


def test_an_open_session_claims_no_root(story):
    [part] = read(story.export(session_id="two")).sessions.values()
    assert (part.seal_index, part.root, part.entries_root) == (None, None, None)
    assert (part.record_count, part.entry_count, part.whole) == (5, 6, True)
    assert [path for _, path in part.records] == [()] * 5


def test_a_task_holds_its_records_and_where_their_sessions_begin_and_are_sealed(story):
    evidence = read(story.export(task_id="t1"))
    assert kinds(evidence) == ["session.started", *["thought.recorded"] * 3, "session.sealed"]
    [part] = evidence.sessions.values()
    assert (part.whole, part.record_count, len(part.records)) == (False, 6, 3)
    places = [1, 3, 5]
    for place, (index, path) in zip(places, part.records, strict=True):
        leaf = leaf_hash(evidence.entries[index])
        check_inclusion(place, 6, leaf, path, bytes.fromhex(part.root))


def test_a_task_without_thoughts_holds_its_own_entries(story):
    [task] = story.list_tasks().tasks
    evidence = read(story.export(task_id=task.id))
    assert kinds(evidence) == ["task.created"]
    [fields] = evidence.payloads.values()
    texts = {name: shown.text for name, shown in fields.items()}
    assert texts == {"title": "Ship it", "description": "Now."}


def test_a_record_alone(story):
    [record] = story.list_thoughts(task_id="t0", limit=1)
    bound = read(story.export(record_id=record.id))
    assert kinds(bound) == ["session.started", "thought.recorded", "session.sealed"]
    free = next(one for one in story.iter_thoughts() if one.session_id is None)
    evidence = read(story.export(record_id=free.id))
    assert (kinds(evidence), evidence.sessions) == (["thought.recorded"], {})


def test_a_range_holds_every_entry_of_it_and_no_sessions(story):
    evidence = read(story.export(range="0:6"))
    assert list(evidence.entries) == [0, 1, 2, 3, 4, 5]
    assert evidence.sessions == {}
    assert len(read(story.export(range=f"0:{len(story)}")).entries) == len(story)


def test_every_single_entry_is_a_range_whether_it_has_texts_or_not(story):
    whole = parse_checkpoint(Opened(story.export(session_id="one")).files["checkpoint"])
    trust = Trust(keys=(parse_verifier_key(story.list_keys()[0].vkey),))
    textless = 0
    for index in range(whole.claims.size):
        data = story.export(range=f"{index}:{index + 1}")
        textless += not Opened(data).files["payloads.jsonl"]
        assert verify_evidence(data, trust).verdict == "verified"
    assert textless >= 4


def test_the_same_part_gives_the_same_bytes_and_a_grown_log_another_checkpoint(story):
    first = story.export(session_id="one")
    assert story.export(session_id="one") == first
    think(story, "later")
    again = story.export(session_id="one")
    assert again != first
    assert read(again).entries == read(first).entries


def test_what_is_withheld_is_not_in_the_file(story):
    data = story.export(session_id="one", withhold=["content"])
    assert b"step 1" not in data
    assert b"choose an index" in data
    shown = [fields.get("content") for fields in read(data).payloads.values()]
    assert [one.is_withheld for one in shown if one] == [True] * 6


def test_any_tool_unpacks_it_and_every_line_is_plain_json(story):
    with zipfile.ZipFile(io.BytesIO(story.export(session_id="one"))) as container:
        assert container.testzip() is None
        for name in container.namelist():
            data = container.read(name)
            if name.endswith("jsonl"):
                assert all(json.loads(line) for line in data.decode().splitlines())
            elif name.endswith("json"):
                assert json.loads(data)


def test_the_whole_log_as_lines(story):
    lines = list(story.iter_jsonl())
    assert [json.loads(line)["index"] for line in lines] == list(range(len(story)))
    texts = [json.loads(line)["fields"].get("content", {}).get("text") for line in lines]
    assert [text for text in texts if text] == [one.content for one in story.iter_thoughts()]


def test_a_session_of_a_thousand_records_is_exported_and_verified_in_two_seconds(ledger):
    session = ledger.start_session(intent="much to do").session_id
    ledger.record_thoughts(
        [
            {"type": "analysis", "task_id": f"t{n % 7}", "agent_id": "a", "session_id": session,
             "content": f"step {n}: " + "because it is so, and not otherwise; " * 20}
            for n in range(1_000)
        ]
    )  # fmt: skip
    ledger.seal_session(session)
    began = time.process_time()
    data = ledger.export(session_id=session)
    report = verify_evidence(data, Trust(keys=(parse_verifier_key(ledger.list_keys()[0].vkey),)))
    assert time.process_time() - began < 2
    assert (report.verdict, report.checked["complete"]) == ("verified", 1)
    assert report.checked["entries"] == 1_002


@pytest.mark.long
def test_a_million_entries_leave_as_lines_in_constant_memory(ledger):
    """Measured as what this process grew beyond what recording them had taken."""
    count = 1_000_000
    records = [
        {"type": "plan", "task_id": "t", "agent_id": "a", "content": f"why {n} " * 10}
        for n in range(10_000)
    ]
    for _ in range(count // len(records)):
        ledger.record_thoughts(records)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = sum(1 for _ in ledger.iter_jsonl())
    assert lines == count + 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB


MEASURE = """
import resource, sys
from affidavit.__main__ import main
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
import affidavit.apps.cli.evidence, affidavit.apps.cli.verify
before, code = peak(), main(sys.argv[1:])
print("took", peak() - before, file=sys.stderr)
sys.exit(code)
"""


def took_mb(*words):
    """What a command took of memory beyond what it starts with."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.replace("__main__", "apps.cli.main"), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1])


def test_large_texts_are_exported_and_verified_in_little_memory(ledger, tmp_path):
    session = ledger.start_session(intent="much to say").session_id
    for number in range(60):
        think(ledger, f"{number} because it is so " * 60_000, session=session)
    ledger.seal_session(session)
    file = tmp_path / "large.affidavit"
    words = ("--ledger", ledger.location, "export", "--session", session, "-o", str(file))
    assert took_mb(*words) < 40
    assert file.stat().st_size > 70_000_000
    assert took_mb("verify", str(file)) < 40


@pytest.mark.long
def test_more_records_than_a_small_archive_counts_go_into_one_file(ledger, tmp_path):
    session = ledger.start_session(intent="much to do").session_id
    for start in range(0, 70_000, 1_000):
        ledger.record_thoughts(
            [
                {"type": "plan", "task_id": "t", "agent_id": "a", "content": f"step {start + n}",
                 "session_id": session}
                for n in range(1_000)
            ]
        )  # fmt: skip
    ledger.seal_session(session)
    file = tmp_path / "many.affidavit"
    words = ("--ledger", ledger.location, "export", "--session", session, "-o", str(file))
    assert took_mb(*words) < 150
    assert took_mb("verify", str(file)) < 60
    with zipfile.ZipFile(file) as container:
        assert len(container.namelist()) == 70_002 + 6
    page = ("export", "--session", session, "--html", "-o", str(tmp_path / "many.html"))
    with pytest.raises(AssertionError, match="too large for a page"):
        took_mb("--ledger", ledger.location, *page)


@pytest.mark.parametrize(
    ("wanted", "field", "code"),
    [
        ({}, "session_id", "INVALID_PARAMS"),
        ({"session_id": "one", "task_id": "t1"}, "session_id", "INVALID_PARAMS"),
        ({"session_id": "none such"}, "session_id", "ERR_SESSION_NOT_FOUND"),
        ({"task_id": "none such"}, "task", "ERR_NOT_FOUND"),
        ({"record_id": "none such"}, "record", "ERR_NOT_FOUND"),
        ({"range": "3:3"}, "range", "INVALID_PARAMS"),
        ({"range": "5"}, "range", "INVALID_PARAMS"),
        ({"range": "-1:4"}, "range", "INVALID_PARAMS"),
        ({"range": "0:1000"}, "range", "INVALID_PARAMS"),
        ({"session_id": "one", "withhold": ["nonsense"]}, "withhold", "INVALID_PARAMS"),
        ({"session_id": 7}, "session_id", "INVALID_PARAMS"),
    ],
)
def test_what_cannot_be_exported_is_refused_by_name(story, wanted, field, code):
    with pytest.raises(InputError) as error:
        story.export(**wanted)
    assert (error.value.field, error.value.code) == (field, code)
    assert error.value.hint


def test_more_than_a_file_takes_is_refused_before_it_is_read(story, monkeypatch):
    monkeypatch.setattr("affidavit.ledger.export.BUNDLE_ENTRIES_MAX", 3)
    for wanted in ({"session_id": "one"}, {"range": "0:5"}, {"task_id": "t0"}):
        with pytest.raises(InputError, match="one file takes 3") as error:
            story.export(**wanted)
        assert error.value.code == "ERR_TOO_LARGE"


UUIDS = [f"7d1d0a9c-53a5-4a39-9a3f-1d2f0c7a5b{n:02d}" for n in range(10)]


def observe(ledger):
    """What was seen of a session: a turn, a tool call, a proposal, and a call that ends late."""
    session = ledger.start_session(intent="mend it").session_id
    ledger.upsert_turn(
        id=UUIDS[0], message_id=UUIDS[1], kind="user", content="Please mend it.",
        session_id=session, attributes={"n": 1},
    )  # fmt: skip
    for call in ("c1", "c2"):
        ledger.request_tool_call(
            UUIDS[2], call, vendor="claude-code", tool_name="Bash", session_id=session,
            arguments={"command": f"make {call}"},
        )  # fmt: skip
    ledger.finish_tool_call(UUIDS[2], "c1", "completed", outcome={"stdout": "ok"})
    ledger.create_proposal(
        UUIDS[3], [{"file": "a.py", "before": "x", "after": "y"}], 0.8, session_id=session
    )
    think(ledger, "because the test failed", session=session, type="reflection")
    ledger.seal_session(session)
    ledger.finish_tool_call(UUIDS[2], "c2", "failed", error_kind="timeout", error_msg="too long")
    return session


@pytest.mark.parametrize("payloads", ["keep", "hash"])
def test_what_was_seen_of_a_session_is_in_the_file_as_far_as_it_was_kept(open_ledger, payloads):
    ledger = open_ledger(settings={"payloads": payloads})
    data = ledger.export(session_id=observe(ledger))
    found = kinds(read(data))
    assert found.count("tool_call.requested") == 2
    assert found[-1] == "tool_call.failed"
    key = parse_verifier_key(ledger.list_keys()[0].vkey)
    report = verify_evidence(data, Trust(keys=(key,)))
    assert (report.verdict, report.findings, report.checked["complete"]) == ("verified", (), 1)
    assert (b"make c1" in data) == (payloads == "keep")
    assert not any("withheld" in said or "erased" in said for said in report.unchecked)


def test_a_tool_call_left_out_is_missed_by_the_seal(open_ledger):
    ledger = open_ledger(settings={"payloads": "keep"})
    opened = Opened(ledger.export(session_id=observe(ledger)))
    lines = opened.lines("entries.jsonl")
    index = next(n for n, line in lines.items() if "tool_call.completed" in line["entry"])
    opened.drop_entry(index)
    report = judge(opened.sealed(), parse_verifier_key(ledger.list_keys()[0].vkey))
    seal = next(n for n, line in lines.items() if "session.sealed" in line["entry"])
    assert told(report) == [("seal_mismatch", seal, "entries.jsonl seals.entries_root")]
