"""A log is kept signed beside a server, and nothing of it ever stops recording."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from affidavit.apps.kept_signed import KeptSigned
from affidavit.core.checkpoint import parse_checkpoint


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def think(ledger):
    return ledger.record_thought(type="plan", task_id="t", agent_id="a", content="because")


def signed_size(file):
    return parse_checkpoint(file.read_bytes()).claims.size if file and file.exists() else 0


def guard(home):
    return next((home / "state").glob("*/checkpoint"), None)


def wait_until(is_so):
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_is_recorded_is_signed_soon_and_at_the_end(ledger, home):
    said = []
    with KeptSigned(ledger, said.append, every_s=0.01):
        think(ledger)
        wait_until(lambda: signed_size(guard(home)) == len(ledger))
        think(ledger)
    assert signed_size(guard(home)) == len(ledger)
    assert said == []


def test_it_signs_no_more_often_than_it_may_and_not_without_growth(ledger, home, monkeypatch):
    times = []
    real = type(ledger).checkpoint

    def checkpoint(own):
        times.append(time.monotonic())
        return real(own)

    monkeypatch.setattr(type(ledger), "checkpoint", checkpoint)
    with KeptSigned(ledger, print, every_s=0.05):
        deadline = time.monotonic() + 10
        while len(times) < 4:
            think(ledger)
            assert time.monotonic() < deadline
        wait_until(lambda: signed_size(guard(home)) == len(ledger))
        time.sleep(0.15)
        count = len(times)
        time.sleep(0.15)
        assert len(times) == count
    # The last one is that of the end, whenever it comes.
    assert all(later - sooner >= 0.045 for sooner, later in pairwise(times[:-1]))


def test_it_publishes_where_that_is_wanted(ledger, tmp_path):
    folder = tmp_path / "published"
    with KeptSigned(ledger, print, publish_to=str(folder), every_s=0.01):
        think(ledger)
        wait_until(lambda: signed_size(folder / "checkpoint") == len(ledger))


def test_a_refusal_is_said_once_and_signing_goes_on_when_it_is_gone(ledger, home):
    ledger.checkpoint()
    [secret] = (home / "keys").iterdir()
    secret.rename(home / "away")
    said = []
    with KeptSigned(ledger, said.append, every_s=0.01):
        think(ledger)
        wait_until(lambda: said)
        time.sleep(0.1)
        assert len(said) == 1
        assert "not on this machine" in said[0]
        think(ledger)
        (home / "away").rename(secret)
        wait_until(lambda: signed_size(guard(home)) == len(ledger))
    assert len(said) == 1
