"""A child on a disk that becomes full: refused clearly, nothing lost, and it records again after.

    python -m faults.filler FOLDER SIDE tmpfs|limit

`tmpfs`: the process is alone in a mount namespace and mounts a small disk of its own at FOLDER.
`limit`: the kernel lets no file of this process grow beyond a size, which is the same to a writer.
"""

import contextlib
import os
import resource
import subprocess
import sys
import threading

import affidavit
from affidavit.errors import StoreError
from faults.deeds import sayer, thought
from faults.support import assert_all_there, audit

DISK_BYTES = 3 * 1024 * 1024
LIMIT_BYTES = 400_000
ROOM_BYTES = 150_000
FULL = {"tmpfs": {"ERR_STORE_FULL"}, "limit": {"ERR_STORE_FULL", "ERR_OUTCOME_UNKNOWN"}}


class Tmpfs:
    """A real disk of three megabytes, filled with a file that can be taken away."""

    def __init__(self, folder):
        self._ballast = os.path.join(folder, "ballast")
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder]
        subprocess.run(command, check=True, timeout=30)

    def fill(self, room_bytes=0):
        with open(self._ballast, "wb", buffering=0) as ballast:
            with contextlib.suppress(OSError):
                while True:
                    ballast.write(b"x" * 4096)
            ballast.truncate(ballast.tell() - room_bytes)

    def free(self):
        os.unlink(self._ballast)


class Limit:
    """No file may grow beyond a size."""

    def __init__(self, folder):
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self, room_bytes=0):
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, self._before[1]))

    def free(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


def main(folder, side, kind):
    say = sayer(side)
    disk = {"tmpfs": Tmpfs, "limit": Limit}[kind](folder)
    path = os.path.join(folder, "trail.db")
    told = []

    def tell(record):
        told.append(("thought", record.id, record.hash))

    with affidavit.open(path) as ledger:
        tell(ledger.record_thought(**thought("first", 1)))
        disk.fill(ROOM_BYTES)
        refused = record_until_refused(ledger, tell)
        assert {error.code for error in refused} <= FULL[kind], [str(error) for error in refused]
        assert all(error.hint for error in refused)
        # Reading goes on, and so does refusing, one by one and together.
        assert_readable(ledger, told)
        refused = refuse_together(ledger, tell)
        assert {error.code for error in refused} <= FULL[kind]
        assert_readable(ledger, told)
        say("refused", len(refused))
        disk.free()
        for step in range(20):
            tell(ledger.record_thought(**thought("again", step)))
        assert_readable(ledger, told)
    audit(path)
    assert_all_there(path, told)
    make_on_full_disk(folder, disk, kind)
    for fact in told:
        say(*fact)


def record_until_refused(ledger, tell):
    refused = []
    for step in range(2_000):
        try:
            tell(ledger.record_thought(**thought("filling", step, content="x" * 3000)))
        except StoreError as error:
            refused.append(error)
            if len(refused) == 5:
                return refused
    raise AssertionError("the disk never became full")


def refuse_together(ledger, tell):
    refused = []

    def work(number):
        try:
            tell(ledger.record_thought(**thought(f"w{number}", 1, content="y" * 9000)))
        except StoreError as error:
            refused.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert refused
    return refused


def assert_readable(ledger, told):
    there = {record.id for record in ledger.iter_thoughts()}
    assert {fact[1] for fact in told} <= there
    assert ledger.verify().valid


def make_on_full_disk(folder, disk, kind):
    """A ledger that cannot be made is refused, and nothing is left of it."""
    if kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    else:
        disk.fill()
    other = os.path.join(folder, "other.db")
    try:
        affidavit.open(other)
    except StoreError as error:
        code = error.code
    else:
        raise AssertionError("a ledger was made on a full disk")
    finally:
        disk.free()
    left = [name for name in os.listdir(folder) if name.startswith("other")]
    assert left == [], left
    if kind == "tmpfs":
        assert code == "ERR_STORE_FULL", code
    with affidavit.open(other) as ledger:
        ledger.record_thought(**thought("at last", 1))
    audit(other)


if __name__ == "__main__":
    main(*sys.argv[1:])
