"""SIGKILL while erasing: before the commit nothing is gone, after it the next opener ends it."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import affidavit

WORDS = "the unmistakable pineapple"
CHILD = """
import os, signal, sys
import affidavit
from affidavit.apps.erasure_files import ErasureFolder
from affidavit.stores.sqlite.store import SqliteStore

def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)

place, name = {"mark": (ErasureFolder, "mark"), "write": (SqliteStore, "write"),
    "remember": (ErasureFolder, "remember"), "scrub": (SqliteStore, "scrub"),
    "unmark": (ErasureFolder, "unmark")}[sys.argv[2]]
with affidavit.open(sys.argv[1]) as ledger:
    setattr(place, name, die)
    ledger.erase(matching=sys.argv[3], by="owner")
"""


@pytest.mark.parametrize(
    ("step", "gone"),
    [("mark", False), ("write", False), ("remember", True), ("scrub", True), ("unmark", True)],
)
def test_killed_at_a_step_it_is_done_or_not_begun(path, tmp_path, step, gone):
    with affidavit.open(path) as ledger:
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content=WORDS)
    shutil.copy(path, tmp_path / "backup")
    command = [sys.executable, "-c", CHILD, path, step, WORDS]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert look(path) == gone
    if gone:
        shutil.copy(tmp_path / "backup", path)
        assert look(path), "a restored backup is made to forget it too"


def look(path):
    """Whether the words are erased, as the next opener finds it; never only half."""
    with affidavit.open(path) as ledger:
        [record] = ledger.list_thoughts()
        assert ledger.verify().valid
    files = Path(path).parent.glob("trail.db*")
    assert any(WORDS.encode() in file.read_bytes() for file in files) != record.erased
    return record.erased
