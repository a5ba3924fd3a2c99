"""What a process really asked of the kernel: its writes and syncs in order, by strace or by a shim.

Both tools give the same events. A sync covers a write only if the write had ended before the sync
began; an acknowledgement is covered only by a sync that had ended before it began.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from faults.support import ROOM, child_environment

CALLS = ("write", "pwrite64", "fsync", "fdatasync")
SYNCS = ("fsync", "fdatasync")
MISSING = "install strace or a C compiler (apt-get install strace): durability must be seen"


class Event(NamedTuple):
    """One system call; `start` and `end` are places in the trace."""

    call: str
    path: str
    offset: int
    length: int
    start: int
    end: int
    result: int


class Strace:
    """Traces with strace."""

    def __init__(self, folder):
        self._log = Path(folder) / "strace.log"

    def works(self):
        command = ["strace", "-f", "-y", "-o", str(self._log), "-e", "trace=write", "true"]
        if shutil.which("strace") is None:
            return False
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0

    def run(self, module, *arguments, fail=None, limit_s=120):
        """Run a module of this room; its events and exit status."""
        options = ["-f", "-y", "-s", "0", "-o", str(self._log), "-e", f"trace={','.join(CALLS)}"]
        if fail is not None:
            call, path, number, error = fail
            options += ["-P", path, "-e", f"inject={call}:error={error}:when={number}"]
        done = run(["strace", *options], {}, module, arguments, limit_s)
        return list(read_strace(self._log.read_text().splitlines())), done


class Shim:
    """Traces with a small library between the process and libc."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._library = self._folder / "shim.so"

    def works(self):
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            return False
        command = [compiler, "-O1", "-shared", "-fPIC", str(ROOM / "shim.c"), "-o"]
        subprocess.run([*command, str(self._library)], timeout=60, check=True)
        return True

    def run(self, module, *arguments, fail=None, limit_s=120):
        """Run a module of this room; its events and exit status."""
        log = self._folder / "shim.log"
        log.unlink(missing_ok=True)
        extra = {"LD_PRELOAD": str(self._library), "SHIM_LOG": str(log)}
        if fail is not None:
            import errno

            call, path, number, error = fail
            extra["SHIM_FAIL"] = f"{call} {Path(path).name} {number} {getattr(errno, error)}"
        done = run([], extra, module, arguments, limit_s)
        return list(read_shim(log.read_text().splitlines())), done


def find_tracers(folder):
    """Every tool this machine has; none at all is a failure, never a silent skip."""
    found = [tool for tool in (Strace(folder), Shim(folder)) if tool.works()]
    assert found, MISSING
    return found


def run(prefix, extra, module, arguments, limit_s):
    command = [*prefix, sys.executable, "-m", f"faults.{module}", *map(str, arguments)]
    return subprocess.run(
        command,
        env=child_environment(**extra),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )


_CALL = re.compile(r"(\d+) +(\w+)\(\d+<([^>]*)>(.*)")
_RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>.*= (-?\d+)")
_RESULT = re.compile(r"\) += (-?\d+)[^)]*$")


def read_strace(lines):
    begun = {}
    for place, line in enumerate(lines):
        if found := _RESUMED.match(line):
            call, path, offset, length, start = begun.pop(found[1])
            yield Event(call, path, offset, length, start, place, int(found[3]))
        elif found := _CALL.match(line):
            thread, call, path, rest = found.groups()
            numbers = [int(number) for number in re.findall(r", (\d+)", rest)]
            length, offset = [*numbers, -1, -1][:2] if call in ("write", "pwrite64") else (0, -1)
            event = (call, path.removesuffix(" (deleted)"), offset, length, place)
            if rest.endswith("<unfinished ...>"):
                begun[thread] = event
            elif result := _RESULT.search(rest):
                yield Event(*event, place, int(result[1]))


def read_shim(lines):
    begun = {}
    for place, line in enumerate(lines):
        kind, thread, rest = line.split(" ", 2)
        if kind == "S":
            call, offset, length, path = rest.split(" ", 3)
            begun[thread] = (call, path, int(offset), int(length), place)
        else:
            yield Event(*begun.pop(thread), place, int(rest))
