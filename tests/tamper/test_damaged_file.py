"""A file damaged blindly: it is found, or refused in this package's words, or nothing was lost."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit import ConflictError, IntegrityViolation, StoreError
from affidavit.core.views import TABLES
from tamper.attack import NOW_US, looking, open_for_writing, tampering
from tamper.forge import thought_at

ROUNDS, LONG_ROUNDS = 100, 1_500
TOO_LONG_S = 10
PAGE = 4_096
LEAF_PAGE = 0x0D


def log_and_views(path: Path) -> list[Any]:
    """Every fact in a file, read by scanning the tables."""
    with looking(path) as connection:
        return [
            connection.execute(f"SELECT * FROM {table} NOT INDEXED ORDER BY 1").fetchall()
            for table in ("log", *TABLES.values())
        ]


@contextmanager
def a_limit_of_time() -> Iterator[None]:
    """A damaged file must not make anybody wait for ever."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"longer than {TOO_LONG_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(TOO_LONG_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def find_fault(path: Path, facts: list[Any], *, readonly: bool) -> str | None:
    """Why the answer to this damage is none of those allowed."""
    try:
        with affidavit.open(path, readonly=readonly, clock=lambda: NOW_US) as ledger:
            report = ledger.verify()
            ledger.verify_chain(all=True)
    except (IntegrityViolation, StoreError):
        return None
    except ConflictError as error:
        return None if error.code == "ERR_READONLY" and not readonly else repr(error)
    except TimeoutError:
        return "hangs"
    except Exception as error:
        return f"raised {error!r:.200}"
    if not report.valid:
        return None
    return None if log_and_views(path) == facts else "facts are lost and nobody says so"


def flip(data: bytearray, place: int, chance: random.Random) -> None:
    data[place] ^= chance.randrange(1, 256)


def flip_anywhere(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        flip(data, chance.randrange(len(data)), chance)


def flip_in_the_header(data: bytearray, chance: random.Random) -> None:
    flip(data, chance.randrange(100), chance)


def flip_in_the_schema(data: bytearray, chance: random.Random) -> None:
    flip(data, chance.randrange(100, PAGE), chance)


def flip_a_page_header(data: bytearray, chance: random.Random) -> None:
    flip(data, chance.randrange(1, len(data) // PAGE) * PAGE + chance.randrange(12), chance)


def flip_a_cell(data: bytearray, chance: random.Random) -> None:
    """Where a row says how long it is, which index it has, and of which types its values are."""
    leaves = [page for page in range(PAGE, len(data), PAGE) if data[page] == LEAF_PAGE]
    page = chance.choice(leaves)
    count = int.from_bytes(data[page + 3 : page + 5], "big")
    pointer = page + 8 + 2 * chance.randrange(max(count, 1))
    cell = page + int.from_bytes(data[pointer : pointer + 2], "big")
    flip(data, min(cell + chance.randrange(28), len(data) - 1), chance)


def overwrite_a_block(data: bytearray, chance: random.Random) -> None:
    size = chance.choice((16, 512, PAGE))
    place = chance.randrange(len(data) - size)
    data[place : place + size] = chance.choice((bytes(size), chance.randbytes(size)))


def swap_two_pages(data: bytearray, chance: random.Random) -> None:
    one, other = (PAGE * chance.randrange(1, len(data) // PAGE) for _ in range(2))
    saved = data[one : one + PAGE]
    data[one : one + PAGE] = data[other : other + PAGE]
    data[other : other + PAGE] = saved


def cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


DAMAGES = {
    damage.__name__: damage
    for damage in (
        flip_anywhere,
        flip_in_the_header,
        flip_in_the_schema,
        flip_a_page_header,
        flip_a_cell,
        overwrite_a_block,
        swap_two_pages,
        cut,
    )
}


def damage_often(
    original: Path, copy: Callable[[], Path], kind: str, start: str, rounds: int
) -> None:
    facts, sound = log_and_views(original), original.read_bytes()
    chance = random.Random(f"{start} {kind}")
    wrong = []
    for number in range(rounds):
        path = copy()
        data = bytearray(sound)
        DAMAGES[kind](data, chance)
        path.write_bytes(data)
        with a_limit_of_time():
            said = find_fault(path, facts, readonly=number % 3 > 0)
        if said is not None:
            wrong.append(f"round {number}: {said}")
    assert not wrong, f"{len(wrong)} of {rounds} are wrong:\n" + "\n".join(wrong)


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_found_or_refused_or_harmless(
    original: Path, copy: Callable[[], Path], kind: str
) -> None:
    damage_often(original, copy, kind, "damage", ROUNDS)


@pytest.mark.long
@pytest.mark.parametrize("kind", DAMAGES)
def test_much_damage_is_found_or_refused_or_harmless(
    original: Path, copy: Callable[[], Path], kind: str
) -> None:
    damage_often(original, copy, kind, "much damage", LONG_ROUNDS)


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """A number as SQLite writes it, and where it ends."""
    value = 0
    while True:
        value = value << 7 | data[place] & 0x7F
        place += 1
        if data[place - 1] < 0x80:
            return value, place


def place_of_row(data: bytes, index: int, mark: bytes) -> int:
    """Where the index of a row with this text in it stands in the file."""
    for page in (page for page in range(PAGE, len(data), PAGE) if data[page] == LEAF_PAGE):
        for number in range(int.from_bytes(data[page + 3 : page + 5], "big")):
            pointer = page + 8 + 2 * number
            cell = page + int.from_bytes(data[pointer : pointer + 2], "big")
            size, place = read_varint(data, cell)
            row_index, end = read_varint(data, place)
            if row_index == index and mark in data[end : end + size]:
                return place
    raise AssertionError(index)


def test_rows_that_go_round_in_circles_end_the_walk(victim: Path) -> None:
    """A row says that it is an early one, and the text behind it is no text: start again?"""
    with tampering(victim) as connection:
        record_id = thought_at(connection, 200).id
        sql = "UPDATE thought_records SET agent_id = CAST(x'ff' AS TEXT) WHERE log_index = 201"
        connection.execute(sql)
    data = bytearray(victim.read_bytes())
    place = place_of_row(data, 200, record_id.encode())
    data[place : place + 2] = b"\x80\x05"
    victim.write_bytes(data)
    with a_limit_of_time():
        assert find_fault(victim, [], readonly=True) is None


def test_an_empty_file_is_no_ledger(victim: Path) -> None:
    victim.write_bytes(b"")
    with pytest.raises(StoreError) as caught:
        affidavit.open(victim, readonly=True)
    assert caught.value.code == "ERR_NOT_A_LEDGER"


def test_another_kind_of_file_is_no_ledger(victim: Path) -> None:
    victim.write_bytes(b"To whom it may concern\n" * 1_000)
    with pytest.raises(StoreError) as caught:
        affidavit.open(victim, readonly=True)
    assert caught.value.code == "ERR_NOT_A_LEDGER"


LAST = "(SELECT max(log_index) FROM log)"


@pytest.mark.parametrize(
    "change",
    [
        f"DELETE FROM log WHERE log_index = {LAST}",
        f"UPDATE log SET log_index = {2**63 - 1} WHERE log_index = {LAST}",
    ],
    ids=["the last entry gone, its row left", "no index left behind the last entry"],
)
def test_nothing_is_recorded_behind_a_damaged_end_and_nobody_is_told_it_was_there_before(
    victim: Path, change: str
) -> None:
    with open_for_writing(victim) as ledger:
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content="c")
    with tampering(victim) as connection:
        connection.execute(change)
    with open_for_writing(victim) as ledger:
        for content in ("once", "and again"):
            with pytest.raises(IntegrityViolation) as caught:
                ledger.record_thought(type="plan", task_id="t", agent_id="a", content=content)
            assert caught.value.hint
            assert ledger.list_thoughts(task_id="t")[-1].content == "c"
