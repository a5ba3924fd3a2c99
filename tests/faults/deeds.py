"""What children do until they are killed, or until they are done."""

import contextlib
import itertools
import json
import os
import signal
import threading
import time
import uuid
from pathlib import Path

import affidavit
from faults.points import armed, die_at, pointed
from faults.scenarios import SCENARIOS


def sayer(side):
    """A function that writes one line to the side file; it is in the kernel when it returns."""
    descriptor = os.open(side, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(*what):
        os.write(descriptor, (json.dumps(what) + "\n").encode())

    return say


def write_until_killed(path, side, number):
    """Facts of every kind, each told to the side file after its call returned."""
    say = sayer(side)
    with affidavit.open(path) as ledger:
        threads = [
            threading.Thread(target=keep_writing, args=(ledger, say, f"{number}-{thread}"))
            for thread in range(1 + number % 3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def keep_writing(ledger, say, name):
    session = None
    # Those that are killed early have not all done the same.
    for step in itertools.count(5 * int(name.partition("-")[0])):
        if session is None:
            session = ledger.start_session(intent=f"writer {name}", caller=name).session_id
            say("session", session)
        turn = step % 13
        if turn > 8:
            observe(ledger, say, session, step, turn)
        elif turn == 0:
            task = ledger.create_task(title=f"task of {name}", description="d" * 50)
            task = ledger.update_task(task.id, status="PLAN", title="another")
            say("task", task.id, task.attempt)
        elif turn == 4:
            batch = [thought(name, step, session_id=session if at % 2 else None) for at in range(5)]
            for record in ledger.record_thoughts(batch):
                say("thought", record.id, record.hash)
        elif turn == 8:
            seal = ledger.seal_session(session)
            say("seal", session, seal.root)
            ledger.end_session(session)
            say("end", session)
            session = None
        else:
            bound = session if turn % 2 else None
            key = f"{name}-{step}-{os.getpid()}" if turn == 3 else None
            record = ledger.record_thought(
                **thought(name, step, session_id=bound), idempotency_key=key
            )
            say("thought", record.id, record.hash)


def observe(ledger, say, session, step, turn):
    """What was said, called and proposed; each version, and what several of them are at once."""
    own = str(uuid.uuid4())
    if turn == 9:
        for content in ("first", "second"):
            found = ledger.upsert_turn(own, own, "user", content, session_id=session)
            say("turn", own, found.index, content)
        if step % 2:
            say("turn", own, ledger.retract_turn(own), None)
    elif turn == 10:
        asked = ledger.request_tool_call(own, "c", None, "v", "t", {"step": step}, model=session)
        say("tool_call", own, asked.index, "requested")
        if step % 3:
            done = ledger.finish_tool_call(own, "c", "completed", {"step": step})
            say("tool_call", own, done.index, "completed")
    elif turn == 11:
        say("proposal", own, ledger.create_proposal(own, [{"step": step}]).index, "pending")
        for move in (
            lambda: ledger.decide_proposal(own, "approved", "me"),
            lambda: ledger.apply_proposal(own),
            lambda: ledger.revert_proposal(own),
        ):
            found = move()
            say("proposal", own, found.index, found.status)
    else:
        with ledger.transaction() as tx:
            tx.upsert_turn(own, own, "user", "of a transaction", session_id=session)
            tx.request_tool_call(own, "c", own, "v", "t", {})
            done = tx.finish_tool_call(own, "c", "failed", error_kind="e")
        say("tool_call", own, done.index, "failed")
        say("turn", own, done.index, "of a transaction")


def thought(name, step, **more):
    """A thought in one of three task chains that all writers share."""
    return {
        "type": "plan",
        "task_id": f"shared-{step % 3}",
        "agent_id": name,
        "content": f"{name} {step} " + "x" * (step * 37 % 900),
        **more,
    }


def write_some(path, side, number, count, start_at=0.0):
    """A number of facts; then the longest any call took."""
    say = sayer(side)
    time.sleep(max(0.0, start_at - time.time()))
    longest_s = 0.0
    with affidavit.open(path) as ledger:
        session = ledger.start_session(intent="one of many").session_id
        for step in range(count):
            began = time.monotonic()
            record = ledger.record_thought(
                **thought(f"w{number}", step, session_id=session if step % 2 else None)
            )
            longest_s = max(longest_s, time.monotonic() - began)
            say("thought", record.id, record.hash)
    say("longest", longest_s)


def open_at(path, start_at):
    """Open a ledger at a moment, to the microsecond."""
    while time.time() < start_at:
        pass
    affidavit.open(path).close()


def die_at_point(path, side, name, point):
    """Make a scenario's call and be killed at one of its points; "reply" comes after the answer."""
    say = sayer(side)
    with pointed():
        ledger = affidavit.open(path)
        call = SCENARIOS[name].prepare(ledger)
        reach = die_at(point)
        with armed(reach):
            call()
            say("reply")
        reach("reply")


def hold_lock(path, ready, release):
    """Hold the write lock of a ledger, as another program may, until told to let go."""
    import sqlite3

    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    connection.execute("BEGIN IMMEDIATE")
    Path(ready).touch()
    while not Path(release).exists():
        time.sleep(0.005)
    connection.execute("ROLLBACK")
    connection.close()


def sign_rounds(path, side, number, rounds, start_at):
    """Record and sign by turns; what was handed out is told to the side file."""
    say = sayer(side)
    with affidavit.open(path) as ledger:
        time.sleep(max(0.0, start_at - time.time()))
        for step in range(rounds):
            ledger.record_thought(**thought(f"signer {number}", step))
            signed = ledger.checkpoint()
            say("signed", signed.size, signed.root)


def sign_and_die(path, home, side, step, publish_to=None):
    """Sign, and maybe publish, and be killed at a step.

    A step is before or after a system call, or a statement of a write.
    """
    say, count = sayer(side), itertools.count(1)

    def reach(_):
        if next(count) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    os.environ["AFFIDAVIT_HOME"] = home
    with pointed(), affidavit.open(path) as ledger, armed(reach), stepping(reach):
        signed = ledger.publish(publish_to) if publish_to else ledger.checkpoint()
        say("signed", signed.size, signed.root)
    say("steps", next(count) - 1)


@contextlib.contextmanager
def stepping(reach):
    """Have `reach` called before and after every system call by which files are changed."""
    kept = {name: getattr(os, name) for name in ("open", "write", "fsync", "replace", "mkdir")}

    def stepped(call):
        def step(*args, **options):
            reach(call.__name__)
            result = call(*args, **options)
            reach(call.__name__)
            return result

        return step

    for name, call in kept.items():
        setattr(os, name, stepped(call))
    try:
        yield
    finally:
        for name, call in kept.items():
            setattr(os, name, call)
