"""A user who may not write, or not read: a clear refusal, and nothing is changed.

The superuser may do anything, so what is tried here is tried in a child as an ordinary user.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import affidavit

NOBODY = 65534
THOUGHT = {"type": "plan", "task_id": "t", "agent_id": "a", "content": "c"}


@pytest.fixture
def place():
    """A folder that an ordinary user can reach, with a ledger closed by its writer."""
    folder = Path(tempfile.mkdtemp(prefix="affidavit-rights-"))
    with affidavit.open(folder / "trail.db") as ledger:
        ledger.record_thought(**THOUGHT)
    hand_over(folder)
    yield folder
    for item in (folder, *folder.rglob("*")):
        item.chmod(0o700)
    shutil.rmtree(folder)


def hand_over(folder):
    if os.geteuid() == 0:
        for item in (folder, *folder.rglob("*")):
            os.chown(item, NOBODY, NOBODY)


def as_ordinary_user(zygote, deed, *args):
    zygote.start(f"ordinary:{deed}", *map(str, args), limit_s=30).finish()


def test_a_file_that_may_not_be_written_is_refused_for_recording_and_can_be_read(zygote, place):
    (place / "trail.db").chmod(0o400)
    as_ordinary_user(zygote, "find_readonly_file", place / "trail.db")


def test_a_file_that_may_not_be_read_is_refused(zygote, place):
    (place / "trail.db").chmod(0o000)
    as_ordinary_user(zygote, "find_unavailable", place / "trail.db")


def test_a_folder_that_may_not_be_written_is_refused_for_recording(zygote, place):
    place.chmod(0o500)
    as_ordinary_user(zygote, "find_readonly_folder", place / "trail.db")


@pytest.fixture
def readonly_disk(monkeypatch):
    """Every disk says that it is mounted read-only."""
    real = os.statvfs

    def say_readonly(path):
        return os.statvfs_result([*real(path)[:8], os.ST_RDONLY, 255])

    monkeypatch.setattr(os, "statvfs", say_readonly)


@pytest.mark.usefixtures("readonly_disk")
def test_on_a_read_only_disk_a_ledger_is_read_without_files_beside_it(place):
    with affidavit.open(place / "trail.db", readonly=True) as ledger:
        assert ledger.verify().valid
        assert os.listdir(place) == ["trail.db"]


@pytest.mark.usefixtures("readonly_disk")
def test_on_a_read_only_disk_the_facts_of_a_writer_elsewhere_are_read_too(place):
    """A container may only read what its host writes, or a writer left its -wal behind."""
    path, copies = place / "trail.db", place / "copies"
    copies.mkdir()
    with affidavit.open(path) as ledger:
        ledger.record_thought(**THOUGHT)
        # By another process: an open and close in this one would drop SQLite's locks.
        subprocess.run(["cp", path, f"{path}-wal", copies], check=True)
    with affidavit.open(copies / "trail.db", readonly=True) as ledger:
        assert len(ledger) == 3
        assert ledger.verify().valid


def test_no_ledger_is_made_in_a_folder_that_may_not_be_written(zygote, place):
    place.chmod(0o500)
    as_ordinary_user(zygote, "find_unavailable", place / "new.db")
    as_ordinary_user(zygote, "find_unavailable", place / "sub" / "new.db")
    assert sorted(os.listdir(place)) == ["trail.db"]


def test_a_folder_that_may_not_be_entered_is_refused(zygote, place):
    place.chmod(0o000)
    as_ordinary_user(zygote, "find_unavailable", place / "trail.db")


def test_a_folder_that_may_not_be_listed_holds_a_ledger_all_the_same(zygote, place):
    place.chmod(0o300)
    as_ordinary_user(zygote, "record_in_new", place / "new.db")
