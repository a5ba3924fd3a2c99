"""What Claude Code 2.1.197 sent to its hooks, seen in a terminal; names and texts are invented.

A model of our own making played. What is not sent: a user who stops a call with Escape leaves no
event, and a call that is not valid, or not allowed, has its answer in its batch alone.
"""

from __future__ import annotations

from typing import Any

RUN = "061c1963-0efe-4042-94ab-6aa2e36c7fbb"
CLEARED = "844f26c4-a18f-46db-a600-8fc8a803fc65"
ROOT = "/srv/shop"
_SAYS_NO_MODE = frozenset(("SessionStart", "SessionEnd", "InstructionsLoaded", "PreCompact"))
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was "
    "a file edit, the new_string was NOT written to the file). To tell you how to proceed, the "
    "user said:\nno, use d.txt"
)


def seen(name: str, nth: int | None = 1, run: str = RUN, **says: Any) -> dict[str, Any]:
    """One event with what they all say."""
    known: dict[str, Any] = {
        "session_id": run,
        "transcript_path": f"/srv/.claude/projects/-srv-shop/{run}.jsonl",
        "cwd": ROOT,
    }
    if nth is not None:
        known["prompt_id"] = f"10c40b19-df69-4df8-9dc9-{nth:012}"
    if name not in _SAYS_NO_MODE:
        known["permission_mode"] = "default"
    if "tool_name" in says or name in ("Stop", "SubagentStop", "PostToolBatch"):
        known["effort"] = {"level": "high"}
    return {**known, "hook_event_name": name, **says}


def used(name: str, tool: str, id_: str, asked: Any, **says: Any) -> dict[str, Any]:
    """An event about a tool call."""
    return seen(name, tool_name=tool, tool_input=asked, tool_use_id=id_, **says)


def asked_user(tool: str, asked: Any, **says: Any) -> dict[str, Any]:
    """The user is asked; which call it is about is not said."""
    return seen("PermissionRequest", tool_name=tool, tool_input=asked, **says)


def batch(*calls: tuple[str, Any, str, Any], **says: Any) -> dict[str, Any]:
    """All calls of one message are answered."""
    told = ("tool_name", "tool_input", "tool_use_id", "tool_response")
    return seen(
        "PostToolBatch", tool_calls=[dict(zip(told, one, strict=True)) for one in calls], **says
    )


def stop(said: str, **says: Any) -> dict[str, Any]:
    """A turn is over."""
    quiet = {"stop_hook_active": False, "background_tasks": [], "session_crons": []}
    return seen("Stop", last_assistant_message=said, **quiet, **says)


START = seen("SessionStart", None, source="startup")
PROMPT = seen("UserPromptSubmit", prompt="Put the totals right.")
TOUCH = {"command": "touch a.txt"}
QUESTION = {
    "questions": [
        {
            "question": "Which way?",
            "header": "Way",
            "options": [
                {"label": "A", "description": "slow"},
                {"label": "B", "description": "fast"},
            ],
            "multiSelect": False,
        }
    ]
}
ANSWERED = {**QUESTION, "answers": {"Which way?": "A"}, "annotations": {}}
WRITE = {"file_path": f"{ROOT}/cart.py", "content": "total = 0\nprint(total)\n"}
WRITTEN = {
    "type": "create",
    "filePath": f"{ROOT}/cart.py",
    "content": "total = 0\nprint(total)\n",
    "structuredPatch": [],
    "originalFile": None,
    "userModified": False,
}
AGENT = {"agent_id": "a348ee8ae61d853f6", "agent_type": "general-purpose"}
