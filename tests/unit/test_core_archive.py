"""The container of evidence files: any tool unpacks it, and nothing can hide in it."""

import io
import struct
import zipfile

import pytest

from affidavit.core import archive
from affidavit.core.archive import decode_archive, encode_archive, is_archive
from affidavit.errors import InputError

FILES = {"a.json": b"{}", "b/c": b"\x00\xff" * 40, "empty": b""}


def zipped(files, **options):
    """The same by the standard library, where everything may be chosen."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as container:
        for name, data in files:
            info = zipfile.ZipInfo(name)
            for option, value in options.items():
                setattr(info, option, value)
            container.writestr(info, data)
    return target.getvalue()


def test_it_is_what_the_standard_library_writes_and_reads():
    data = encode_archive(FILES)
    assert data == zipped(sorted(FILES.items()))
    assert data == encode_archive(dict(reversed(FILES.items())))
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        assert container.testzip() is None
        assert {name: container.read(name) for name in container.namelist()} == FILES
    assert decode_archive(data) == FILES
    assert is_archive(data)
    assert decode_archive(encode_archive({})) == {}


@pytest.mark.parametrize(
    "name",
    ["../x", "/x", "a/../x", "a//b", "a/", "", ".", "a/./b", "C:\\x", "a\\b", "é", "a b", "a\n",
     "~/x", "-x", "a" * 201],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused(name):
    with pytest.raises(InputError, match="archive"):
        decode_archive(zipped([(name, b"x")]))
    with pytest.raises(InputError, match="archive"):
        encode_archive({name: b"x"})


@pytest.mark.parametrize(
    "data",
    [
        zipped([("a", b"1"), ("b", b"2")]).replace(b"b", b"a"),
        zipped([("b", b"1"), ("a", b"2")]),
        zipped([("a", b"x" * 100)], compress_type=zipfile.ZIP_DEFLATED),
        zipped([("a", b"1")], date_time=(2026, 1, 1, 0, 0, 0)),
        zipped([("a", b"1")], extra=b"\x01\x00\x00\x00"),
        zipped([("a", b"1")], comment=b"hi"),
        b"x" + zipped([("a", b"1")]),
        zipped([("a", b"1")]) + b"x",
        zipped([("a", b"1")])[:-1],
        zipped([("a", b"1")])[:20],
        b"PK\x03\x04",
        b"",
    ],
    ids=["twice", "unsorted", "deflated", "later", "extra", "comment", "before", "behind", "cut",
         "head", "sign", "nothing"],
)  # fmt: skip
def test_another_container_is_refused(data):
    with pytest.raises(InputError, match="archive"):
        decode_archive(data)


def test_encryption_is_refused():
    data = bytearray(encode_archive({"a": b"1"}))
    for place in (6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1
    with pytest.raises(InputError, match="listed"):
        decode_archive(bytes(data))


def test_two_files_cannot_share_their_bytes():
    """A listing may name one stored file twice; then a reader and a tool would see other sizes."""
    one = encode_archive({"a": b"1"})
    listing = one[one.index(b"PK\x01\x02") : one.index(b"PK\x05\x06")]
    start = one.index(b"PK\x01\x02")
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 2, 2, 2 * len(listing), start, 0)
    with pytest.raises(InputError, match="archive"):
        decode_archive(one[:start] + listing * 2 + end)


def test_bytes_between_the_files_are_refused():
    one = encode_archive({"a": b"1"})
    start = one.index(b"PK\x01\x02")
    end = one.index(b"PK\x05\x06")
    moved = struct.pack("<I", start + 3)
    data = one[:start] + b"hid" + one[start:end] + one[end : end + 16] + moved + one[end + 20 :]
    with pytest.raises(InputError, match="belong to no file"):
        decode_archive(data)


def test_sizes_are_limited(monkeypatch):
    monkeypatch.setattr(archive, "ARCHIVE_BYTES_MAX", 200)
    with pytest.raises(InputError, match="200 bytes") as error:
        encode_archive({"a": b"x" * 300})
    assert error.value.code == "ERR_TOO_LARGE"
    with pytest.raises(InputError, match="limit is 200"):
        decode_archive(zipped([("a", b"x" * 300)]))
    monkeypatch.setattr(archive, "FILES_MAX", 1)
    with pytest.raises(InputError, match="more than 1 files"):
        encode_archive({"a": b"", "b": b""})


def test_many_files_are_counted_where_zip64_counts_them():
    files = {f"f{number:06}": b"%d" % number for number in range(65_535)}
    data = encode_archive(files)
    assert decode_archive(data) == files
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        assert len(container.namelist()) == len(files)
        assert container.read("f065534") == b"65534"
    place = data.index(b"PK\x06\x06")
    for at in range(place, len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(InputError, match="archive"):
            next(archive.iter_members(bytes(changed)))
    few = dict(list(files.items())[:-1])
    assert b"PK\x06\x06" not in encode_archive(few)


def test_every_byte_of_the_container_says_something_but_those_named():
    """Flipped one at a time: refused, other files, or one of the bytes that mean nothing."""
    data = encode_archive(FILES)
    silent = set()
    for place in range(len(data)):
        for mask in (0x01, 0x08, 0x80, 0xFF):
            flipped = bytearray(data)
            flipped[place] ^= mask
            try:
                assert decode_archive(bytes(flipped)) == FILES
            except InputError:
                continue
            silent.add(place)
    named = set()
    for name in FILES:
        local = data.index(name.encode()) - 30
        listed = data.rindex(name.encode()) - 46
        named |= {local + 4, local + 5, local + 7}  # version needed; bit 11: the name is UTF-8
        named |= {listed + n for n in (4, 5, 6, 7, 9)}  # who made it, version needed, bit 11
        named |= {listed + n for n in range(36, 42)}  # attributes
    assert silent == named
