"""SIGKILL at random moments under eight writing processes: what was acknowledged is there."""

import random
import shutil
import time
from collections import Counter

import pytest

from faults.support import acknowledged, assert_all_there, audit

WRITERS = 8
KINDS = {"thought", "session", "seal", "end", "task", "turn", "tool_call", "proposal"}
ROUNDS_A_LEDGER = 10


def rounds(zygote, folder, count, draw):
    for number in range(count):
        if number % ROUNDS_A_LEDGER == 0:
            # A new file: these writers may be killed while they make it.
            home = folder / f"ledger-{number}"
            path, said = str(home / "trail.db"), []
            home.mkdir()
            longest_s = 0.08
        one_round(zygote, path, home, draw, longest_s)
        said += read_sides(home)
        if (home / "trail.db").exists():
            audit(path, readonly=bool(number % 2) and bool(said))
            assert_all_there(path, said)
        longest_s = draw.choice((0.03, 0.3, 0.6))
        if number % ROUNDS_A_LEDGER == ROUNDS_A_LEDGER - 1:
            yield Counter(kind for kind, *_ in said)
            shutil.rmtree(home)


def one_round(zygote, path, home, draw, longest_s):
    children = [
        zygote.start("deeds:write_until_killed", path, str(home / f"side-{number}"), number)
        for number in range(WRITERS)
    ]
    draw.shuffle(children)
    # All at once, or some first while the others go on writing.
    first = draw.choice((WRITERS, draw.randint(1, WRITERS - 1), 1))
    time.sleep(draw.uniform(0, longest_s))
    for child in children[:first]:
        child.kill()
    if first < WRITERS:
        time.sleep(draw.uniform(0, longest_s))
        for child in children[first:]:
            child.kill()
    for child in children:
        assert child.wait(20) == -9, child.said()


def read_sides(home):
    said = []
    for side in home.glob("side-*"):
        said += acknowledged(side)
        side.unlink()
    return said


def kill_for(zygote, folder, count):
    start = random.randrange(2**32)
    print("the draw starts from", start)
    counts = list(rounds(zygote, folder, count, random.Random(start)))
    said = sum(counts, Counter())
    print(f"{count} rounds, {said.total():,} acknowledged facts, none lost: {dict(said)}")
    assert all(counts)
    assert said.keys() == KINDS


def test_kill_minus_nine_loses_no_acknowledged_fact(zygote, tmp_path):
    kill_for(zygote, tmp_path, 20)


@pytest.mark.long
def test_two_hundred_rounds_of_kill_minus_nine_lose_nothing(zygote, tmp_path):
    kill_for(zygote, tmp_path, 200)
