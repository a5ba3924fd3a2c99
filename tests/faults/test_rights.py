"""A user who may not write, or not read: a clear refusal, and nothing is changed.

The superuser may do anything, so what is tried here is tried in a child as an ordinary user.
"""

import os
import shutil
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
