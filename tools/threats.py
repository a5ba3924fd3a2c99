"""Lists for the threat model, written from the names of the tests that hold each line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TAMPER = Path(__file__).resolve().parents[1] / "tests/tamper"
NOT_CAUGHT = (
    "_not_caught", "_are_not_found", "_goes_on_as_if_", "_said_to_show_nothing", "_does_not_show_",
    "_said_to_be_open",
)  # fmt: skip
# Dictionaries whose keys are the names of attacks.
NAMED = ("ATTACKS", "RANGES")


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(TAMPER.glob("test_*.py")):
        yield path.name, ast.parse(path.read_text(encoding="utf-8"))


def _tests(tree: ast.Module) -> list[str]:
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in found if name.startswith("test_")]


def _is_open(name: str) -> bool:
    return any(part in name for part in NOT_CAUGHT)


def _said(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")


def caught() -> Iterator[str]:
    """Every attack that is told, file by file."""
    for name, tree in _trees():
        attacks = [
            ast.literal_eval(key)
            for node in tree.body
            if isinstance(node, ast.Assign)
            and getattr(node.targets[0], "id", "") in NAMED
            and isinstance(node.value, ast.Dict)
            for key in node.value.keys
            if key is not None
        ]
        told = attacks + [_said(test) for test in _tests(tree) if not _is_open(test)]
        if told:
            about = (ast.get_docstring(tree) or "").split("\n")[0].rstrip(".")
            # Parted by empty lines, so that two changes of two lines can be merged.
            yield f"- **`tests/tamper/{name}`** ({about}): {'; '.join(told)}.\n"


def not_caught() -> Iterator[str]:
    """Every attack that nothing in the file shows; the test holds that the report says so."""
    for name, tree in _trees():
        for test in filter(_is_open, _tests(tree)):
            yield f"- {_said(test)} (`{name}`)\n"
