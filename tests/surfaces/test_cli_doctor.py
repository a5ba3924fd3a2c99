"""`affidavit doctor`: each thing that can be wrong with the place or the file, and what it says."""

from __future__ import annotations

import builtins
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import affidavit
from affidavit.apps.cli import checks
from affidavit.apps.cli.checks import Subject, examine

HOUR_US = 3_600_000_000


@pytest.fixture
def subject(cli, path):
    """A sound ledger with one record."""
    cli.record()
    return Subject(path)


def find(subject, name):
    [check] = [one for one in examine(subject) if one.name == name]
    return check


def break_file(path, change):
    """Change the bytes of a ledger that no process has open."""
    data = bytearray(Path(path).read_bytes())
    Path(path).write_bytes(change(data))


def test_a_sound_ledger_is_well(cli, subject):
    ran = cli("doctor")
    assert ran.code == 0
    assert ran.out.endswith("All is well.\n")
    data = cli("doctor", "--json").data
    assert data["healthy"] is True
    assert data["ledger"] == subject.path
    names = [one["name"] for one in data["checks"]]
    asked = [one.__name__.removeprefix("check_") for stage in checks.STAGES for one in stage]
    assert names == asked
    assert {one["status"] for one in data["checks"]} == {"ok"}


def test_a_missing_ledger(cli, path):
    ran = cli("doctor")
    assert ran.code == 4
    assert f"FAIL  file        there is no ledger at {path}" in ran.out
    assert "Make one: `affidavit init`." in ran.out
    assert "1 problem." in ran.out
    assert not Path(path).exists()


def test_an_unwritable_folder(subject):
    folder = str(Path(subject.path).parent)
    check = find(subject._replace(access=lambda name, mode: name != folder), "folder")
    assert check.status == "fail"
    assert f"cannot write in {folder}" in check.message
    assert "chmod" in check.hint


def test_a_folder_that_cannot_be_made(tmp_path):
    nowhere = Subject(str(tmp_path / "a" / "b" / "ledger.db"))
    assert find(nowhere, "folder").status == "ok"
    assert find(nowhere._replace(access=lambda name, mode: False), "folder").status == "fail"
    (tmp_path / "a").write_text("a file")
    assert "is not a folder" in find(nowhere, "folder").message


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_file_that_cannot_be_read(subject, suffix):
    name = subject.path + suffix
    Path(name).touch()
    check = find(subject._replace(access=lambda it, mode: it != name or mode == os.W_OK), "rights")
    assert (check.status, check.message) == ("fail", f"this user cannot read {name}")


def test_a_read_only_file(subject):
    def access(name, mode):
        return name != subject.path or not mode & os.W_OK

    check = find(subject._replace(access=access), "rights")
    assert check.status == "fail"
    assert "read-only" in check.message
    assert "chmod u+w" in check.hint


# Root may write everywhere, so the child drops that right; the first call has loaded what the
# second needs, because a user may not even read this Python's own files.
AS_A_USER = """
import contextlib, io, os, sys
from affidavit.apps.cli.main import main
words = ["doctor", "--ledger", sys.argv[1]]
if os.getuid() == 0:
    with contextlib.redirect_stdout(io.StringIO()):
        main(words)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(main(words))
"""


@pytest.fixture
def shown_to_a_user():
    """A ledger in a folder, both read-only for the user who runs the doctor."""
    folder = Path(tempfile.mkdtemp(prefix="affidavit-"))
    place = folder / "ledger.db"
    affidavit.open(place).close()
    place.chmod(0o444)
    yield place
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("mode", "said"),
    [(0o555, "FAIL  folder      this user cannot write in"), (0o777, "is read-only for this user")],
)
def test_the_operating_system_is_believed(shown_to_a_user, mode, said):
    shown_to_a_user.parent.chmod(mode)
    words = [sys.executable, "-c", AS_A_USER, str(shown_to_a_user)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert said in done.stdout


def test_a_file_open_to_others(cli, subject):
    Path(subject.path).chmod(0o644)
    check = find(subject, "mode")
    assert (check.status, check.hint) == ("warn", f"Close it: chmod 600 {subject.path}")
    assert "0644" in check.message
    ran = cli("doctor")
    assert ran.code == 0
    assert "1 warning." in ran.out


def test_a_ledger_of_a_newer_version(cli, subject, tamper):
    tamper("PRAGMA user_version = 99")
    check = find(subject, "ledger")
    assert (check.status, check.code) == ("fail", "ERR_LEDGER_TOO_NEW")
    assert "Upgrade" in check.hint
    assert cli("doctor").code == 4


@pytest.mark.parametrize(
    "content",
    [b"", b"just some text, long enough to be read as a header" * 40],
    ids=["empty", "text"],
)
def test_a_file_that_is_no_ledger(cli, subject, content):
    cli.must_verify = False
    break_file(subject.path, lambda data: content)
    check = find(subject, "ledger")
    assert (check.status, check.code) == ("fail", "ERR_NOT_A_LEDGER")
    assert cli("doctor").code == 4


def test_a_database_of_another_program(cli, tmp_path):
    other = str(tmp_path / "other.db")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    ran = cli("doctor", "--ledger", other)
    assert ran.code == 4
    assert "database of another program" in ran.out


def test_a_truncated_file(cli, subject):
    cli.must_verify = False
    break_file(subject.path, lambda data: data[: len(data) // 2])
    ran = cli("doctor")
    assert ran.code == 1
    assert "is damaged" in ran.out
    assert "restore a backup" in ran.out


def test_a_corrupt_page_that_opening_does_not_touch(cli, subject):
    cli.must_verify = False
    connection = sqlite3.connect(subject.path)
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    page = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'idx_trail_prev'"
    ).fetchone()[0]
    connection.close()

    def overwrite(data):
        data[(page - 1) * size : page * size] = b"\xff" * size
        return data

    break_file(subject.path, overwrite)
    assert find(subject, "ledger").status == "ok"
    check = find(subject, "integrity")
    assert (check.status, check.code) == ("fail", "ERR_INTEGRITY")
    assert cli("doctor").code == 1


def test_a_clock_behind_the_newest_entry(subject):
    behind = subject._replace(clock=lambda: time.time_ns() // 1000 - HOUR_US)
    check = find(behind, "clock")
    assert check.status == "warn"
    assert "1 h" in check.message or "59 min" in check.message
    assert "Set the clock right" in check.hint
    # A minute is within what clocks do to each other.
    close = subject._replace(clock=lambda: time.time_ns() // 1000 - 50_000_000)
    assert find(close, "clock").status == "ok"


def test_a_clock_behind_is_shown_by_the_command(cli, path):
    with affidavit.open(path, clock=lambda: time.time_ns() // 1000 + 25 * HOUR_US) as ledger:
        ledger.create_task(title="from tomorrow")
    ran = cli("doctor")
    assert ran.code == 0
    assert "warn  clock" in ran.out
    assert "ahead of this machine's clock" in ran.out


def test_an_old_sqlite(subject):
    check = find(subject._replace(sqlite_version=(3, 36, 0)), "sqlite")
    assert check.status == "fail"
    assert "SQLite 3.36.0; 3.37.0 or newer" in check.message
    assert "newer Python" in check.hint


def test_a_network_filesystem(subject, tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/share {tmp_path} nfs4 rw 0 0\n")
    check = find(subject._replace(mounts=str(mounts)), "filesystem")
    assert check.status == "warn"
    assert "nfs4" in check.message
    assert "local disk" in check.hint
    mounts.write_text("/dev/sda1 / ext4 rw 0 0\n")
    assert find(subject._replace(mounts=str(mounts)), "filesystem").status == "ok"


def test_a_disk_that_is_nearly_full(subject):
    class Space:
        f_bavail, f_frsize = 1_000, 4_096

    check = find(subject._replace(statvfs=lambda path: Space), "space")
    assert (check.status, check.message) == ("warn", "only 4 MB free")


def test_what_fails_leaves_the_next_stage_out(subject):
    found = examine(subject._replace(sqlite_version=(3, 1, 0)))
    assert [one.name for one in found] == ["sqlite", "folder", "filesystem", "space", "file"]


def test_an_operating_system_error_is_a_finding_not_a_crash(subject):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    check = find(subject._replace(statvfs=refuse), "space")
    assert (check.status, check.code) == ("fail", "ERR_STORE_UNAVAILABLE")


def test_doctor_opens_the_file_through_sqlite_only(subject, monkeypatch):
    """Closing a descriptor of one's own would drop SQLite's locks in this process."""
    opened = []

    def watch(function):
        def watched(name, *args, **options):
            opened.append(os.fspath(name) if not isinstance(name, int) else name)
            return function(name, *args, **options)

        return watched

    with affidavit.open(subject.path) as ledger:
        for module, name in ((os, "open"), (builtins, "open"), (io, "open")):
            monkeypatch.setattr(module, name, watch(getattr(module, name)))
        found = examine(subject)
        monkeypatch.undo()
        ledger.create_task(title="still writable")
    assert {one.status for one in found} == {"ok"}
    assert [name for name in opened if str(name).startswith(subject.path)] == []
