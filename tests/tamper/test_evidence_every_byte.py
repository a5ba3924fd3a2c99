"""Every byte of a small evidence file, flipped: never verified, never a crash.

Flipped in the file as it lies there, the archive refuses it; so each inner file is flipped too, and
all hashes about it made right again. The bytes that mean nothing are named.
"""

from __future__ import annotations

import struct

import pytest

from affidavit.core.archive import decode_archive, encode_archive
from affidavit.core.bundle import Scope
from affidavit.core.note import SigningKey
from tamper.evidence_kit import (
    ENTRIES,
    KEY,
    ForgedLog,
    Opened,
    judge,
    payloads_of,
)

MASKS = (0x01, 0x80)
ALL_MASKS = (*MASKS, 0x02, 0x20, 0xFF)


def small_file():
    """One sealed record of a session, its task's other records left out."""
    log = ForgedLog(ENTRIES)
    indices = [1, 4, 9]
    part = log.part(1, seal=9, present=[4])
    return log.evidence(Scope("record", "r3"), indices, payloads_of(indices), {1: part})


SMALL = small_file()


def meaningless(data):
    """Who made the archive and for which version, the bit that names are UTF-8, attributes."""
    named = set()
    for name in decode_archive(data):
        local = data.index(struct.pack("<H", len(name)) + b"\0\0" + name.encode()) - 26
        listed = data.rindex(name.encode()) - 46
        named |= {local + n for n in (4, 5, 7)}
        named |= {listed + n for n in (4, 5, 6, 7, 9, *range(36, 42))}
    return named


def flipped(data, place, mask):
    changed = bytearray(data)
    changed[place] ^= mask
    return bytes(changed)


def test_the_small_file_is_verified():
    assert judge(SMALL).verdict == "verified"


def test_every_byte_of_the_file_as_it_lies_there():
    named = meaningless(SMALL)
    silent = {
        place
        for place in range(len(SMALL))
        for mask in MASKS
        if judge(flipped(SMALL, place, mask)).verdict != "violation"
    }
    assert silent <= named
    assert len(named) < len(SMALL) // 20


def flip_inner(masks, step):
    """Every step-th byte of every inner file, all hashes made right again."""
    opened = Opened(SMALL)
    verified = []
    for name in sorted(opened.files):
        data = opened.files[name]
        for place in range(0, len(data), step):
            for mask in masks:
                other = Opened(SMALL)
                other.files[name] = flipped(data, place, mask)
                report = judge(other.sealed() if name != "manifest.json" else repacked(other))
                if report.verdict == "verified":
                    verified.append((name, place, mask))
    return verified


def repacked(opened):
    """With the hashes as they are."""
    return encode_archive(opened.files)


def test_bytes_of_every_inner_file_with_all_hashes_made_right():
    assert flip_inner(MASKS[:1], 5) == []


@pytest.mark.long
def test_every_byte_of_every_inner_file_with_all_hashes_made_right():
    assert flip_inner(ALL_MASKS, 1) == []


def test_a_value_of_any_kind_never_crashes_the_verifier():
    """What a stranger may put where a text, a number or a list must stand."""
    odd = (None, True, 0, -1, 2**53, 1.5, "", "x", "\u0000", [], [[]], {}, {"a": {}}, ["0" * 64])
    for name in ("manifest.json", "sessions/1.json"):
        for key in Opened(SMALL).json(name):
            for value in odd:
                opened = Opened(SMALL)
                content = opened.json(name)
                if content[key] == value:
                    continue
                content[key] = value
                try:
                    opened.put_json(name, content)
                except ValueError:
                    continue
                data = opened.sealed() if key != "files" else repacked(opened)
                assert judge(data).verdict == "violation", (name, key, value)


def test_a_key_of_a_stranger_judges_nothing():
    other = SigningKey(KEY.name, b"\x01" * 32).verifier
    assert judge(SMALL, other).verdict == "could not be verified"
