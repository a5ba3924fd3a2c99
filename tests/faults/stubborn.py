"""A child that goes on after every refusal; it says what it was told and what it was refused."""

import sys

import affidavit
from affidavit.errors import AffidavitError
from faults.deeds import sayer, thought

FACTS = 6


def main(path, side):
    say = sayer(side)
    try:
        ledger = affidavit.open(path)
    except AffidavitError as error:
        say("no ledger", error.code)
        ledger = affidavit.open(path)
    with ledger:
        mode = ledger._context.store._committer.connection().execute("PRAGMA journal_mode")
        assert mode.fetchone() == ("wal",), "readers and writers would lock each other out"
        for step in range(FACTS):
            identity = f"fact-{step}"
            try:
                record = ledger.record_thought(
                    **thought("w", step), id_fn=lambda name=identity: name
                )
            except AffidavitError as error:
                say("refused", identity, error.code)
            else:
                say("thought", record.id, record.hash)
            len(ledger)


if __name__ == "__main__":
    main(*sys.argv[1:])
