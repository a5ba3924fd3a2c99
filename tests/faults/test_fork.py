"""fork() while a ledger is open: parent and child both go on, nothing is lost, nobody waits."""

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
