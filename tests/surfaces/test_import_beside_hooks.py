"""One run seen by hooks and told by its transcript: every fact once, with both as its sources."""

from __future__ import annotations

import json

import affidavit
from affidavit.apps import hook as taking
from affidavit.apps.hook_drain import drain
from affidavit.capture.claude_files import find_transcripts, import_transcripts
from affidavit.capture.claude_import import Import
from affidavit.capture.claude_names import SOURCE
from contract.transcripts import Transcript
from surfaces.hook_events import RUN, call, event


def live(path, *events):
    """What hooks recorded of them."""
    spool = taking.open_spool(path)
    for says in events:
        spool.put(b"{}", json.dumps(says).encode())
    assert drain(path, spool, wait_s=30) is not None


def bring(path, folder):
    with affidavit.open(path) as ledger:
        importing = Import(ledger, "test/1")
        import_transcripts(importing, find_transcripts(folder, path))
        importing.finish(0)
        return importing.counts


def test_hooks_and_a_transcript_of_one_run_make_one_story(path, tmp_path, monkeypatch):
    affidavit.open(path, settings={"payloads": "keep"}).close()
    command, edit = (
        {"command": "pytest -q"},
        {"file_path": "a.py", "old_string": "a", "new_string": "b"},
    )
    live(
        path,
        event("SessionStart", source="startup"),
        event("UserPromptSubmit", prompt="Fix it."),
        call("PreToolUse", "Edit", "toolu_e", edit),
        call("PostToolUse", "Edit", "toolu_e", edit, tool_response={"filePath": "a.py"}),
        call("PreToolUse", "Bash", "toolu_b", command),
    )
    script = Transcript(tmp_path / "p", RUN)
    script.user("Fix it.")
    script.calls("toolu_e", "Edit", **edit)
    script.answers("toolu_e", "updated", told={"filePath": "a.py"})
    script.calls("toolu_b", **command)
    script.answers("toolu_b", "1 passed", told={"stdout": "1 passed"})
    script.says("Done. All tests pass.")
    counts = bring(path, tmp_path / "p")
    # The hook heard the prompt and saw both calls; it missed the end of one, and the reply.
    assert (counts.seen_live, counts.turns, counts.calls, counts.results) == (1, 1, 0, 1)
    assert counts.known == 3
    live(
        path,
        event("Stop", last_assistant_message="Done. All tests pass."),
        event("SessionEnd", reason="exit"),
    )
    with affidavit.open(path, readonly=True) as ledger:
        run = ledger.find_linked(SOURCE, RUN)
        [one] = [one for one in ledger.list_sessions() if one.session_id == run.session_id]
        assert one.continues is None
        steps = ledger.tell_story(run.session_id)
        calls = [
            (step.call.tool_name, step.entry.via, step.call.end.via) for step in steps if step.call
        ]
        assert calls == [("Edit", "hook", "hook"), ("Bash", "hook", "import")]
        assert len(ledger.list_proposals()) == 1
        assert [mark.code for step in steps for mark in step.marks] == []
        [edited] = ledger.trace_file("a.py")
        assert edited.basis == "seen"
        assert ledger.verify().valid
    size = length(path)
    assert bring(path, tmp_path / "p").recorded == 0
    assert length(path) == size


def length(path):
    with affidavit.open(path, readonly=True) as ledger:
        return len(ledger)
