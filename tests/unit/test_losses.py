"""A count of what could not be kept: right whoever counts at once, and whatever the file holds."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from affidavit.capture.hooks.losses import Losses, count_lost, find_lost, settle_lost, take_room


def test_what_is_lost_meanwhile_still_counts(tmp_path: Path) -> None:
    take_room(tmp_path)
    assert find_lost(tmp_path) is None
    for at_ms in (30, 10, 20):
        count_lost(tmp_path, at_ms)
    told = find_lost(tmp_path)
    assert told == (3, 10, 30)
    count_lost(tmp_path, 40, 2)
    settle_lost(tmp_path, told)
    assert find_lost(tmp_path) == (2, 30, 40)
    take_room(tmp_path)
    settle_lost(tmp_path, find_lost(tmp_path))
    assert find_lost(tmp_path) is None


def test_many_who_count_at_once(tmp_path: Path) -> None:
    take_room(tmp_path)
    counting = [threading.Thread(target=count_lost, args=(tmp_path, n)) for n in range(1, 21)]
    for thread in counting:
        thread.start()
    for thread in counting:
        thread.join()
    assert find_lost(tmp_path) == (20, 1, 20)


@pytest.mark.parametrize("text", [b"", b"x y z", b"1 2", b"-1 2 3", b"\xff" * 5_000, b"0 0 0"])
def test_a_file_that_holds_no_count_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "lost").write_bytes(text)
    assert find_lost(tmp_path) is None


def test_without_room_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        count_lost(tmp_path, 1)
    assert find_lost(tmp_path) is None


def test_each_channel_counts_for_itself_in_the_same_room(tmp_path: Path) -> None:
    take_room(tmp_path)
    count_lost(tmp_path, 10)
    count_lost(tmp_path, 20, 3, "proxy")
    assert (find_lost(tmp_path), find_lost(tmp_path, "proxy")) == ((1, 10, 10), (3, 20, 20))
    settle_lost(tmp_path, Losses(3, 20, 20), "proxy")
    assert (find_lost(tmp_path), find_lost(tmp_path, "proxy")) == ((1, 10, 10), None)
    assert (tmp_path / "lost").stat().st_size == 4_096


def test_room_that_a_full_disk_refused_is_taken_later(tmp_path: Path) -> None:
    (tmp_path / "lost").write_bytes(b"")
    take_room(tmp_path)
    assert (tmp_path / "lost").stat().st_size == 4_096
