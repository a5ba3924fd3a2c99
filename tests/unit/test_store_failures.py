"""Every result SQLite can give becomes an error of ours, with a code and what to do."""

import errno
import sqlite3

import pytest

from affidavit.errors import CODES, AffidavitError, ConflictError, IntegrityViolation, StoreError
from affidavit.stores.sqlite import connection, failures

ERRORS = {
    "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_NOTADB",
    "SQLITE_CORRUPT", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_NOMEM", "SQLITE_INTERRUPT",
    "SQLITE_PERM", "SQLITE_PROTOCOL", "SQLITE_ERROR", "SQLITE_SCHEMA", "SQLITE_MISUSE",
}  # fmt: skip
EXPECTED = {
    "SQLITE_BUSY": (StoreError, "ERR_STORE_LOCKED"),
    "SQLITE_LOCKED": (StoreError, "ERR_STORE_LOCKED"),
    "SQLITE_FULL": (StoreError, "ERR_STORE_FULL"),
    "SQLITE_READONLY": (ConflictError, "ERR_READONLY"),
    "SQLITE_NOTADB": (StoreError, "ERR_NOT_A_LEDGER"),
    "SQLITE_CORRUPT": (IntegrityViolation, "ERR_INTEGRITY"),
}


def error_of(code, said="what SQLite said"):
    error = sqlite3.OperationalError(said)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize("name", sorted(ERRORS))
@pytest.mark.parametrize("extended", [0, 1, 10])
def test_every_result_has_its_error(name, extended):
    code = getattr(sqlite3, name) | extended << 8
    found = failures.translate(error_of(code), "/x/trail.db")
    kind, expected = EXPECTED.get(name, (StoreError, "ERR_STORE_UNAVAILABLE"))
    assert type(found) is kind
    assert found.code == expected
    assert found.code in CODES
    assert found.hint
    assert "/x/trail.db" in found.message


@pytest.mark.parametrize("extended", [5, 6])
def test_a_folder_without_room_for_the_files_beside_is_not_a_file_open_for_reading_only(extended):
    found = failures.translate(error_of(sqlite3.SQLITE_READONLY | extended << 8), "/x/trail.db")
    assert (type(found), found.code) == (StoreError, "ERR_STORE_UNAVAILABLE")
    assert "folder" in found.message


def test_a_message_of_sqlite_that_is_no_text_is_damage():
    said = UnicodeDecodeError("utf-8", b"secret \xff", 7, 8, "invalid start byte")
    found = failures.translate(said, "/x/trail.db")
    assert type(found) is IntegrityViolation
    assert "secret" not in found.message
    assert found.hint


def test_an_error_without_a_code_is_one_of_ours_too():
    found = failures.translate(sqlite3.ProgrammingError("odd"), "/x/trail.db")
    assert found.code == "ERR_STORE_UNAVAILABLE"


def test_only_a_lock_is_waited_for():
    assert failures.is_busy(error_of(sqlite3.SQLITE_BUSY))
    assert failures.is_busy(error_of(sqlite3.SQLITE_BUSY | 2 << 8))
    assert failures.is_busy(error_of(sqlite3.SQLITE_LOCKED))
    assert failures.is_busy(error_of(sqlite3.SQLITE_PROTOCOL))
    assert not failures.is_busy(error_of(sqlite3.SQLITE_IOERR))
    assert not failures.is_busy(sqlite3.OperationalError("no code"))


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("UNIQUE constraint failed: thought_records.id", "ERR_DUPLICATE_RECORD"),
        ("UNIQUE constraint failed: thought_records.hash", "ERR_DUPLICATE_RECORD"),
        ("UNIQUE constraint failed: log.log_index", "ERR_INTEGRITY"),
        ("UNIQUE constraint failed: thought_records.log_index", "ERR_INTEGRITY"),
        ("the log is append-only", "ERR_INTEGRITY"),
    ],
)
def test_every_constraint_has_its_error(said, code):
    found = failures.translate_constraint(sqlite3.IntegrityError(said))
    assert isinstance(found, AffidavitError)
    assert found.code == code
    assert found.hint


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.EROFS, "ERR_READONLY"),
        (errno.ENOSPC, "ERR_STORE_FULL"),
        (errno.EDQUOT, "ERR_STORE_FULL"),
        (errno.EACCES, "ERR_STORE_UNAVAILABLE"),
    ],
)
def test_every_refusal_of_the_system_has_its_error(number, code):
    found = failures.unavailable("/x/trail.db", OSError(number, "no"))
    assert found.code == code
    assert found.hint
    assert "/x/trail.db" in found.message


def test_an_sqlite_too_old_is_refused():
    connection.check_sqlite((3, 37, 0))
    with pytest.raises(StoreError) as caught:
        connection.check_sqlite((3, 36, 9))
    assert "3.37.0" in caught.value.message
    assert caught.value.hint


def test_an_error_that_is_not_a_lock_is_not_waited_for():
    with (
        sqlite3.connect(":memory:", isolation_level=None) as database,
        pytest.raises(StoreError) as caught,
    ):
        database.execute("BEGIN")
        connection.begin_immediate(database, "/x/trail.db")
    database.close()
    assert caught.value.code == "ERR_STORE_UNAVAILABLE"


def test_settings_of_every_connection(tmp_path):
    path = tmp_path / "x.db"
    path.touch()
    wanted = {"synchronous": 2, "trusted_schema": 0, "secure_delete": 1}
    for readonly in (False, True):
        opened = connection.open_connection(str(path), readonly=readonly)
        found = {name: opened.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted}
        assert found == wanted
        assert opened.execute("PRAGMA query_only").fetchone()[0] == readonly
        opened.close()
