"""POSIX drops a process's locks on a file when anything in it closes that file: we never do.

While a ledger is open, nothing but SQLite opens its files in this process. What another part of the
same program does, we cannot help: the last test shows it.
"""

import subprocess
import sys

import pytest

import affidavit
from faults.deeds import thought
from faults.holding import assert_locks_are_held
from faults.support import acknowledged, assert_all_there, audit, child_environment, run_script

ROUNDS = 6


def test_python_itself_never_opens_a_file_of_an_open_ledger(tmp_path):
    run_script("faults.holding", "watched", str(tmp_path / "trail.db"))


def test_who_searches_too_leaves_the_locks_of_the_first(path):
    with affidavit.open(path) as ledger, affidavit.open(path, readonly=True) as reader:
        ledger.record_thought(**thought("one", 1))
        ledger.search("one")
        assert_locks_are_held(f"{path}.search")
        reader.search("one")
        assert_locks_are_held(f"{path}.search")


@pytest.fixture
def start():
    """Starts modes of `faults.holding` that are told what to do by lines."""
    children = []

    def run(*arguments):
        child = subprocess.Popen(
            [sys.executable, "-m", "faults.holding", *arguments],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        return child

    yield run
    for child in children:
        child.stdin.close()
        child.kill()
        child.wait(30)
        child.stdout.close()


def tell(child, line):
    child.stdin.write(f"{line}\n")
    child.stdin.flush()


def test_one_process_holding_a_ledger_and_others_coming_and_going_lose_nothing(
    tmp_path, start, zygote
):
    path, side, other = (str(tmp_path / name) for name in ("trail.db", "side", "other"))
    child = start("holder", path, side)
    for number in range(ROUNDS):
        tell(child, number)
        assert child.stdout.readline() == "done\n"
        # Another one opens, writes and closes: it must see that it is not the last one.
        zygote.start("deeds:write_some", path, other, number, 3).finish()
        assert_all_there(path, facts(side) + facts(other))
    child.stdin.close()
    assert child.wait(30) == 0
    assert len(facts(side)) == ROUNDS * 23
    assert_all_there(path, facts(side) + facts(other))
    audit(path)


def facts(side):
    return [fact for fact in acknowledged(side) if fact[0] != "longest"]


def test_what_is_not_survived_other_code_opening_and_closing_the_database(tmp_path, start, zygote):
    """A raw open and close in the same process drops SQLite's locks; this loses a record."""
    path, side, other = (str(tmp_path / name) for name in ("trail.db", "side", "other"))
    child = start("careless", path, side)
    assert child.stdout.readline() == "ready\n"
    # Nobody seems to have the ledger open now, so this one takes the -wal away when it closes.
    zygote.start("deeds:write_some", path, other, 1, 1).finish()
    tell(child, "go on")
    child.stdin.close()
    assert child.wait(30) == 0
    first, second = facts(side)
    assert_all_there(path, [first, *facts(other)])
    with affidavit.open(path) as ledger:
        assert ledger.get_thought(second[1]) is None, "it was lost when this was written"
        ledger.record_thought(**thought("afterwards", 1))
    # What is left is at least a ledger.
    audit(path)
