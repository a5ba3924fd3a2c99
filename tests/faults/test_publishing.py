"""Publishing under faults: at every moment a whole log is there, and it never becomes smaller."""

import errno
import itertools
import os
import shutil
import subprocess
import sys

import pytest

import affidavit
from affidavit.apps.auditor.published import Folder
from affidavit.apps.wiring import open_ledger
from affidavit.core.note import parse_verifier_key
from affidavit.verify.published import verify_published
from affidavit.verify.trust import Trust
from faults.deeds import stepping, thought
from faults.support import acknowledged, audit, child_environment


@pytest.fixture
def place(folder, monkeypatch):
    """A log that is published, and has grown since; kept, to be put back before each fault."""
    monkeypatch.setenv("AFFIDAVIT_HOME", str(folder / "now" / "home"))
    now = folder / "now"
    now.mkdir()
    with affidavit.open(now / "trail.db") as ledger:
        ledger.record_thought(**thought("before", 1))
        ledger.publish(str(now / "public"))
    with open_ledger(str(now / "trail.db")) as ledger:
        ledger.record_thoughts([thought("new", step) for step in range(3)])
        assert len(ledger) == 6
    shutil.copytree(now, folder / "kept")
    return folder


def put_back(place):
    shutil.rmtree(place / "now")
    shutil.copytree(place / "kept", place / "now")


def assert_whole(place, sizes):
    """What is published verifies by itself; which of these sizes it has."""
    with affidavit.open(place / "now" / "trail.db", readonly=True) as ledger:
        keys = tuple(parse_verifier_key(key.vkey) for key in ledger.list_keys())
    assert len(keys) == 1
    report = verify_published(Folder(str(place / "now" / "public")), Trust(keys=keys)).report
    assert report.verdict == "verified", report
    assert report.head.size in sizes
    return report.head.size


def go_on(place):
    """Another attempt publishes everything, and nobody is suspected of anything."""
    with open_ledger(str(place / "now" / "trail.db")) as ledger:
        assert ledger.publish(str(place / "now" / "public")).size == len(ledger)
        assert_whole(place, {len(ledger)})
    assert list((place / "now" / "home" / "state").glob("*/evidence/*")) == []
    audit(str(place / "now" / "trail.db"))


def die(zygote, place, step, side):
    now = place / "now"
    return zygote.start(
        "deeds:sign_and_die", str(now / "trail.db"), str(now / "home"), str(side), step,
        str(now / "public"),
    )  # fmt: skip


def test_killed_at_any_step_a_whole_log_is_published(zygote, place):
    die(zygote, place, 0, place / "steps").finish()
    [_, (_, steps)] = acknowledged(place / "steps")
    assert steps > 20
    sizes = []
    for step in range(1, steps + 1):
        put_back(place)
        child = die(zygote, place, step, place / f"side-{step}")
        assert child.wait(30) == -9, child.said()
        sizes.append(assert_whole(place, {3, 6}))
        for _, size, _ in acknowledged(place / f"side-{step}"):
            assert size == sizes[-1]
        go_on(place)
    assert sizes == sorted(sizes), "the checkpoint comes last"
    assert set(sizes) == {3, 6}


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_whatever_call_fails_a_whole_log_is_published(place, error):
    for step in itertools.count(1):
        put_back(place)
        calls = itertools.count(1)

        def reach(_, calls=calls, step=step):
            if next(calls) == step:
                raise OSError(error, os.strerror(error))

        with open_ledger(str(place / "now" / "trail.db")) as ledger:
            try:
                with stepping(reach):
                    ledger.publish(str(place / "now" / "public"))
            except affidavit.StoreError as refused:
                assert (refused.code == "ERR_STORE_FULL") == (error == errno.ENOSPC)
            else:
                if next(calls) <= step:
                    break  # there is no such step any more
        assert_whole(place, {3, 6})
        go_on(place)
    assert step > 20


FAULTS = [
    *(("fsync", number, "error=EIO") for number in (1, 2, 3, 5)),
    *(("rename", number, "error=EIO") for number in (1, 2, 3)),
    *(("fsync", number, "signal=KILL") for number in (1, 2, 4)),
    *(("rename", number, "signal=KILL") for number in (1, 2, 3)),
    ("write", 40, "signal=KILL"),
]


@pytest.mark.parametrize(("call", "number", "fault"), FAULTS)
def test_real_system_calls_that_fail_or_kill(place, call, number, fault):
    """Sign and publish as a command under strace, one real call broken."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    now = place / "now"
    command = [
        "strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}",
        "-e", f"inject={call}:{fault}:when={number}",
        sys.executable, "-m", "affidavit", "publish", "--to", str(now / "public"),
        "--ledger", str(now / "trail.db"),
    ]  # fmt: skip
    done = subprocess.run(
        command, env=child_environment(), capture_output=True, timeout=60, check=False
    )
    assert done.returncode in (0, 4, -9, 137), done.stderr
    size = assert_whole(place, {3, 6})
    assert done.returncode != 0 or size == 6
    go_on(place)
