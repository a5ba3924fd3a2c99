"""What words and commands look like: a claim that tests pass, a run of tests, an edit of a file.

Pure, and by form alone: a sentence is taken at its words, a command by the program it starts. What
is not recognised is not marked; nothing here says that a claim is wrong.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

EDIT_TOOLS: Final = frozenset(
    (
        "Edit",
        "MultiEdit",
        "Write",
        "NotebookEdit",
        "apply_patch",
        "create_file",
        "edit_file",
        "str_replace_based_edit_tool",
        "str_replace_editor",
        "write_file",
    )
)
_SHELLS: Final = frozenset(
    ("bash", "shell", "terminal", "powershell", "exec", "execute", "run_command", "execute_command")
)

_PASSING = r"(?:pass(?:es|ed|ing)?|(?:are |is )?green|succeed(?:s|ed)?)"
_BETWEEN = (
    r"(?:\s+(?:suites?|cases?|now|all|are|is|still|have|has|in|the|again|currently|finally))*"
)
_CLAIM: Final = re.compile(
    rf"\btests?{_BETWEEN}\s+{_PASSING}\b"
    rf"|\bpass(?:es|ed|ing)?\s+(?:all|every|the)\s+(?:\w+\s+){{0,3}}tests?\b"
    r"|\b\d+\s+(?:tests?\s+)?passed\b",
    re.IGNORECASE,
)
# What makes it a plan, a wish, a condition or its opposite.
_HEDGE: Final = re.compile(
    r"\b(?:if|once|when|until|unless|whether|ensure|verify|check|confirm|make sure|should|must|"
    r"will|would|could|may|might|so that|to make|let'?s|let me|need|want|expect|not|never|no|"
    r"cannot|can'?t|don'?t|doesn'?t|didn'?t|previously|earlier)\b|\?$",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[\n;]")

_RUNNER: Final = re.compile(
    r"(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|behave|"
    r"go\s+test|cargo\s+(?:test|nextest)|(?:npm|yarn|pnpm|bun|deno|mix|swift|dotnet|bazel|rake|lein|"
    r"rails|flutter|dart)\s+(?:run\s+)?test|npm\s+t|(?:mvn|gradle|gradlew|sbt)\s+(?:\S+\s+)*test|"
    r"(?:make|just|task|ninja)\s+(?:\S+\s+)*(?:test|check)|(?:playwright|ng|hatch)\s+test|cypress\s+run|"
    r"manage\.py\s+test|run[-_]?tests?)(?=[\s:.\-;)]|$)"
)
_LEAD: Final = re.compile(
    r"(?:(?:\w+=\S*|sudo|env|time|timeout\s+\S+|nice|exec|command|npx|bunx|uvx|xvfb-run|"
    r"(?:uv|poetry|pdm|pipenv|hatch|rye|conda)\s+run|coverage\s+run|bundle\s+exec|"
    r"(?:ba)?sh(?=\s+\S)|\S*python[\d.]*(?:\s+-[^m\s]\S*)*|-m)\s+)*(?:\S*/)?"
)
_SEPARATOR: Final = re.compile(r"&&|\|\||[;\n|(&]")
_COMMAND_KEYS: Final = ("command", "cmd", "script", "code", "input")
_CUT_COMMAND: Final = re.compile(r'"(?:command|cmd|script)"\s*:\s*"((?:[^"\\]|\\.)*)')


def says_tests_pass(text: str) -> bool:
    """Whether a sentence states that tests pass, now and without a condition."""
    return any(
        _CLAIM.search(sentence) and not _HEDGE.search(sentence.strip())
        for sentence in _SENTENCE.split(text)
    )


def runs_tests(command: str) -> bool:
    """Whether a command line starts a program that runs tests."""
    for part in _SEPARATOR.split(command):
        lead = _LEAD.match(part.strip())
        if lead is not None and _RUNNER.match(part.strip(), lead.end()):
            return True
    return False


def is_shell(tool_name: str) -> bool:
    """Whether a tool runs commands."""
    return tool_name.rpartition("__")[2].lower() in _SHELLS


def is_edit(tool_name: str) -> bool:
    """Whether a tool changes files."""
    return tool_name.rpartition("__")[2] in EDIT_TOOLS


def command_of(arguments: str) -> str:
    """The command in what a tool was asked, also where that is cut off."""
    try:
        value = json.loads(arguments)
    except ValueError:
        found = _CUT_COMMAND.search(arguments)
        return "" if found is None else found[1].replace("\\n", "\n").replace('\\"', '"')
    return _first_text(value)


def _first_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(item for item in value if isinstance(item, str))
    if isinstance(value, dict):
        return next((_first_text(value[key]) for key in _COMMAND_KEYS if key in value), "")
    return ""
