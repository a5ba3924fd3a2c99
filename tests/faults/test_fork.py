"""fork() while a ledger is open: parent and child both go on, nothing is lost, nobody waits."""

import subprocess
import sys

import pytest

from faults.forking import WAYS
from faults.support import acknowledged, assert_all_there, audit, run_script


@pytest.mark.parametrize("way", WAYS)
def test_both_sides_of_a_fork_go_on(tmp_path, way):
    path, side = str(tmp_path / "trail.db"), str(tmp_path / "side")
    print(run_script("faults.forking", path, side, way, limit_s=60))
    said = acknowledged(side)
    assert said
    assert_all_there(path, said)
    audit(path)


_TWINS = """
import os
from affidavit.apps.wiring import new_uuid
new_uuid()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, " ".join(new_uuid() for _ in range(5)).encode())
    os._exit(0)
theirs = os.read(reading, 1_000).decode().split()
ours = [new_uuid() for _ in range(5)]
assert os.wait()[1] == 0
assert len({*ours, *theirs}) == 10, (ours, theirs)
"""


def test_parent_and_child_never_give_the_same_id():
    subprocess.run([sys.executable, "-c", _TWINS], check=True, timeout=60)
