"""Transcripts of Claude Code, made by hand after the format its readers document."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

NOON = "2026-04-17T12:00:{:02d}.{:03d}Z"


class Transcript:
    """One session's file, line by line."""

    def __init__(self, folder: Path, session: str, *, cwd: str = "/srv/app") -> None:
        self.session = session
        self.cwd = cwd
        self.path = folder / "-srv-app" / f"{session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.count = 0
        self.last: str | None = None

    def line(self, type_: str, **more: Any) -> str:
        """A line with the envelope every line has; answers with its uuid."""
        self.count += 1
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.path.stem} {self.count}"))
        value = {
            "parentUuid": self.last, "isSidechain": False, "userType": "external",
            "cwd": self.cwd, "sessionId": self.session, "version": "2.1.170", "gitBranch": "main",
            "type": type_, "uuid": name, "timestamp": NOON.format(*divmod(self.count, 1_000)),
            **more,
        }  # fmt: skip
        self.raw(json.dumps({key: item for key, item in value.items() if item is not ...}))
        self.last = name
        return name

    def raw(self, text: str, end: str = "\n") -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text + end)

    def user(self, content: Any, **more: Any) -> str:
        return self.line("user", message={"role": "user", "content": content}, **more)

    def assistant(self, *blocks: Any, **more: Any) -> str:
        message = {
            "id": f"msg_{self.count}", "type": "message", "role": "assistant",
            "model": "claude-opus-4-5", "content": list(blocks), "stop_reason": None,
            "usage": {"input_tokens": 3, "output_tokens": 7, "service_tier": "standard"},
        }  # fmt: skip
        return self.line("assistant", message=message, requestId="req_1", **more)

    def says(self, text: str, **more: Any) -> str:
        return self.assistant({"type": "text", "text": text}, **more)

    def calls(self, call_id: str, name: str = "Bash", **arguments: Any) -> str:
        return self.assistant({"type": "tool_use", "id": call_id, "name": name, "input": arguments})

    def answers(self, call_id: str, content: Any, *, error: bool = False, told: Any = ...) -> str:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        if error:
            block["is_error"] = True
        return self.user([block], toolUseResult=told)

    def ordinary(self) -> None:
        """A prompt, a call with its answer, an edit, a reply."""
        self.user("Fix the parser")
        self.calls("toolu_1" + self.session, command="pytest -q")
        self.answers(
            "toolu_1" + self.session, "1 passed", told={"stdout": "1 passed", "stderr": ""}
        )
        self.calls(
            "toolu_2" + self.session,
            "Edit",
            file_path=f"{self.cwd}/src/p.py",
            old_string="a",
            new_string="b",
        )
        self.answers(
            "toolu_2" + self.session,
            "The file was updated.",
            told={"filePath": f"{self.cwd}/src/p.py"},
        )
        self.says("Done. All tests pass.")
