"""The ledger under attack: made once, copied for each attack."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tamper.attack import audit
from tamper.history import record_history


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound ledger with every kind of entry; nobody writes to it."""
    path = tmp_path_factory.mktemp("tamper") / "original.db"
    record_history(path)
    assert audit(path).valid
    return path


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Callable[[], Path]:
    """Makes a fresh copy of the sound ledger; the one before it is gone."""
    target = tmp_path / "trail.db"

    def make() -> Path:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{target}{suffix}").unlink(missing_ok=True)
        shutil.copyfile(original, target)
        return target

    return make


@pytest.fixture
def victim(copy: Callable[[], Path]) -> Path:
    """A copy of the sound ledger to tamper with."""
    return copy()
