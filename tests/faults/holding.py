"""Processes that hold a ledger open and do all there is to do, for the tests of POSIX locks.

python -m faults.holding watched PATH            prints what Python opened of the ledger's files
python -m faults.holding holder PATH SIDE        works a round for every line it is given
python -m faults.holding careless PATH SIDE      opens and closes the database by itself
"""

import contextlib
import os
import sys
from pathlib import Path

import affidavit
from affidavit.errors import AffidavitError
from faults.deeds import sayer, thought

ENDINGS = ("", "-wal", "-shm", "-journal")


def names_of(path):
    """The ledger's files, by every name that leads to them."""
    folder = Path(path).parent
    bases = [str(folder / name) for name in ("trail.db", "hard.db", "soft.db")]
    return {base + ending for base in bases for ending in ENDINGS}


class Watch:
    """Notes every opening by Python itself of one of the ledger's files."""

    def __init__(self, path):
        self._names = names_of(path)
        self.seen = []

    def __call__(self, event, args):
        if event != "open" or not isinstance(args[0], str | bytes | os.PathLike):
            return
        name = os.path.abspath(os.fsdecode(args[0]))
        flags = args[2] or 0
        makes = flags & os.O_CREAT and flags & os.O_EXCL and not os.path.lexists(name)
        if name in self._names and not makes:
            self.seen.append((name, flags))


def assert_locks_are_held(path):
    """SQLite's shared locks on the database and on the -shm are still this process's."""
    held = set()
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "POSIX" and words[4] == str(os.getpid()):
            held.add(int(words[5].rpartition(":")[2]))
    for ending in ("", "-shm"):
        assert os.stat(path + ending).st_ino in held, f"the lock on {path}{ending} is gone"


def make_links(path):
    folder = Path(path).parent
    with contextlib.suppress(FileExistsError):
        (folder / "soft.db").symlink_to(path)


def everything(ledger, path, say, name):
    """Every way to touch a ledger that is open."""
    session = ledger.start_session(intent="hold").session_id
    record = ledger.record_thought(**thought(name, 1, session_id=session))
    say("thought", record.id, record.hash)
    for record in ledger.record_thoughts([thought(name, step) for step in range(20)]):
        say("thought", record.id, record.hash)
    assert ledger.get_thought(record.id) is not None
    assert list(ledger.iter_thoughts())
    ledger.list_sessions()
    ledger.list_tasks()
    say("seal", session, ledger.seal_session(session).root)
    assert ledger.verify().valid
    assert ledger.verify_chain(all=True).valid
    assert ledger.rebuild(check=True).valid
    assert ledger.rebuild().valid
    ledger.describe()
    open_again(path)
    say_nothing_wrong(path)


def open_again(path):
    """The same file again: by the same name, by a link, to read, and where it must fail."""
    make_links(path)
    soft = str(Path(path).parent / "soft.db")
    for name in (path, soft, f"{Path(path).parent}/./trail.db"):
        for options in ({}, {"readonly": True}, {"create": False}):
            with affidavit.open(name, **options) as other:
                assert len(other) > 0
            assert_locks_are_held(path)
        assert_locks_are_held(path)
    for name, options in (
        (path + "-missing", {"create": False}),
        (path + "-missing", {"readonly": True}),
        (path, {"settings": {"writeback": "no such value"}}),
        (path, {"clock": lambda: -1, "settings": {"transitions": "strict"}}),
        (path + "-wal", {}),
        (path + "-shm", {"readonly": True}),
    ):
        with contextlib.suppress(AffidavitError), affidavit.open(name, **options):
            pass
        assert_locks_are_held(path)


def say_nothing_wrong(path):
    """What the command line would look at, in this process."""
    from affidavit.apps.cli.checks import Subject, examine

    failed = [check for check in examine(Subject(path)) if check.status == "fail"]
    assert not failed, failed
    assert_locks_are_held(path)


def watched(path):
    watch = Watch(path)
    sys.addaudithook(watch)
    with affidavit.open(path) as ledger:
        everything(ledger, path, lambda *_: None, "watched")
        os.link(path, str(Path(path).parent / "hard.db"))
        with affidavit.open(str(Path(path).parent / "hard.db")) as other:
            other.record_thought(**thought("hard", 1))
        assert_locks_are_held(path)
        os.unlink(str(Path(path).parent / "hard.db"))
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.verify().valid
    assert not watch.seen, watch.seen
    # The watch and the check work: an opening by anybody else is seen, and drops the locks.
    with affidavit.open(path) as ledger:
        assert_locks_are_held(path)
        with open(path, "rb"):
            pass
        with contextlib.suppress(AssertionError):
            assert_locks_are_held(path)
            raise SystemExit("the locks are held all the same: the check is blind")
    assert len(watch.seen) == 1


def holder(path, side):
    say = sayer(side)
    with affidavit.open(path) as ledger:
        for line in sys.stdin:
            everything(ledger, path, say, f"holder-{line.strip()}")
            record = ledger.record_thought(**thought("holder", 2))
            say("thought", record.id, record.hash)
            print("done", flush=True)
        # Killed, not closed: what was acknowledged must be there without a last checkpoint.
        os._exit(0)


def careless(path, side):
    say = sayer(side)
    ledger = affidavit.open(path)
    record = ledger.record_thought(**thought("careless", 1))
    say("thought", record.id, record.hash)
    # What this package never does, and a program around it must not do.
    with open(path, "rb") as other:
        other.read(1)
    print("ready", flush=True)
    sys.stdin.readline()
    record = ledger.record_thought(**thought("careless", 2))
    say("thought", record.id, record.hash)
    os._exit(0)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
