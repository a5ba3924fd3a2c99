"""Published logs: whole at every moment, only ever growing, and readable without the ledger."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

import affidavit
from affidavit.apps import wiring
from affidavit.core.checkpoint import check_checkpoint, parse_checkpoint
from affidavit.core.merkle import leaf_hash, read_root, tree_root
from affidavit.core.note import parse_verifier_key
from affidavit.core.tile import (
    TiledTree,
    bundles_between,
    decode_bundle,
    parse_tile_path,
    tiles_between,
)
from affidavit.errors import CannotVerify, ConflictError, IntegrityViolation, StoreError
from contract.oracle import log


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "published"


def think(ledger, many=1):
    ledger.record_thoughts(
        [{"type": "plan", "task_id": "t", "agent_id": "a", "content": f"{n}"} for n in range(many)]
    )


def files_of(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.startswith(".")
    }


def assert_published(path, folder, size, *, entries=False):
    """What is there is exactly what a log of this size has, by the specification's rules."""
    raw = [entry.raw for entry in log(path)[:size]]
    note = parse_checkpoint((folder / "checkpoint").read_bytes())
    with affidavit.open(path, readonly=True) as ledger:
        keys = [parse_verifier_key(key.vkey) for key in ledger.list_keys()]
    head = check_checkpoint(note, keys).head
    assert (head.size, head.root) == (size, tree_root(map(leaf_hash, raw)))
    tree = TiledTree(size, lambda path: (folder / path).read_bytes())
    assert read_root(size, tree) == head.root
    tiles = [tile.path for tile in tiles_between(0, size)]
    for tile in tiles_between(0, size):
        if tile.level == 0:
            first = tile.number * 256
            hashes = [leaf_hash(entry) for entry in raw[first : first + tile.width]]
            assert (folder / tile.path).read_bytes() == b"".join(hashes)
    bundles = [bundle.path for bundle in bundles_between(0, size)] if entries else []
    found = []
    for number, name in enumerate(bundles):
        width = min(256, size - number * 256)
        found += decode_bundle((folder / name).read_bytes(), width)
    assert found == (raw if entries else [])
    others = set(files_of(folder)) - {"checkpoint", *tiles, *bundles}
    # Partial forms for readers of an older checkpoint may still be there, but no whole one twice.
    for name in others:
        assert ".p/" in name
        assert parse_tile_path(name).width < 256


def test_a_log_is_published_and_then_only_what_is_new(ledger, path, folder):
    think(ledger, 300)
    first = ledger.publish(str(folder))
    assert (first.size, first.place) == (len(ledger), str(folder))
    assert_published(path, folder, first.size)
    again = ledger.publish(str(folder))
    assert (again.size, again.written) == (first.size, 0)
    whole = {name: data for name, data in files_of(folder).items() if ".p/" not in name}
    think(ledger, 400)
    second = ledger.publish(str(folder))
    assert_published(path, folder, second.size)
    assert second.written == 1 + 2  # two tiles of hashes, one of them whole, and the one above
    after = files_of(folder)
    assert all(after[name] == whole[name] for name in whole if name != "checkpoint")


@pytest.mark.parametrize("size", [1, 255, 256, 257, 512, 513])
def test_every_edge_of_a_tile(ledger, path, folder, size):
    ledger.set(publish="entries")
    ledger.checkpoint()
    for step in (size - 3, 1):
        if len(ledger) + step <= size:
            think(ledger, max(1, size - len(ledger) - 1))
            ledger.publish(str(folder))
    ledger.publish(str(folder))
    assert_published(path, folder, len(ledger), entries=True)


def test_entries_are_given_away_only_where_the_owner_says_so(ledger, path, folder):
    think(ledger, 300)
    ledger.publish(str(folder))
    assert not (folder / "tile" / "entries").exists()
    ledger.set(publish="entries")
    ledger.publish(str(folder))
    assert_published(path, folder, len(ledger), entries=True)
    ledger.set(publish="hashes")
    think(ledger, 300)
    ledger.publish(str(folder))
    ledger.set(publish="entries")
    ledger.publish(str(folder))  # what was left out meanwhile is made up for
    assert_published(path, folder, len(ledger), entries=True)


def test_files_are_for_everybody_to_read(ledger, folder):
    ledger.publish(str(folder))
    for file in folder.rglob("*"):
        mode = stat.S_IMODE(file.stat().st_mode)
        assert file.name.startswith(".") or mode & 0o044 == 0o044, file


def test_partial_tiles_stay_until_the_whole_one_is_there(ledger, folder):
    ledger.checkpoint()
    sizes = []
    for many in (5, 6, 7):
        think(ledger, many)
        sizes.append(ledger.publish(str(folder)).size)
    partials = folder / "tile" / "0" / "000.p"
    assert sorted(int(file.name) for file in partials.iterdir()) == sizes
    think(ledger, 256)
    ledger.publish(str(folder))
    assert not partials.exists()


def test_a_smaller_log_never_replaces_a_larger_one(path, folder, home):
    with affidavit.open(path) as ledger:
        think(ledger, 5)
        ledger.checkpoint()
    shutil.copyfile(path, f"{path}.older")
    shutil.copytree(home, home.with_name("older-home"))
    with affidavit.open(path) as ledger:
        think(ledger, 5)
        ledger.publish(str(folder))
    before = files_of(folder)
    shutil.copyfile(f"{path}.older", path)
    shutil.rmtree(home)
    shutil.copytree(home.with_name("older-home"), home)  # the guard was put back too
    with wiring.open_ledger(path) as ledger:
        with pytest.raises(IntegrityViolation) as caught:
            ledger.publish(str(folder))
        assert caught.value.details["finding"] == "tail_removed"
        assert caught.value.details["published"] == before["checkpoint"].decode()
        think(ledger, 20)  # longer again, with another past
        with pytest.raises(IntegrityViolation) as caught:
            ledger.publish(str(folder))
        assert caught.value.details["finding"] == "fork"
    assert files_of(folder) == before


def test_a_folder_belongs_to_one_log(path, folder, tmp_path):
    with affidavit.open(path) as ledger:
        ledger.publish(str(folder))
    before = files_of(folder)
    with affidavit.open(tmp_path / "other.db") as other:
        with pytest.raises(ConflictError) as caught:
            other.publish(str(folder))
        assert caught.value.code == "ERR_OTHER_LOG"
    assert files_of(folder) == before


def test_a_checkpoint_somebody_wrote_is_not_built_upon(ledger, folder):
    ledger.publish(str(folder))
    note = (folder / "checkpoint").read_text(encoding="utf-8")
    (folder / "checkpoint").write_text("hello\n", encoding="utf-8")
    with pytest.raises(CannotVerify, match="cannot be read"):
        ledger.publish(str(folder))
    line = note.rpartition(" ")[2]
    forged = note.replace(line, line[:20] + "AAAA" + line[24:])
    (folder / "checkpoint").write_text(forged, encoding="utf-8")
    with pytest.raises(IntegrityViolation):
        ledger.publish(str(folder))


def test_a_changed_tile_or_a_strange_one_stops_publishing(ledger, folder):
    think(ledger, 5)
    ledger.checkpoint()
    size = len(ledger) + 3
    strange = folder / "tile" / "0" / "000.p" / str(size)
    strange.parent.mkdir(parents=True)
    strange.write_bytes(bytes(32 * size))
    ledger.publish(str(folder))
    think(ledger, 3)
    with pytest.raises(IntegrityViolation, match="is not what this log has there"):
        ledger.publish(str(folder))
    strange.unlink()
    assert ledger.publish(str(folder)).size == size


def test_an_entry_changed_behind_the_ledgers_back_is_not_published(path, folder):
    with affidavit.open(path) as ledger:
        think(ledger, 300)
        ledger.checkpoint()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER log_refuses_update")
        connection.execute("UPDATE log SET entry = CAST(replace(CAST(entry AS TEXT), '\"a\"', "
                           "'\"b\"') AS BLOB) WHERE log_index = 7")  # fmt: skip
        connection.commit()
    with wiring.open_ledger(path) as ledger, pytest.raises(IntegrityViolation, match="entries"):
        ledger.publish(str(folder))
    assert not (folder / "checkpoint").exists()


def test_a_place_that_cannot_be_written(ledger, tmp_path):
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    with pytest.raises(StoreError):
        ledger.publish(str(tmp_path / "file"))
    with pytest.raises(StoreError):
        ledger.publish(str(tmp_path / "file" / "below"))


def test_a_reader_publishes_what_is_signed(path, folder):
    with affidavit.open(path) as ledger:
        think(ledger)
        size = ledger.checkpoint().size
    with affidavit.open(path, readonly=True) as reader:
        assert reader.publish(str(folder)).size == size
    assert_published(path, folder, size)
    assert Path(folder, ".lock").exists()
