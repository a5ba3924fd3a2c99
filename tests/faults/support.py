"""What the fault tests share: children that can be killed, and the audit afterwards.

The audit asks the product's own verifier, then looks at the bare tables, which do not lie for it.
"""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import affidavit

TESTS = Path(__file__).parent.parent
ROOM = Path(__file__).parent


def child_environment(**extra):
    """The environment of a child interpreter, which must find these helpers."""
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **extra}


def run_script(*arguments, limit_s=60, prefix=(), env=None):
    """Run a module of this room in a fresh interpreter; its output, once it ended well."""
    command = [*prefix, sys.executable, "-W", "error", "-m", *arguments]
    done = subprocess.run(
        command,
        env=child_environment(**(env or {})),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr}"
    return done.stdout


class Zygote:
    """Starts children by forking a process that has imported everything already."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._started = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.zygote"],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, **ask):
        self._process.stdin.write(json.dumps(ask) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, deed, *args, limit_s=60):
        """Fork a child that runs `module:function` of this room; after the limit it dies."""
        self._started += 1
        trouble = self._folder / f"trouble-{self._started}"
        pid = self._ask(do="start", deed=deed, args=args, limit_s=limit_s, trouble=str(trouble))
        return Child(self, pid, trouble)

    def wait(self, pid, limit_s):
        return self._ask(do="wait", pid=pid, limit_s=limit_s)

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


class Child:
    """One child: to wait for, or to kill."""

    def __init__(self, zygote, pid, trouble):
        self._zygote = zygote
        self.pid = pid
        self.trouble = trouble

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, limit_s=60):
        """Its exit status: 0, 1 after an exception, minus the signal that killed it."""
        code = self._zygote.wait(self.pid, limit_s)
        if code is None:
            self.kill()
            self._zygote.wait(self.pid, 10)
            raise AssertionError(f"child {self.pid} was still running after {limit_s} s")
        return code

    def finish(self, limit_s=60):
        """Wait for it to end well."""
        code = self.wait(limit_s)
        assert code == 0, f"exit status {code}\n{self.said()}"

    def said(self):
        return self.trouble.read_text() if self.trouble.exists() else ""


def acknowledged(side):
    """The lines a child wrote after its calls returned; a torn last line was never finished."""
    if not Path(side).exists():
        return []
    whole, _, _ = Path(side).read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def audit(path, *, readonly=False):
    """The whole ledger verifies; indices are dense and chains linear, also to a stranger."""
    with affidavit.open(path, readonly=readonly, create=False) as ledger:
        report = ledger.verify()
        assert report.valid, report.findings[:5]
        chains = ledger.verify_chain(all=True)
        assert chains.valid, chains
        assert ledger.rebuild(check=True).valid
    look_at_tables(path)
    return report


def look_at_tables(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        count, first, last = connection.execute(
            "SELECT count(*), min(log_index), max(log_index) FROM log"
        ).fetchone()
        assert (first, last) == (0, count - 1), "indices are not dense"
        tasks, sessions = {}, {}
        starts = dict(connection.execute("SELECT session_id, genesis FROM sessions"))
        for row in connection.execute(
            "SELECT log_index, task_id, prev_hash, hash, session_id, session_seq,"
            " parent_chain_hash, chain_hash FROM thought_records ORDER BY log_index"
        ):
            index, task, prev, own, session, seq, parent, chain = row
            assert prev == tasks.get(task, "0" * 64), f"the chain of {task} forks at {index}"
            tasks[task] = own
            if session is not None:
                assert (seq, parent) == sessions.get(session, (0, starts[session])), index
                sessions[session] = (seq + 1, chain)


def assert_all_there(path, said):
    """Every acknowledged fact is in the ledger as it was acknowledged."""
    with affidavit.open(path, readonly=True) as ledger:
        for kind, *what in said:
            if kind == "thought":
                record = ledger.get_thought(what[0])
                assert record is not None, f"acknowledged record {what[0]} is lost"
                assert record.hash == what[1]
            elif kind == "session":
                assert ledger.get_session(what[0]) is not None, f"session {what[0]} is lost"
            elif kind == "seal":
                assert ledger.merkle_root(what[0]).root == what[1]
            elif kind == "end":
                assert ledger.get_session(what[0]).ended_at is not None
            elif kind == "task":
                task = ledger.get_task(what[0])
                assert task is not None, f"task {what[0]} is lost"
                assert task.attempt >= what[1]
            else:
                name, index, state = what
                found = state_at(ledger, kind, name, index)
                assert found == state, f"{kind} {name} is {found} at {index}, not {state}"


def state_at(ledger, kind, name, index):
    """What a turn said, or how far a tool call or a proposal was, when an entry was the newest."""
    if kind == "turn":
        turn = ledger.get_turn(name, as_of_index=index)
        return None if turn is None else turn.content
    if kind == "proposal":
        proposal = ledger.get_proposal(name, as_of_index=index)
        return None if proposal is None else proposal.status
    assert kind == "tool_call", kind
    pair = ledger.get_tool_call(name, "c", as_of_index=index)
    return None if pair is None else "requested" if pair[1] is None else pair[1].status
