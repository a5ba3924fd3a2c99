"""What it costs to start, and how much memory long work takes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from affidavit.apps.hook import open_spool
from bench.harness import Line

# Not what the kernel says of this process and those it was forked from: that includes the bench.
_MEMORY = """
import re, resource, sys
import affidavit
from bench.verifying import build
from pathlib import Path
build(Path(sys.argv[1]), int(sys.argv[2]), bound=True)
with affidavit.open(sys.argv[1], readonly=True) as ledger:
    assert ledger.verify().valid
if sys.platform == 'darwin':
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1048576)
else:
    own = re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())
    print(int(own[1]) // 1024)
"""


def import_cost(rounds: int) -> list[Line]:
    """`import affidavit` over a bare python, in turns."""
    bare, ours = [], []
    for _ in range(rounds):
        bare.append(_start("pass"))
        ours.append(_start("import affidavit"))
    cost = statistics.median(ours) - statistics.median(bare)
    return [
        Line(
            "import affidavit",
            f"{cost * 1000:.1f} ms over bare python",
            f"bare python {statistics.median(bare) * 1000:.1f} ms",
            None,
            "<= 120 ms",
            cost <= 0.12,
        )
    ]


def hook_cost(folder: Path, rounds: int) -> list[Line]:
    """One event of a client's hook, from start to exit, over a bare python, in turns.

    Whoever brings events into the ledger is held off: a client does not wait for it.
    """
    ledger, says = str(folder / "hook.db"), b'{"hook_event_name": "Stop", "session_id": "s"}'
    own = [sys.executable, "-EP", "-m", "affidavit", "hook", "claude-code", "--ledger", ledger]
    bare, ours = [], []
    with _home(folder), open_spool(ledger).hold():
        for _ in range(rounds):
            bare.append(_start("pass"))
            start = time.perf_counter()
            subprocess.run(own, input=says, check=True)
            ours.append(time.perf_counter() - start)
    cost = statistics.median(ours) - statistics.median(bare)
    return [
        Line(
            "one hook's event, durable",
            f"{cost * 1000:.1f} ms over bare python",
            f"bare python {statistics.median(bare) * 1000:.1f} ms",
            None,
            "<= 90 ms",
            cost <= 0.09,
        )
    ]


@contextmanager
def _home(folder: Path) -> Iterator[None]:
    """What is kept beside ledgers is kept in this folder, and not at the user's."""
    before = os.environ.get("AFFIDAVIT_HOME")
    os.environ["AFFIDAVIT_HOME"] = str(folder)
    try:
        yield
    finally:
        del os.environ["AFFIDAVIT_HOME"]
        if before is not None:
            os.environ["AFFIDAVIT_HOME"] = before


def _start(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def memory(folder: Path, many: int) -> list[Line]:
    """The largest memory of a process that appends and verifies."""
    command = [sys.executable, "-c", _MEMORY, str(folder / "memory.db"), str(many)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peak = int(done.stdout)
    return [
        Line(
            f"memory, appending and verifying {many:,}",
            f"{peak} MB",
            "-",
            None,
            "<= 120 MB",
            peak <= 120,
        )
    ]
