"""What the tests of the command line share: a place of their own, and a way to call it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import affidavit
from affidavit.apps.cli.main import main
from surfaces.hook_desk import Desk
from tamper.attack import tampering


class Ran(NamedTuple):
    """What a call left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        """What a successful call answers."""
        assert self.json["ok"] is True, self.json
        return self.json["data"]

    @property
    def error(self) -> Any:
        """What a refused call answers."""
        assert self.json["ok"] is False, self.json
        return self.json["error"]


class Cli:
    """Calls the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        # Tests that break a ledger say so; every other one must leave it whole.
        self.must_verify = True

    def __call__(self, *words: str, stdin: bytes = b"") -> Ran:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capsys.readouterr()
        code = main(words)
        return Ran(code, *self._capsys.readouterr())

    def record(self, content: str = "because", *words: str, type: str = "decision") -> Any:
        """A record of task t1, as its JSON."""
        call = ("record", "--type", type, "--task", "t1", "--agent", "a1", content, "--json")
        return self(*call, *words).data


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that holds nothing, instead of the user's own."""
    for name in ("AFFIDAVIT_LEDGER", "AFFIDAVIT_DEBUG", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    # Whoever runs the tests may do so from within Claude Code.
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def path(home: Path) -> str:
    """Where the ledger lies when nothing else is said."""
    return str(home / "data" / "ledger.db")


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, path: str
) -> Iterator[Cli]:
    """The command line; when the test ends, its ledger must verify."""
    caller = Cli(capsys, monkeypatch)
    yield caller
    if caller.must_verify and Path(path).exists():
        with affidavit.open(path, readonly=True) as ledger:
            report = ledger.verify()
        assert report.valid, report.findings


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A spool and its ledger, which must verify when the test ends."""
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    path = tmp_path / "trail.db"
    affidavit.open(path, settings={"payloads": "keep"}).close()
    yield Desk(path)
    with affidavit.open(path, readonly=True) as ledger:
        report = ledger.verify()
    assert report.valid, report.findings


@pytest.fixture
def run_cli() -> Callable[..., Ran]:
    """Calls the command line as a stranger does: a process of its own."""

    def run(
        *words: str, stdin: bytes = b"", env: dict[str, str] | None = None, **options: Any
    ) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "affidavit", *words],
            input=stdin,
            capture_output=True,
            env={**os.environ, **(env or {})},
            timeout=60,
            check=False,
            **options,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def tamper(cli: Cli, path: str) -> Callable[..., None]:
    """Runs SQL on the ledger's file as somebody who owns it could: the guards are dropped."""

    def run(*statements: str) -> None:
        cli.must_verify = False
        with tampering(path) as connection:
            for statement in statements:
                connection.execute(statement)

    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, one for the tests of a module.

    No longer than that: while it is there, nothing else in the process can run an event loop.
    """
    from surfaces.browsing import launch

    with launch() as running:
        yield running
