"""What lies at the path is not a ledger, or cannot be one: a clear refusal, nothing is changed."""

import errno
import os
import random
import socket
import sqlite3
import stat
from pathlib import Path

import pytest

import affidavit
from affidavit.errors import AffidavitError, ConflictError, IntegrityViolation, StoreError
from faults.support import audit

THOUGHT = {"type": "plan", "task_id": "t", "agent_id": "a", "content": "c"}


def state_of(folder):
    """Every name in a folder with its bytes and mode."""
    return {
        str(item.relative_to(folder)): (
            item.read_bytes() if item.is_file() else None,
            stat.S_IMODE(item.lstat().st_mode),
        )
        for item in folder.rglob("*")
    }


def refused(path, error=StoreError, **options):
    """Opening is refused by an error of ours, and nothing is changed or left behind."""
    folder = Path(path).parent
    while not folder.is_dir():
        folder = folder.parent
    before = state_of(folder)
    with pytest.raises(error) as caught:
        affidavit.open(path, **options)
    assert state_of(folder) == before
    assert caught.value.hint
    assert str(folder) in str(caught.value)
    return caught.value.code


def other_program(path, mode="DELETE"):
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("INSERT INTO notes VALUES ('mine')")
    connection.close()


def some_ledger(path, count=300):
    with affidavit.open(path) as ledger:
        ledger.record_thoughts([THOUGHT] * count)


EITHER_WAY = pytest.mark.parametrize("readonly", [False, True])


@EITHER_WAY
@pytest.mark.parametrize("size", [1, 15, 16, 100, 511, 512, 4096, 100_000])
def test_random_bytes_are_not_a_ledger(tmp_path, size, readonly):
    path = tmp_path / "trail.db"
    path.write_bytes(random.Random(size).randbytes(size))
    assert refused(path, readonly=readonly) == "ERR_NOT_A_LEDGER"


@EITHER_WAY
def test_text_is_not_a_ledger(tmp_path, readonly):
    path = tmp_path / "trail.db"
    path.write_text('{"what": "a JSON file"}\n' * 500)
    assert refused(path, readonly=readonly) == "ERR_NOT_A_LEDGER"


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_database_of_another_program_is_refused_and_unchanged(tmp_path, mode):
    path = tmp_path / "trail.db"
    other_program(path, mode)
    assert refused(path) == "ERR_NOT_A_LEDGER"


def test_a_database_of_another_program_is_not_read_as_one(tmp_path):
    path = tmp_path / "trail.db"
    other_program(path)
    assert refused(path, readonly=True) == "ERR_NOT_A_LEDGER"


def test_another_program_with_a_version_but_no_tables_is_refused(tmp_path):
    for pragma in ("user_version = 7", "application_id = 7"):
        path = tmp_path / f"{pragma[0]}.db"
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA {pragma}")
        connection.close()
        assert refused(path) == "ERR_NOT_A_LEDGER"


def test_an_empty_file_becomes_a_ledger(tmp_path):
    path = tmp_path / "trail.db"
    path.touch(mode=0o600)
    some_ledger(path, 2)
    audit(str(path))


def test_an_empty_file_cannot_be_read_as_a_ledger(tmp_path):
    path = tmp_path / "trail.db"
    path.touch()
    assert refused(path, readonly=True) == "ERR_NOT_A_LEDGER"


@pytest.mark.parametrize("options", [{"create": False}, {"readonly": True}])
def test_a_missing_file_is_not_made_where_that_was_not_asked(tmp_path, options):
    assert refused(tmp_path / "trail.db", **options) == "ERR_STORE_UNAVAILABLE"
    assert refused(tmp_path / "no" / "where" / "trail.db", **options) == "ERR_STORE_UNAVAILABLE"


def test_missing_parents_are_made_and_everything_is_the_owners_alone(tmp_path):
    path = tmp_path / "new" / "deeper" / "trail.db"
    before = os.umask(0o000)
    try:
        with affidavit.open(path) as ledger:
            ledger.record_thought(**THOUGHT)
            for suffix in ("", "-wal", "-shm"):
                assert stat.S_IMODE(os.stat(f"{path}{suffix}").st_mode) == 0o600, suffix
    finally:
        os.umask(before)
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    audit(str(path))


def test_a_folder_is_not_a_ledger(tmp_path):
    folder = tmp_path / "trail.db"
    folder.mkdir()
    for options in ({}, {"readonly": True}, {"create": False}):
        assert refused(folder, **options) == "ERR_STORE_UNAVAILABLE"


@pytest.mark.parametrize("below", ["trail.db", "sub/trail.db"])
def test_a_parent_that_is_a_file_is_refused(tmp_path, below):
    (tmp_path / "file").write_text("x")
    assert refused(tmp_path / "file" / below) == "ERR_STORE_UNAVAILABLE"


def test_names_the_system_cannot_have_are_refused(tmp_path):
    assert refused(tmp_path / ("x" * 300)) == "ERR_STORE_UNAVAILABLE"
    # The file could be made, its -wal could not.
    assert refused(tmp_path / ("x" * 253)) == "ERR_STORE_UNAVAILABLE"


def test_the_files_beside_a_ledger_are_refused(tmp_path):
    """To open and close one of them would drop SQLite's locks on the ledger."""
    some_ledger(tmp_path / "trail.db", 1)
    for ending in ("-wal", "-shm", "-journal"):
        path = tmp_path / f"trail.db{ending}"
        path.touch()
        assert refused(path) == "ERR_NOT_A_LEDGER"
        assert refused(path, readonly=True) == "ERR_NOT_A_LEDGER"
        path.unlink()


def test_no_ledger_is_made_under_the_name_of_a_file_beside_one(tmp_path):
    """A ledger `trail.db` made later would take `trail.db-wal` for its own and write over it."""
    for ending in ("-wal", "-shm", "-journal"):
        assert refused(tmp_path / f"trail.db{ending}") == "ERR_NOT_A_LEDGER"
    (tmp_path / "link.db").symlink_to(tmp_path / "trail.db-wal")
    assert refused(tmp_path / "link.db") == "ERR_NOT_A_LEDGER"


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "trail.db").symlink_to(tmp_path / "trail.db")
    assert refused(tmp_path / "trail.db") == "ERR_STORE_UNAVAILABLE"


@EITHER_WAY
def test_a_device_a_pipe_or_a_socket_is_refused_and_keeps_its_mode(tmp_path, readonly):
    """All of them say they have no bytes; none is an empty file that could become a ledger."""
    os.mkfifo(tmp_path / "pipe", mode=0o644)
    (tmp_path / "device").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
    held = os.open(tmp_path / "pipe", os.O_RDWR)  # so that nobody waits for its other end
    before = stat.S_IMODE(os.stat("/dev/null").st_mode)
    for name in ("pipe", "socket"):
        assert refused(tmp_path / name, readonly=readonly) == "ERR_NOT_A_LEDGER"
    os.close(held)
    with pytest.raises(StoreError) as caught:
        affidavit.open(tmp_path / "device", readonly=readonly)
    assert caught.value.code == "ERR_NOT_A_LEDGER"
    assert stat.S_IMODE(os.stat("/dev/null").st_mode) == before


@pytest.mark.parametrize(
    "name", ["a b.db", "a?mode=memory", "a#b", "a%20b", "é中.db", "'; DROP TABLE log; --"]
)
def test_any_file_name_will_do(tmp_path, name):
    path = os.path.join(tmp_path, name)
    some_ledger(path, 2)
    with affidavit.open(path, readonly=True) as ledger:
        assert len(ledger.list_thoughts()) == 2
        assert ledger.verify().valid
    assert os.listdir(os.fsencode(tmp_path))[0].startswith(os.fsencode(name))


def test_a_folder_whose_name_is_no_text_holds_a_ledger_all_the_same(tmp_path, monkeypatch):
    folder = os.path.join(os.fsencode(tmp_path), b"\xff")
    os.mkdir(folder)
    monkeypatch.chdir(folder)
    some_ledger("trail.db", 2)
    assert os.listdir(folder) == [b"trail.db"]
    with affidavit.open("trail.db", readonly=True) as ledger:
        assert ledger.verify().valid


def test_a_path_with_two_leading_slashes_is_the_same_file(tmp_path):
    path = tmp_path / "trail.db"
    with affidavit.open(path) as one, affidavit.open(f"/{path}") as two:
        assert two.get_thought(one.record_thought(**THOUGHT).id) is not None
        assert one.get_thought(two.record_thought(**THOUGHT).id) is not None


CUTS = [1, 50, 99, 100, 511, 512, 4095, 4096, 8192, 20_000]


@pytest.mark.parametrize("size", [*CUTS, -1, -4096])
def test_a_truncated_ledger_is_never_taken_for_whole(tmp_path, size):
    path = tmp_path / "trail.db"
    some_ledger(path)
    whole = path.read_bytes()
    cut = whole[:size]
    path.write_bytes(cut)
    with pytest.raises(AffidavitError) as caught:  # noqa: SIM117 - either may say it
        with affidavit.open(path) as ledger:
            report = ledger.verify()
            assert not report.valid
            raise IntegrityViolation("the verifier found it", hint="as promised")
    assert isinstance(caught.value, StoreError | IntegrityViolation)
    assert caught.value.hint


def test_a_ledger_cut_to_nothing_starts_a_new_one_which_only_a_checkpoint_could_tell(tmp_path):
    path = tmp_path / "trail.db"
    some_ledger(path)
    path.write_bytes(b"")
    with affidavit.open(path) as ledger:
        assert len(ledger) == 1


@pytest.mark.parametrize("where", [0, 16, 100, 2000, 4096 + 8, 3 * 4096 + 8, 9 * 4096 + 1])
def test_damaged_pages_never_raise_what_is_not_ours(tmp_path, where):
    path = tmp_path / "trail.db"
    some_ledger(path)
    data = bytearray(path.read_bytes())
    data[where : where + 64] = random.Random(where).randbytes(64)
    path.write_bytes(data)
    try:
        with affidavit.open(path) as ledger:
            ledger.verify()
            ledger.record_thought(**THOUGHT)
            ledger.list_thoughts()
    except (StoreError, IntegrityViolation, ConflictError) as error:
        assert error.hint


@pytest.mark.filterwarnings("ignore:recorded, but not signed:RuntimeWarning")
def test_a_definition_that_becomes_no_text_while_open_is_damage(tmp_path):
    """SQLite's own message quotes it, and the module cannot even say it."""
    path = tmp_path / "trail.db"
    with affidavit.open(path) as ledger, affidavit.open(path, readonly=True) as reader:
        ledger.record_thought(**THOUGHT)
        assert len(reader) == 2
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("PRAGMA writable_schema = ON")
        other.execute("UPDATE sqlite_schema SET sql = CAST(x'ff' AS TEXT) WHERE name = 'seals'")
        other.execute("PRAGMA schema_version = 1000")
        other.close()
        for call in (lambda: ledger.record_thought(**THOUGHT), lambda: len(reader), ledger.rebuild):
            with pytest.raises(IntegrityViolation) as caught:
                call()
            assert caught.value.hint
    with pytest.raises(IntegrityViolation):
        affidavit.open(path)


def test_nothing_is_left_behind_when_making_one_fails(tmp_path):
    """Bad input is found before a file is made, or the file goes away again."""
    path = tmp_path / "trail.db"
    for options in (
        {"settings": {"writeback": "maybe"}},
        {"id_fn": lambda: ""},
        {"id_fn": lambda: 1},
        {"clock": lambda: -1},
        {"clock": lambda: "now"},
    ):
        with pytest.raises(AffidavitError):
            affidavit.open(path, **options)
        assert list(tmp_path.iterdir()) == [], options
    some_ledger(path, 1)
    audit(str(path))


def test_a_ledger_that_was_only_half_made_is_finished_by_the_next(tmp_path):
    path = tmp_path / "trail.db"

    def fail():
        raise OSError(errno.EIO, "no randomness today")

    with pytest.raises(OSError, match="no randomness"):
        affidavit.open(path, id_fn=fail)
    some_ledger(path, 1)
    audit(str(path))


def test_a_second_name_of_a_file_is_refused_where_records_could_be_lost(tmp_path):
    """Another process would look for the newest records beside the other name."""
    path = tmp_path / "trail.db"
    some_ledger(path, 1)
    os.link(path, tmp_path / "hard.db")
    for name in ("trail.db", "hard.db"):
        assert refused(tmp_path / name) == "ERR_STORE_UNAVAILABLE"
    with affidavit.open(tmp_path / "hard.db", readonly=True) as ledger:
        assert ledger.verify().valid


def test_a_second_name_read_in_the_same_process_shows_the_newest_records(tmp_path):
    path, hard = tmp_path / "trail.db", tmp_path / "hard.db"
    with affidavit.open(path) as ledger:
        os.link(path, hard)
        ledger.record_thought(**THOUGHT)
        with affidavit.open(hard, readonly=True) as reader:
            assert len(reader) == 2
            ledger.record_thought(**THOUGHT)
            assert len(reader) == 3
        # A -wal of its own would be the wrong one.
        assert not Path(f"{hard}-wal").exists()
    hard.unlink()
    audit(str(path))


def test_two_names_of_one_file_in_one_process_share_it(tmp_path):
    path, hard, soft = (tmp_path / name for name in ("trail.db", "hard.db", "soft.db"))
    with affidavit.open(path) as one:
        os.link(path, hard)
        soft.symlink_to(path)
        with affidavit.open(hard) as two, affidavit.open(soft) as three:
            for ledger in (one, two, three):
                ledger.record_thought(**THOUGHT)
            assert len(one) == len(two) == len(three) == 4
        one.record_thought(**THOUGHT)
        assert sorted(os.listdir(tmp_path)) == [
            "hard.db", "soft.db", "trail.db", "trail.db-shm", "trail.db-wal",
        ]  # fmt: skip
    hard.unlink()
    audit(str(path))
