"""RFC 8785 against its authors' data: whole documents, and numbers by the hundred thousand."""

import hashlib
import json
import math
import struct
from pathlib import Path

import pytest

from affidavit.core.canonical import (
    INTEGER_MAX,
    canonicalize_text,
    canonicalize_value,
    format_number,
)
from affidavit.errors import InputError

DATA = Path(__file__).parent / "data" / "jcs-rfc8785"
NAMES = sorted(path.stem for path in (DATA / "input").iterdir())
NUMBERS = json.loads((DATA / "numbers.json").read_text(encoding="utf-8"))
STATIC = [int(text, 16) for text in NUMBERS["es6_static_u64s_hex"]]
PAIRS = NUMBERS["hex_ieee754_to_json"]


def to_float(bits):
    return struct.unpack(">d", bits.to_bytes(8, "big"))[0]


def es6_numbers():
    """The sequence of the number file: fixed values, small normal ones, then iterated SHA-256."""
    yield from STATIC
    yield from (0x0010000000000000 + step for step in range(2000))
    block = bytes(32)
    while True:
        block = hashlib.sha256(block).digest()
        for (bits,) in struct.iter_unpack("<Q", block):
            value = to_float(bits)
            if value != 0 and math.isfinite(value):
                yield bits


def es6_digest(line_count):
    digest = hashlib.sha256()
    for _, bits in zip(range(line_count), es6_numbers(), strict=False):
        digest.update(f"{bits:x},{format_number(to_float(bits))}\n".encode())
    return digest.hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_a_document_has_the_expected_text(name):
    text = (DATA / "input" / f"{name}.json").read_text(encoding="utf-8")
    expected = (DATA / "output" / f"{name}.json").read_text(encoding="utf-8")
    assert canonicalize_text(text) == (expected, "jcs")
    assert canonicalize_value(json.loads(text)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_document_has_the_expected_bytes(name):
    text = (DATA / "input" / f"{name}.json").read_text(encoding="utf-8")
    expected = bytes.fromhex((DATA / "outhex" / f"{name}.txt").read_text(encoding="ascii"))
    assert canonicalize_text(text).text.encode() == expected


@pytest.mark.parametrize("name", NAMES)
def test_canonical_text_is_its_own_canonical_text(name):
    expected = (DATA / "output" / f"{name}.json").read_text(encoding="utf-8")
    assert canonicalize_text(expected) == (expected, "jcs")


@pytest.mark.parametrize(("bits", "expected"), [pair for pair in PAIRS if pair[1] is not None])
def test_a_number_is_written_as_in_the_appendix(bits, expected):
    assert format_number(to_float(int(bits, 16))) == expected


@pytest.mark.parametrize("bits", [pair[0] for pair in PAIRS if pair[1] is None])
def test_a_number_that_json_has_not_is_refused(bits):
    with pytest.raises(InputError):
        format_number(to_float(int(bits, 16)))


@pytest.mark.parametrize("line_count", [1_000, 10_000, 100_000])
def test_the_number_file_has_the_expected_digest(line_count):
    assert es6_digest(line_count) == NUMBERS["es6_file_sha256_by_lines"][str(line_count)]


@pytest.mark.long
def test_a_million_lines_of_the_number_file_have_the_expected_digest():
    assert es6_digest(1_000_000) == NUMBERS["es6_file_sha256_by_lines"]["1000000"]


def test_the_largest_safe_integer_is_the_limit():
    assert NUMBERS["max_safe_integer"] == INTEGER_MAX
    assert canonicalize_value([INTEGER_MAX, -INTEGER_MAX]) == f"[{INTEGER_MAX},-{INTEGER_MAX}]"
    for beyond in (INTEGER_MAX + 1, -INTEGER_MAX - 1):
        with pytest.raises(InputError):
            canonicalize_value(beyond)
