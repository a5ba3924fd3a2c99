"""What an ordinary user finds; each deed runs in a child that gives its rights away first."""

import os

import affidavit
from affidavit.errors import AffidavitError, ConflictError, StoreError
from affidavit.stores.sqlite.queries import load_migrations, load_queries

NOBODY = 65534
THOUGHT = {"type": "plan", "task_id": "t", "agent_id": "a", "content": "c"}


def become_ordinary():
    # What is read from the package later must be here before: it may lie in the superuser's home.
    load_queries()
    load_migrations()
    with affidavit.open(":memory:") as ledger:
        ledger.record_thought(**THOUGHT)
        ledger.verify()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def refusal(path, **options):
    try:
        with affidavit.open(path, **options) as ledger:
            ledger.record_thought(**THOUGHT)
    except AffidavitError as error:
        assert error.hint
        return error
    raise AssertionError(f"{path} was not refused")


def read(path):
    with affidavit.open(path, readonly=True) as ledger:
        assert len(ledger.list_thoughts()) == 1
        assert ledger.verify().valid


def find_readonly_file(path):
    become_ordinary()
    error = refusal(path)
    assert isinstance(error, ConflictError), error
    assert error.code == "ERR_READONLY", error
    read(path)


def find_readonly_folder(path):
    become_ordinary()
    error = refusal(path)
    assert error.code in ("ERR_READONLY", "ERR_STORE_UNAVAILABLE"), error
    # SQLite keeps two files beside the ledger, also to read it.
    error = refusal(path, readonly=True)
    assert error.code == "ERR_STORE_UNAVAILABLE", error
    assert "folder" in error.message
    assert "copy" in error.hint


def find_unavailable(path):
    become_ordinary()
    for options in ({}, {"readonly": True}):
        error = refusal(path, **options)
        assert isinstance(error, StoreError), error
        assert error.code == "ERR_STORE_UNAVAILABLE", error


def record_in_new(path):
    become_ordinary()
    with affidavit.open(path) as ledger:
        ledger.record_thought(**THOUGHT)
    read(path)
