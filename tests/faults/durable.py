"""A child that is watched while it writes: it says each fact to the side file once it is told it.

It ends without closing anything, so that the files stay as the last commit left them.
"""

import os
import sys
import threading

import affidavit
from faults.deeds import sayer, thought

THREADS = 12


def one_by_one(ledger, say):
    session = ledger.start_session(intent="watched").session_id
    say("session", session)
    for step in range(12):
        record = ledger.record_thought(
            **thought("w", step, session_id=session if step % 2 else None)
        )
        say("thought", record.id, record.hash)
    records = ledger.record_thoughts([thought("w", step) for step in range(300)])
    say("thought", records[-1].id, records[-1].hash)
    task = ledger.create_task(title="watched")
    say("task", task.id, 1)
    ledger.update_task(task.id, status="PLAN")
    say("task", task.id, 1)
    ledger.set(writeback="reflection")
    say("task", task.id, 1)
    say("seal", session, ledger.seal_session(session).root)
    ledger.end_session(session)
    say("end", session)
    key = ledger.record_thought(**thought("w", 1), idempotency_key="k")
    say("thought", key.id, key.hash)


def together(ledger, say):
    start = threading.Barrier(THREADS)

    def work(number):
        start.wait(30)
        for step in range(8):
            record = ledger.record_thought(**thought(f"w{number}", step))
            say("thought", record.id, record.hash)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def main(path, side, how):
    say = sayer(side)
    ledger = affidavit.open(path)
    {"one_by_one": one_by_one, "together": together}[how](ledger, say)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
