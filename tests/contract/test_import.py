"""Transcripts in a ledger: each fact once, marked as imported, whatever the files hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid

import pytest

import affidavit
from affidavit.capture.claude_files import find_transcripts, import_transcripts
from affidavit.capture.claude_import import Import
from affidavit.capture.claude_names import SOURCE, request_id_of, turn_id_of
from affidavit.capture.claude_transcripts import Broken, Other, Told, name_of, read_line, time_of
from affidavit.core.entry import Source
from affidavit.errors import StoreError
from affidavit.ledger.handle import acting_for
from contract.calls import record
from contract.transcripts import Transcript

LATER_MS = 1_900_000_000_000


@pytest.fixture
def kept(open_ledger):
    return open_ledger(settings={"payloads": "keep"})


def bring(ledger, folder, *, now_ms=0):
    """Import a folder; `now_ms` says whether its sessions are long over."""
    importing = Import(ledger, "test/1")
    reading = import_transcripts(importing, find_transcripts(folder, ledger.location))
    importing.finish(now_ms)
    return importing.counts, reading


def facts_of(ledger, session="s1"):
    found = ledger.find_linked(SOURCE, session)
    return [(entry.kind, entry.via) for entry in ledger.list_entries(session_id=found.session_id)]


def test_a_transcript_becomes_a_session_marked_as_imported(kept, tmp_path):
    script = Transcript(tmp_path / "p", "s1")
    script.ordinary()
    counts, reading = bring(kept, tmp_path / "p")
    assert (counts.turns, counts.calls, counts.results, counts.recorded) == (2, 2, 2, 6)
    assert (reading.files, reading.lines, reading.broken_count) == (1, 6, 0)
    session = kept.find_linked(SOURCE, "s1")
    assert (session.intent, session.project, session.caller) == ("Fix the parser", "app", SOURCE)
    facts = facts_of(kept)
    assert {via for _, via in facts} == {"import"}
    assert [kind for kind, _ in facts] == [
        "session.started", "session.linked", "capture.started", "turn.asserted",
        "tool_call.requested", "tool_call.completed", "tool_call.requested", "proposal.created",
        "tool_call.completed", "proposal.decided", "proposal.applied", "turn.asserted",
        "capture.stopped",
    ]  # fmt: skip
    request, done = kept.get_tool_call(request_id_of("toolu_1s1"), "toolu_1s1")
    assert (request.tool_name, request.arguments) == ("Bash", {"command": "pytest -q"})
    assert (done.status, done.outcome, done.latency_ms) == (
        "completed",
        {"stdout": "1 passed", "stderr": ""},
        1,
    )
    [reply] = [turn for turn in kept.list_turns() if turn.kind == "assistant"]
    assert (reply.model, reply.usage) == (
        "claude-opus-4-5",
        {"input_tokens": 3, "output_tokens": 7},
    )
    [edit] = kept.trace_file("src/p.py")
    assert (edit.path, edit.basis) == ("src/p.py", "said")
    marks = [mark.said for step in kept.tell_story(session.session_id) for mark in step.marks]
    assert marks == ["says tests pass: no run of tests is recorded since the edit"]


def test_a_second_time_records_nothing_and_what_was_added_is_all_that_is_new(kept, tmp_path):
    script = Transcript(tmp_path / "p", "s1")
    script.ordinary()
    bring(kept, tmp_path / "p")
    size = len(kept)
    counts, _ = bring(kept, tmp_path / "p")
    assert (counts.recorded, counts.known, len(kept)) == (0, 6, size)
    script.user("Fix the parser")
    counts, _ = bring(kept, tmp_path / "p")
    assert (counts.recorded, counts.known) == (1, 6)


def test_odd_lines_are_counted_and_keep_nothing_else_out(kept, tmp_path):
    script = Transcript(tmp_path / "p", "s1")
    script.user("hello \ud800\x00 there", timestamp="not a time")
    for text in ("{broken", "[1]", "null", '{"type": "user", "a": 1', "\x00\xff", "{" * 5_000):
        script.raw(text)
    script.raw("")
    for type_ in (
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "from-the-future",
        "progress",
    ):
        script.line(type_, summary="x", uuid=...)
    script.line("assistant", message=None)
    script.line("user", message={"role": "user"})
    script.line(
        "user", message={"content": [7, None, {"type": "tool_result"}, {"type": "hologram"}]}
    )
    script.calls("", command="x")
    script.calls("t\x1b1", "B\x00ash", number=2**60, deep=[float("nan")], lone="\ud800")
    script.answers(
        "t\x1b1", [{"type": "image", "source": {"media_type": "image/png", "data": "AAAA"}}]
    )
    script.answers("nobody", "x")
    script.assistant(
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    )
    script.user([{"type": "image", "source": {"data": "A" * 100}}, {"type": "text", "text": "see"}])
    script.user("no uuid", uuid=...)
    script.user("no session", sessionId=...)
    script.line("attachment", attachment={"type": "queued_command", "prompt": "typed while busy"})
    script.line("system", content="Conversation compacted", subtype="compact_boundary")
    script.user("so far: ...", isCompactSummary=True)
    script.user("<command-name>", isMeta=True)
    script.user("look into it", isSidechain=True, agentId="a1")
    script.raw('{"type": "user", "message": {"content": "half', end="")
    counts, reading = bring(kept, tmp_path / "p")
    assert (reading.broken_count, counts.refused) == (6, 0)
    assert reading.broken[0].endswith("s1.jsonl:2")
    assert reading.other["from-the-future"] == reading.other["summary"] == 1
    assert (counts.turns, counts.calls, counts.results, counts.unmatched) == (13, 1, 1, 1)
    turns = {turn.content: turn for turn in kept.list_turns()}
    assert turns["hello \ufffd\ufffd there"].kind == "user"
    assert turns["so far: ..."].attributes == {"compact_summary": True}
    assert {
        turns[text].kind for text in ("so far: ...", "<command-name>", "Conversation compacted")
    } == {"system"}
    assert (turns["look into it"].actor, turns["look into it"].thread_id) == (SOURCE, "a1")
    assert turns["hm"].attributes == {"block": "thinking"}
    assert turns["[image: unknown]"].attributes["base64_bytes"] == 100
    assert {turn.session_id for turn in turns.values()} == {
        kept.find_linked(SOURCE, "s1").session_id
    }
    assert bring(kept, tmp_path / "p")[0].recorded == 0


def test_what_is_huge_is_kept_by_its_head_size_and_digest(kept, tmp_path):
    script = Transcript(tmp_path / "p", "s1")
    script.calls("t1", command="cat")
    script.answers("t1", "y" * 5_000_000)
    script.user("z" * 4_000_001)
    counts, _ = bring(kept, tmp_path / "p")
    assert (counts.recorded, counts.refused) == (3, 0)
    _, done = kept.get_tool_call(request_id_of("t1"), "t1")
    assert (done.outcome["cut"], done.outcome["chars"]) == (True, 5_000_015)
    [turn] = kept.list_turns()
    assert turn.content.endswith("]")
    assert "4,000,001 characters" in turn.content


def test_a_resumed_file_that_repeats_lines_and_a_subagent_make_no_doubles(kept, tmp_path):
    script = Transcript(tmp_path / "p", "s1")
    script.ordinary()
    again = Transcript(tmp_path / "p", "s2")
    for line in script.path.read_text(encoding="utf-8").splitlines():
        again.raw(json.dumps({**json.loads(line), "sessionId": "s2"}))
    again.user("go on")
    below = tmp_path / "p" / "-srv-app" / "s1" / "subagents"
    below.mkdir(parents=True)
    side = Transcript(tmp_path / "p", "agent-7")
    side.path, side.session = below / "agent-7.jsonl", "s1"
    side.says("found it", isSidechain=True, agentId="7")
    counts, _ = bring(kept, tmp_path / "p")
    assert (counts.recorded, counts.known) == (8, 6)
    assert [
        turn.content
        for turn in kept.list_turns(session_id=kept.find_linked(SOURCE, "s2").session_id)
    ] == ["go on"]
    assert kept.list_turns(thread_id="7")[0].session_id == kept.find_linked(SOURCE, "s1").session_id


def hook(ledger):
    return acting_for(ledger, Source(auth="none", client=None, via="hook"))


def hear(ledger, kind, text, session="s1"):
    found = hook(ledger).enter_session(SOURCE, session, intent="live")
    name = str(uuid.uuid4())
    hook(ledger).upsert_turn(name, name, kind, text, session_id=found.session_id)
    return found.session_id


def test_what_hooks_recorded_is_not_recorded_again_and_what_they_missed_is_added(kept, tmp_path):
    live = hear(kept, "user", "Fix the parser ")
    name = {"request_id": request_id_of("toolu_1s1"), "call_id": "toolu_1s1"}
    hook(kept).request_tool_call(
        **name, vendor="anthropic", tool_name="Bash", arguments={}, session_id=live
    )
    other = {"request_id": request_id_of("toolu_2s1"), "call_id": "toolu_2s1"}
    hook(kept).request_tool_call(
        **other, vendor="anthropic", tool_name="Edit", arguments={}, session_id=live
    )
    hook(kept).finish_tool_call(**other, status="failed", error_kind="seen_to_fail")
    script = Transcript(tmp_path / "p", "s1")
    script.ordinary()
    script.user("Fix the parser")
    counts, _ = bring(kept, tmp_path / "p")
    # One prompt was heard, the second of the same words was not; one call lacked its end.
    assert (counts.seen_live, counts.turns, counts.calls, counts.results) == (1, 2, 0, 1)
    assert kept.find_linked(SOURCE, "s1").session_id == live
    assert kept.get_tool_call(**other)[1].error_kind == "seen_to_fail"
    [story] = [
        step for step in kept.tell_story(live) if step.call and step.call.tool_name == "Bash"
    ]
    assert (story.entry.via, story.call.end.via) == ("hook", "import")
    counts, _ = bring(kept, tmp_path / "p")
    assert (counts.recorded, counts.seen_live, counts.known) == (0, 1, 6)


def test_what_comes_late_goes_into_a_session_that_continues(kept, tmp_path):
    live = hear(kept, "user", "Fix the parser")
    record(kept, session_id=live)
    kept.seal_session(live)
    script = Transcript(tmp_path / "p", "s1")
    script.ordinary()
    counts, _ = bring(kept, tmp_path / "p", now_ms=LATER_MS)
    assert (counts.seen_live, counts.recorded) == (1, 5)
    after = kept.find_linked(SOURCE, "s1")
    assert (after.continues, after.state) == (live, "ended")
    script.says("one more thing")
    counts, _ = bring(kept, tmp_path / "p", now_ms=LATER_MS)
    assert (counts.seen_live, counts.recorded) == (1, 1)
    assert kept.find_linked(SOURCE, "s1").continues == after.session_id


def test_a_session_that_hooks_opened_is_not_ended_by_an_import(kept, tmp_path):
    live = hear(kept, "user", "hi")
    Transcript(tmp_path / "p", "s1").ordinary()
    bring(kept, tmp_path / "p", now_ms=LATER_MS)
    assert kept.get_session(live).state == "open"


def test_what_was_taken_back_or_given_up_stays_so(kept, tmp_path):
    script = Transcript(tmp_path / "p", "s1")
    first = script.user("a secret plan")
    script.calls("t1", command="sleep")
    bring(kept, tmp_path / "p")
    kept.retract_turn(turn_id_of(first))
    kept.mark_orphans(older_than_ms=0)
    script.answers("t1", "late")
    script.answers("t1", "late")
    counts, _ = bring(kept, tmp_path / "p")
    assert (counts.results, counts.known) == (1, 3)
    assert kept.get_turn(turn_id_of(first)) is None
    assert kept.get_tool_call(request_id_of("t1"), "t1")[1].late.outcome == {"content": "late"}


def test_a_denied_and_a_failed_call_are_told_apart_and_our_own_tools_left_out(kept, tmp_path):
    script = Transcript(tmp_path / "p", "s1")
    script.calls("t1", command="rm -rf /")
    script.answers("t1", "The user doesn't want to proceed with this tool use. (STOP)", error=True)
    script.calls("t2", command="false")
    script.answers("t2", [{"type": "text", "text": "Exit code 1"}], error=True)
    script.calls("t3", "mcp__affidavit__thought_record", content="x")
    script.answers("t3", "ok")
    counts, _ = bring(kept, tmp_path / "p")
    assert (counts.calls, counts.results, counts.known) == (2, 2, 2)
    [denied] = kept.list_call_decisions(request_id_of("t1"), "t1")
    assert (denied.decision, denied.by) == ("denied", "user")
    assert kept.get_tool_call(request_id_of("t2"), "t2")[1].error_msg == "Exit code 1"
    assert kept.get_tool_call(request_id_of("t3"), "t3") is None


def test_only_files_that_are_transcripts_are_opened(kept, tmp_path):
    top = tmp_path / "p"
    top.mkdir()
    os.mkfifo(top / "pipe.jsonl")
    (top / "loop.jsonl").symlink_to(top / "nowhere")
    (top / "back").symlink_to(tmp_path)
    (top / "same.jsonl").symlink_to(kept.location)
    (top / "notes.txt").write_text("x", encoding="utf-8")
    assert find_transcripts(top, kept.location) == []
    with pytest.raises(StoreError):
        find_transcripts(tmp_path / "nowhere", kept.location)


def test_a_line_is_read_for_what_it_is():
    assert list(read_line(b"nonsense")) == [Broken()]
    assert list(read_line(b"{}")) == [Other("without a type")]
    [told] = read_line(b'{"type":"user","content":"old shape","role":"user"}')
    assert isinstance(told, Told)
    assert (told.fact.text, told.origin.session) == ("old shape", None)
    assert time_of("2026-04-17T12:00:00Z") == time_of("2026-04-17T12:00:00") == 1_776_427_200_000
    assert [time_of(odd) for odd in (None, True, "x", "9" * 99, 2**60)] == [None] * 5
    assert name_of("\u20ac" * 400).encode() == ("\u20ac" * 170).encode()


KILLED = """
import os, signal, sys
import affidavit
from pathlib import Path
from affidavit.capture.claude_files import find_transcripts, import_transcripts
from affidavit.capture.claude_import import Import
path, folder = sys.argv[1:]
with affidavit.open(path) as ledger:
    def stop(reading):
        if reading.lines > 500:
            os.kill(os.getpid(), signal.SIGKILL)
    import_transcripts(Import(ledger, "test/1"), find_transcripts(Path(folder), path), stop)
"""


def test_an_import_that_was_killed_goes_on_where_it_was(open_ledger, path, tmp_path):
    for number in range(3):
        script = Transcript(tmp_path / "p", f"s{number}")
        for turn in range(300):
            script.user(f"prompt {turn}")
    open_ledger(settings={"payloads": "keep"}).close()
    killed = subprocess.run([sys.executable, "-c", KILLED, path, str(tmp_path / "p")], check=False)
    assert killed.returncode == -signal.SIGKILL
    with affidavit.open(path) as ledger:
        counts, _ = bring(ledger, tmp_path / "p")
        assert 500 <= counts.known <= 600
        assert counts.recorded + counts.known == 900
        told = [turn.content for turn in ledger.list_turns(limit=1_000)]
        assert sorted(told) == sorted(f"prompt {turn}" for turn in range(300) for _ in range(3))


def test_edits_are_proposals_with_their_diffs(kept, tmp_path):
    """As hooks record them; one that failed, or that the user refused, was not applied."""
    script = Transcript(tmp_path / "p", "s1")
    edit = {"file_path": "/srv/app/a.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}
    for name in ("done", "failed", "refused", "open"):
        script.calls(name, "Edit", **edit)
    script.answers("done", "updated", told={"filePath": "/srv/app/a.py"})
    script.answers("failed", "String to replace not found", error=True)
    script.answers(
        "refused", "The user doesn't want to proceed with this tool use. (STOP)", error=True
    )
    script.calls("huge", "Write", file_path="/srv/app/b.py", content="y\n" * 3_000_000)
    script.calls("odd", "Edit", file_path=7)
    bring(kept, tmp_path / "p")
    found = {name: kept.get_proposal(request_id_of(name)) for name in ("done", "failed", "open")}
    assert {name: one.status for name, one in found.items()} == {
        "done": "applied", "failed": "denied", "open": "pending",
    }  # fmt: skip
    assert found["done"].diffs[0]["path"] == "a.py"
    assert "-x = 1\n+x = 2" in found["done"].diffs[0]["diff"]
    assert kept.get_proposal(request_id_of("refused")).status == "denied"
    assert kept.get_tool_call(request_id_of("refused"), "refused")[1].error_kind == "denied"
    assert kept.get_proposal(request_id_of("odd")) is None
    size = len(kept)
    bring(kept, tmp_path / "p")
    assert len(kept) == size
