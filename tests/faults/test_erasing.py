"""SIGKILL while erasing: before the commit nothing is gone, after it the next opener ends it."""

import shutil
import signal
import subprocess
import sys
import threading
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


MARKED = """
import os, signal, sys
import affidavit
from affidavit.apps.erasure_files import ErasureFolder

mark = ErasureFolder.mark

def wait(*given):
    mark(*given)
    print("marked", flush=True)
    sys.stdin.readline()

def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)

with affidavit.open(sys.argv[1]) as ledger:
    ErasureFolder.mark, ErasureFolder.remember = wait, die
    ledger.erase(matching=sys.argv[2], by="owner")
"""


def test_killed_while_another_erases_it_is_finished_all_the_same(path):
    """The other one, done sooner, must not take the mark away that this one's file is unclean."""
    with affidavit.open(path) as ledger:
        for words in (WORDS, "something else"):
            ledger.record_thought(type="plan", task_id="t", agent_id="a", content=words)
        ledger.search("pineapple")
        command = [sys.executable, "-c", MARKED, path, WORDS]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "marked\n"
        other = threading.Thread(target=lambda: ledger.erase(matching="something", by="owner"))
        other.start()
        other.join(0.5)
        child.communicate("go on\n")
        assert child.returncode == -signal.SIGKILL
        other.join()
    with affidavit.open(path) as ledger:
        assert all(record.erased for record in ledger.list_thoughts())
    files = Path(path).parent.glob("trail.db*")
    assert [file.name for file in files if b"pineapple" in file.read_bytes()] == []


def test_what_a_power_cut_left_of_a_memory_spoils_nothing(path):
    """The line of the newest erasure is cut off, and its mark still there."""
    with affidavit.open(path) as ledger:
        for words in (WORDS, "something else"):
            ledger.record_thought(type="plan", task_id="t", agent_id="a", content=words)
            ledger.erase(matching=words, by="owner")
        folder = ledger._context.memory._folder(ledger._context.ledger_id)
    whole = (folder / "erased").read_bytes()
    (folder / "erased").write_bytes(whole[:-20])
    (folder / "scrub").touch()
    with affidavit.open(path) as ledger:
        assert not ledger.has_unfinished_erasures()
    assert (folder / "erased").read_bytes() == whole


def look(path):
    """Whether the words are erased, as the next opener finds it; never only half."""
    with affidavit.open(path) as ledger:
        [record] = ledger.list_thoughts()
        assert ledger.verify().valid
    files = Path(path).parent.glob("trail.db*")
    assert any(WORDS.encode() in file.read_bytes() for file in files) != record.erased
    return record.erased
