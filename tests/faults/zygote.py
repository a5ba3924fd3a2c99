"""A process that forks children: imports are paid once, and the test process itself never forks.

It reads a JSON object a line and answers with one. `start` forks a child that runs a function of
`faults.deeds` and dies by itself after its time limit; `wait` gives a child's exit status. A child
is reaped only by `wait`, so its id means nothing else until then.
"""

import importlib
import json
import os
import signal
import sys
import time
import traceback
import warnings

ROOM = "faults"


def main() -> None:
    warnings.simplefilter("error")
    importlib.import_module("affidavit.apps.wiring")
    importlib.import_module("faults.deeds")
    children: set[int] = set()
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["do"] == "start":
            answer = start(ask)
            children.add(answer)
        else:
            answer = wait(ask["pid"], ask["limit_s"])
            if answer is not None:
                children.discard(ask["pid"])
        print(json.dumps(answer), flush=True)
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def start(ask: dict) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        run(ask)
    return pid


def run(ask: dict) -> None:
    """Be the child: run the deed, leave what went wrong in a file, never return."""
    code = 0
    try:
        signal.alarm(ask["limit_s"])
        os.dup2(2, 1)
        os.close(0)
        room, _, name = ask["deed"].rpartition(":")
        getattr(importlib.import_module(f"{ROOM}.{room}"), name)(*ask["args"])
    except BaseException:
        code = 1
        with open(ask["trouble"], "a", encoding="utf-8") as trouble:
            traceback.print_exc(file=trouble)
    finally:
        os._exit(code)


def wait(pid: int, limit_s: float) -> int | None:
    """The exit status of a child, as subprocess counts them; None if it is still running."""
    deadline = time.monotonic() + limit_s
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.002)


if __name__ == "__main__":
    main()
