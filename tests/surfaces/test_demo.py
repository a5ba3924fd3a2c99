"""The demo goes as it is told, and says so when it does not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


@pytest.fixture
def demo():
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_demo_tells_its_story_quickly():
    start = time.perf_counter()
    done = subprocess.run([sys.executable, str(DEMO)], capture_output=True, text=True, check=False)
    took = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    assert took < 5, f"took {took:.1f} s"
    in_order = [
        "REFUSED",
        "ERR_WRITEBACK_REQUIRED",
        "reflection",
        "seal",
        "HOLDS",
        "nothing was authenticated",
        "50 tries become 90",
        "VIOLATION",
        "payload_mismatch at entry 5, thought_records.content",
        "a limit of 90 tries",
    ]
    places = [done.stdout.find(part) for part in in_order]
    assert -1 not in places, dict(zip(in_order, places, strict=True))
    assert places == sorted(places)


def test_the_demo_leaves_nothing_behind(demo, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo.tempfile, "tempdir", str(tmp_path))
    assert demo.main() == 0
    assert list(tmp_path.iterdir()) == []
    capsys.readouterr()


def test_the_demo_fails_when_the_forgery_is_not_found(demo, monkeypatch, capsys):
    monkeypatch.setattr(demo, "forge", lambda path: None)
    assert demo.main() == 1
    assert "did not go as told" in capsys.readouterr().err


def test_the_demo_fails_when_the_refusal_does_not_come(demo, capsys):
    with pytest.raises(demo.StoryError):
        demo.expect_refusal(lambda: None)
    capsys.readouterr()
