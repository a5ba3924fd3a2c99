"""What all tests share: the long rounds, ledgers that are audited at the end, the list of skips."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import affidavit


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long rounds too")


def pytest_configure(config: pytest.Config) -> None:
    """No test makes a key or a guard in this user's own home, nor finds one there."""
    home = tempfile.mkdtemp(prefix="affidavit-home-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ["AFFIDAVIT_HOME"] = home


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    left = [item for item in items if item.get_closest_marker("long") is None]
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    items[:] = left


def allowed_skips() -> set[str]:
    """The tests that `skips.txt` allows to be skipped."""
    lines = Path(__file__).with_name("skips.txt").read_text(encoding="utf-8").splitlines()
    return {line.split("  ")[0] for line in lines if line and not line.startswith("#")}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down what was skipped; a skip nobody gave a reason for fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    skipped = sorted(report.nodeid for report in reporter.stats.get("skipped", []))
    unnamed = [name for name in skipped if name not in allowed_skips()]
    if target := os.environ.get("AFFIDAVIT_SKIPS"):
        lines = [
            name + ("  NOT NAMED IN tests/skips.txt" if name in unnamed else "") for name in skipped
        ]
        Path(target).write_text("\n".join(lines or ["none"]) + "\n", encoding="utf-8")
    if unnamed and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"skipped without a reason in tests/skips.txt: {unnamed}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a test's ledger lies."""
    return str(tmp_path / "trail.db")


@pytest.fixture
def open_ledger(path: str) -> Iterator[Callable[..., Any]]:
    """Opens the test's ledger; when the test ends, the whole of it must verify."""
    handles = []

    def open_it(**options: Any) -> Any:
        handle = affidavit.open(path, **options)
        handles.append(handle)
        return handle

    yield open_it
    for handle in handles:
        handle.close()
    if Path(path).exists():
        with affidavit.open(path, readonly=True) as ledger:
            report = ledger.verify()
        assert report.valid, report.findings


@pytest.fixture
def ledger(open_ledger: Callable[..., Any]) -> Any:
    """A fresh ledger, audited when the test ends."""
    return open_ledger()
