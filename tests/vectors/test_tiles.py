"""A real log of another implementation, rebuilt; tile paths; tiles of a larger log."""

import base64
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from affidavit.core.checkpoint import (
    TreeHead,
    check_checkpoint,
    parse_checkpoint,
    sign_checkpoint,
)
from affidavit.core.merkle import complete_levels, leaf_hash, read_root, tree_root
from affidavit.core.note import parse_signing_key, parse_verifier_key
from affidavit.core.tile import (
    Bundle,
    Tile,
    bundle_of,
    decode_bundle,
    decode_tile,
    encode_bundle,
    encode_tile,
    parse_tile_path,
    tiles_between,
)
from affidavit.errors import AffidavitError, InputError

DATA = Path(__file__).parent / "data"
TESSERA = DATA / "tlog-tiles-tessera"
LOG = json.loads((TESSERA / "log.json").read_text(encoding="utf-8"))
PATHS = json.loads((TESSERA / "paths.json").read_text(encoding="utf-8"))
SPECS = json.loads((DATA / "c2sp-specs" / "examples.json").read_text(encoding="utf-8"))
WORDS = [word.encode() for word in LOG["entries_utf8_in_order"]]
SIZES = range(len(WORDS) + 1)
KEY = parse_signing_key(LOG["published_test_signing_key"])


def reader(leaves):
    levels = complete_levels(leaves)
    return SimpleNamespace(read_hashes=lambda nodes: [levels[n.level][n.position] for n in nodes])


@pytest.mark.parametrize("size", SIZES)
def test_the_whole_log_is_rebuilt_byte_for_byte(size):
    leaves = [leaf_hash(word) for word in WORDS[:size]]
    head = TreeHead(KEY.name, size, tree_root(leaves))
    note = (TESSERA / "log" / f"checkpoint.{size}").read_bytes()
    assert sign_checkpoint(head, [KEY]) == note
    key = parse_verifier_key(LOG["vkey"])
    assert check_checkpoint(parse_checkpoint(note), [key]).head == head
    for tile in tiles_between(0, size):
        data = encode_tile(reader(leaves).read_hashes(tile.nodes()))
        assert (TESSERA / "log" / tile.path).read_bytes() == data
        assert decode_tile(data, tile.width) == leaves
    if size:
        bundle = bundle_of(size - 1, size)
        data = encode_bundle(WORDS[:size])
        assert (TESSERA / "log" / bundle.path).read_bytes() == data
        assert decode_bundle(data, bundle.width) == WORDS[:size]


def test_no_file_of_the_log_is_left_out():
    written = {tile.path for size in SIZES for tile in tiles_between(0, size)}
    written |= {bundle_of(size - 1, size).path for size in SIZES if size}
    found = {str(path.relative_to(TESSERA / "log")) for path in (TESSERA / "log").rglob("*")
             if path.is_file() and not path.name.startswith("checkpoint")}  # fmt: skip
    assert found == written
    newest = (TESSERA / "log" / "checkpoint").read_bytes()
    assert newest == (TESSERA / "log" / f"checkpoint.{len(WORDS)}").read_bytes()


def number(text):
    product = 1
    for factor in text.split(" * "):
        product *= int(factor)
    return product


def width(case):
    return int(case.get("p", 0)) or 256


@pytest.mark.parametrize("case", PATHS["TestEntriesPathForLogIndex"])
def test_where_an_entry_lies(case):
    assert bundle_of(number(case["seq"]), number(case["logSize"])).path == case["wantPath"]


@pytest.mark.parametrize("case", PATHS["TestEntriesPath"])
def test_where_a_bundle_lies(case):
    bundle = Bundle(int(case["N"]), width(case))
    assert bundle.path == case["wantPath"]
    assert parse_tile_path(bundle.path) == bundle


@pytest.mark.parametrize("case", PATHS["TestTilePath"])
def test_where_a_tile_lies(case):
    tile = Tile(int(case["level"]), int(case["index"]), width(case))
    assert tile.path == case["wantPath"]
    assert parse_tile_path(tile.path) == tile


@pytest.mark.parametrize("case", PATHS["TestNWithSuffix"])
def test_how_a_number_is_written(case):
    tile = Tile(int(case["level"]), int(case["index"]), width(case))
    assert tile.path == f"tile/{case['level']}/{case['wantPath']}"


@pytest.mark.parametrize("case", PATHS["TestParseTileLevelIndexPartial"])
def test_paths_are_read_strictly(case):
    path = f"tile/{case['pathLevel']}/{case['pathIndex']}"
    if case.get("wantErr"):
        with pytest.raises(InputError):
            parse_tile_path(path)
    else:
        partial = int(case["wantP"]) or 256
        expected = Tile(int(case["wantLevel"]), int(case["wantIndex"]), partial)
        assert parse_tile_path(path) == expected


@pytest.mark.parametrize(
    "path",
    ["tile/0/x000/001", "tile/00/001", "tile/0/001.p/0", "tile/0/001.p/300", "tile/0/001.p/07",
     "../tile/0/001", "tile/entries/\u0660\u0660\u0661", "tile/0/001\n", ""],
)  # fmt: skip
def test_second_spellings_of_a_path_are_refused(path):
    with pytest.raises(InputError):
        parse_tile_path(path)


@pytest.mark.parametrize("facts", SPECS["tile_facts"])
def test_the_specification_counts_tiles_as_we_do(facts):
    tiles = list(tiles_between(0, facts["tree_size"]))
    for level in range(3):
        widths = [tile.width for tile in tiles if tile.level == level]
        assert widths.count(256) == facts.get(f"level{level}_full", 0)
        partial = [one for one in widths if one < 256]
        assert partial == [facts[key] for key in facts if key == f"level{level}_partial_width"]
    assert Tile(0, 1234067, 256).path.endswith(SPECS["tile_index_path"]["1234067"])


def test_a_tiled_tree_of_300_leaves_is_the_one_it_should_be():
    facts = json.loads((DATA / "cosignature-sunlight" / "facts.json").read_text(encoding="utf-8"))
    leaves = [leaf_hash(b"record %d" % i) for i in range(facts["tree_size"])]
    mirror = DATA / "cosignature-sunlight" / "mirror"
    for tile in tiles_between(0, facts["tree_size"]):
        data = encode_tile(reader(leaves).read_hashes(tile.nodes()))
        assert (mirror / tile.path).read_bytes() == data
    root = (mirror / "checkpoint").read_text(encoding="utf-8").split("\n")[2]
    assert base64.b64encode(read_root(300, reader(leaves))).decode() == root


def test_bundles_and_tiles_of_another_width_are_refused():
    data = encode_bundle([b"", b"a"])
    assert decode_bundle(data, 2) == [b"", b"a"]
    for wrong, count in ((data, 1), (data, 3), (data[:-1], 2), (data + b"\x00", 2), (b"", 1)):
        with pytest.raises(AffidavitError):
            decode_bundle(wrong, count)
    with pytest.raises(AffidavitError):
        decode_tile(bytes(33), 1)
