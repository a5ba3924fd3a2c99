"""The list of required behaviours and the tests that hold them name each other."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LIST = ROOT / "docs" / "conformance.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")


def listed():
    return NAMED.findall(LIST.read_text(encoding="utf-8"))


def names_in(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if getattr(node, "name", "").startswith("test_")]


def test_every_test_that_is_listed_exists():
    missing = []
    for name in listed():
        file, _, test = name.partition("::")
        if not (ROOT / file).is_file() or test not in names_in(ROOT / file):
            missing.append(name)
    assert missing == []


def test_every_test_here_is_listed():
    own = {
        f"tests/conformance/{file.name}::{test}"
        for file in HERE.glob("test_*.py")
        for test in names_in(file)
    }
    assert own - set(listed()) == set()


def test_every_behaviour_names_its_test_or_says_that_it_has_none_yet():
    rows = [
        line
        for line in LIST.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith(("| Behaviour", "|---"))
    ]
    silent = [row for row in rows if not NAMED.search(row) and "not yet" not in row]
    assert rows
    assert silent == []
