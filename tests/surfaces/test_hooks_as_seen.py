"""What the real client sends: how calls end that no event ends, and what the user was asked."""

from __future__ import annotations

from typing import Any

from affidavit.capture.claude_names import SOURCE, request_id_of
from surfaces.claude_events import (
    AGENT,
    ANSWERED,
    CLEARED,
    PROMPT,
    QUESTION,
    REJECTED,
    ROOT,
    RUN,
    START,
    TOUCH,
    WRITE,
    WRITTEN,
    asked_user,
    batch,
    seen,
    stop,
    used,
)
from surfaces.hook_desk import Desk


def end_of(ledger: Any, id_: str) -> Any:
    return ledger.get_tool_call(request_id_of(id_), id_)[1]


def decisions_of(ledger: Any, id_: str) -> list[tuple[str, str]]:
    found = ledger.list_call_decisions(request_id_of(id_), id_)
    return [(one.decision, one.by) for one in found]


def test_what_ran(desk: Desk) -> None:
    ran = {"stdout": "hi\nerr", "stderr": "", "interrupted": False, "isImage": False}
    events = (
        START,
        PROMPT,
        used("PreToolUse", "Bash", "t1", TOUCH),
        used("PostToolUse", "Bash", "t1", TOUCH, tool_response=ran, duration_ms=40),
        batch(("Bash", TOUCH, "t1", "hi\nerr")),
        used("PreToolUse", "Write", "t2", WRITE),
        used("PostToolUse", "Write", "t2", WRITE, tool_response=WRITTEN, duration_ms=3),
        batch(("Write", WRITE, "t2", "File created successfully")),
        used("PreToolUse", "Read", "t3", {"file_path": f"{ROOT}/none.py"}),
        used("PostToolUseFailure", "Read", "t3", {"file_path": f"{ROOT}/none.py"},
             error="File does not exist.", is_interrupt=False, duration_ms=1),
        batch(("Read", {"file_path": f"{ROOT}/none.py"}, "t3", "File does not exist.")),
        stop("Done."),
        seen("SessionEnd", reason="other"),
    )  # fmt: skip
    with desk.take(*events) as ledger:
        assert end_of(ledger, "t1").outcome["stdout"] == "hi\nerr"
        assert ledger.get_proposal(request_id_of("t2")).status == "applied"
        assert end_of(ledger, "t3").error_kind == "tool_error"
        assert [decisions_of(ledger, id_) for id_ in ("t1", "t2", "t3")] == [[], [], []]
        [session] = ledger.list_sessions()
        assert (session.state, ledger.list_dropped()) == ("ended", [])


def test_calls_that_never_ran_are_told_by_their_batch(desk: Desk) -> None:
    edit = {"file_path": f"{ROOT}/cart.py", "old_string": "zz", "new_string": "y"}
    told = (
        ("Bash", {"command": "sudo rm x"}, "t1", "This command requires approval"),
        ("Edit", edit, "t2", "<tool_use_error>File has not been read yet.</tool_use_error>"),
        (
            "NoTool",
            {"a": 1},
            "t3",
            "<tool_use_error>Error: No such tool</tool_use_error>",
        ),
        ("Bash", TOUCH, "t4", "hi"),
        ("mcp__affidavit__thought_record", {}, "t5", "{}"),
    )
    events = (
        START,
        used("PreToolUse", "Bash", "t4", TOUCH),
        used("PostToolUse", "Bash", "t4", TOUCH, tool_response="hi"),
        used("PreToolUse", "Bash", "t1", {"command": "sudo rm x"}),
        batch(*told),
        stop("Done."),
    )
    with desk.take(*events) as ledger:
        assert [end_of(ledger, id_).error_kind for id_ in ("t1", "t2", "t3", "t4")] == [
            "denied", "tool_error", "tool_error", None,
        ]  # fmt: skip
        assert decisions_of(ledger, "t1") == [("denied", SOURCE)]
        assert decisions_of(ledger, "t2") == []
        assert ledger.get_proposal(request_id_of("t2")).status == "denied"
        assert ledger.get_tool_call(request_id_of("t5"), "t5") is None


def test_a_user_who_says_no(desk: Desk) -> None:
    events = (
        START,
        used("PreToolUse", "Bash", "t1", TOUCH),
        asked_user("Bash", TOUCH, permission_suggestions=[{"type": "addDirectories"}]),
        batch(("Bash", TOUCH, "t1", REJECTED)),
        stop("Ok."),
    )
    with desk.take(*events) as ledger:
        assert (end_of(ledger, "t1").error_kind, decisions_of(ledger, "t1")) == (
            "denied", [("denied", "user")],
        )  # fmt: skip
        assert "no, use d.txt" in end_of(ledger, "t1").error_msg


def test_a_user_who_says_no_with_escape(desk: Desk) -> None:
    """No event says so: the next turn's end shows that the call never ran."""
    events = (
        START,
        used("PreToolUse", "Bash", "t1", TOUCH),
        asked_user("Bash", TOUCH),
        seen("UserPromptSubmit", 2, prompt="Go on."),
    )
    with desk.take(*events) as ledger:
        assert end_of(ledger, "t1") is None
    with desk.take(stop("Ok.", nth=2)) as ledger:
        assert (end_of(ledger, "t1").error_kind, decisions_of(ledger, "t1")) == (
            "denied", [("denied", "user")],
        )  # fmt: skip


def test_a_call_that_was_stopped_is_given_up_and_its_real_end_still_kept(desk: Desk) -> None:
    sleep = {"command": "sleep 20"}
    inner = {"command": "make"}
    events = (
        START,
        used("PreToolUse", "Bash", "t1", sleep),
        used("PreToolUse", "Bash", "t2", inner, **AGENT),
        stop("Ok.", nth=2),
    )
    with desk.take(*events) as ledger:
        assert (end_of(ledger, "t1").error_kind, decisions_of(ledger, "t1")) == ("orphaned", [])
        assert end_of(ledger, "t2") is None
    late = used("PostToolUse", "Bash", "t1", sleep, tool_response="late")
    over = seen("SubagentStop", stop_hook_active=False, last_assistant_message="Inner.", **AGENT)
    with desk.take(late, over) as ledger:
        assert end_of(ledger, "t1").late.outcome == "late"
        assert end_of(ledger, "t2").error_kind == "orphaned"


def test_the_end_of_a_session_ends_every_call(desk: Desk) -> None:
    with desk.take(
        START,
        used("PreToolUse", "Bash", "t1", TOUCH, **AGENT),
        seen("SessionEnd", reason="other"),
    ) as ledger:
        assert end_of(ledger, "t1").error_kind == "orphaned"


def test_a_question_is_of_the_call_that_asked_it(desk: Desk) -> None:
    """The answer comes with other arguments than the question."""
    events = (
        START,
        used("PreToolUse", "AskUserQuestion", "t1", QUESTION),
        asked_user("AskUserQuestion", QUESTION),
        used("PostToolUse", "AskUserQuestion", "t1", ANSWERED, tool_response=ANSWERED),
        used("PreToolUse", "Bash", "t2", TOUCH),
        used("PreToolUse", "Bash", "t3", {"command": "ls"}),
        asked_user("Bash", {"command": "ls"}),
        used("PostToolUse", "Bash", "t3", {"command": "ls"}, tool_response=""),
        used("PostToolUse", "Bash", "t2", TOUCH, tool_response=""),
    )
    with desk.take(*events) as ledger:
        assert decisions_of(ledger, "t1") == [("approved", "user")]
        said = {turn.content for turn in ledger.list_turns()}
        assert "PermissionRequest: AskUserQuestion, approved" in said
        assert decisions_of(ledger, "t2") == []
        assert decisions_of(ledger, "t3") == [("approved", "user")]


def test_clear_goes_on_under_another_id_that_the_prompt_ties_to_the_first(desk: Desk) -> None:
    desk.take(START, PROMPT, stop("Ok.")).close()
    desk.put(seen("SessionEnd", 7, reason="clear"), ppid=11)
    desk.put(seen("SessionEnd", 8, run="another", reason="clear"), ppid=12)
    desk.put(seen("SessionStart", 7, run=CLEARED, source="clear"), ppid=13)
    with desk.take(seen("UserPromptSubmit", 9, run=CLEARED, prompt="Afresh.")) as ledger:
        first = ledger.find_linked(SOURCE, RUN)
        assert ledger.find_linked(SOURCE, CLEARED) == first
        assert first.state == "open"


def test_events_of_the_real_client_brought_in_twice_are_recorded_once(desk: Desk) -> None:
    events = (
        START,
        used("PreToolUse", "Bash", "t1", TOUCH),
        asked_user("Bash", TOUCH),
        used("PostToolUse", "Bash", "t1", TOUCH, tool_response=""),
        batch(("Bash", TOUCH, "t1", ""), ("Read", {}, "t2", "<tool_use_error>x</tool_use_error>")),
        used("PreToolUse", "Bash", "t3", TOUCH),
        asked_user("Bash", TOUCH),
        stop("Ok."),
        seen("SessionEnd", reason="other"),
    )
    once, twice = desk.take_twice(*events)
    assert once == twice > len(events)
