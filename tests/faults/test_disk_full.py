"""A full disk: a clear refusal, nothing acknowledged is lost, and later it records again."""

import os
import shutil
import subprocess

from faults.support import acknowledged, run_script


def private_mounts():
    """How to run something that may mount a disk of its own; None where this user may not."""
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    prefix = ["unshare", "--mount", *mapped, "--"]
    trial = ["sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]
    if shutil.which("unshare") is None:
        return None
    done = subprocess.run([*prefix, *trial], capture_output=True, timeout=30, check=False)
    return prefix if done.returncode == 0 else None


def run_filler(tmp_path, kind, prefix=()):
    disk = tmp_path / "disk"
    disk.mkdir()
    run_script("faults.filler", str(disk), str(tmp_path / "side"), kind, prefix=prefix)
    said = acknowledged(tmp_path / "side")
    assert said[0][0] == "refused"
    assert said[0][1] > 0
    assert len(said) > 20


def test_a_full_disk_refuses_clearly_and_loses_nothing(tmp_path):
    prefix = private_mounts()
    run_filler(tmp_path, "limit" if prefix is None else "tmpfs", prefix or ())


def test_a_file_that_may_not_grow_refuses_clearly_and_loses_nothing(tmp_path):
    run_filler(tmp_path, "limit")
