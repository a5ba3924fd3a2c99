"""Ctrl-C at random moments: no lock is kept, nobody waits for ever, nothing told is lost."""

import pytest

from faults.support import acknowledged, assert_all_there, audit, run_script


def interrupt(folder, count, limit_s):
    path, side = str(folder / "trail.db"), str(folder / "side")
    caught = run_script("faults.interrupted", path, side, str(count), limit_s=limit_s)
    assert int(caught) > count * 0.9
    said = acknowledged(side)
    assert len(said) > count
    assert_all_there(path, said)
    audit(path)


def test_ctrl_c_at_random_moments(folder):
    interrupt(folder, 300, 110)


@pytest.mark.long
def test_ctrl_c_at_many_random_moments(folder):
    for number in range(10):
        home = folder / str(number)
        home.mkdir()
        interrupt(home, 1500, 110)
