"""A child that gets Ctrl-C at random moments while it and its threads write; and then goes on.

python -m faults.interrupted PATH SIDE COUNT
"""

import random
import signal
import sys
import threading
import time

import affidavit
from affidavit.errors import StoreError
from faults.deeds import sayer, thought


def write_until(ledger, stop, say, name):
    step = 0
    while not stop.is_set():
        step += 1
        try:
            record = ledger.record_thought(**thought(name, step))
        except StoreError as error:
            # The thread that committed for this one was interrupted.
            assert error.code == "ERR_OUTCOME_UNKNOWN", error
        else:
            say("thought", record.id, record.hash)


def main(path, side, count):
    say = sayer(side)
    # Nobody waits for ever: a process that hangs is ended, and the test says so.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(100)
    with affidavit.open(path) as ledger:
        stop = threading.Event()
        threads = [
            threading.Thread(target=write_until, args=(ledger, stop, say, f"w{number}"))
            for number in range(2)
        ]
        for thread in threads:
            thread.start()
        caught = interrupt_often(ledger, say, int(count))
        ledger.record_thought(**thought("main", -1))
        stop.set()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), "a writer hangs"
        ledger.record_thought(**thought("main", -2))
        assert len(ledger) > 0
    print(caught)


def interrupt_often(ledger, say, count):
    """Write, and be interrupted at random moments of it."""
    caught = 0
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    main_thread = threading.main_thread().ident
    for step in range(count):
        timer = threading.Timer(
            random.uniform(0, 0.003), signal.pthread_kill, (main_thread, signal.SIGUSR1)
        )
        try:
            timer.start()
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                record = ledger.record_thought(**thought("main", step))
                say("thought", record.id, record.hash)
        except KeyboardInterrupt:
            caught += 1
        except StoreError as error:
            assert error.code == "ERR_OUTCOME_UNKNOWN", error
            wait_for_interrupt()
            caught += 1
        timer.join()
    return caught


def wait_for_interrupt():
    try:
        time.sleep(1)
    except KeyboardInterrupt:
        return
    raise AssertionError("the interrupt was swallowed")


if __name__ == "__main__":
    main(*sys.argv[1:])
