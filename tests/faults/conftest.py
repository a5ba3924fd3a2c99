"""What the fault tests share: the zygote, and the plan of every scenario."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import affidavit
from faults.points import PointedConnection, pointed, record_points
from faults.scenarios import SCENARIOS
from faults.support import Zygote

MEMORY_DISK = Path("/dev/shm")


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """Starts children cheaply; one for all fault tests of a run."""
    made = Zygote(tmp_path_factory.mktemp("children"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every scenario really runs, from one undisturbed run of each."""
    found = {}
    with pointed():
        for name, scenario in SCENARIOS.items():
            PointedConnection.traced = []
            path = str(tmp_path_factory.mktemp("plan") / "trail.db")
            with affidavit.open(path) as ledger:
                found[name] = record_points(scenario.prepare(ledger))
                assert scenario.is_there(ledger)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for what dies with a process, not with a machine: in memory where there is such."""
    if not MEMORY_DISK.is_dir():
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(prefix="affidavit-", dir=MEMORY_DISK))
    yield made
    shutil.rmtree(made)
