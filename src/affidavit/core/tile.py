r"""Tiles: how a log lies on disk and travels over HTTP (c2sp.org/tlog-tiles v0.1.0).

    checkpoint                      the newest checkpoint
    tile/<level>/<N>[.p/<W>]        hashes of the log's tree, 32 bytes each
    tile/entries/<N>[.p/<W>]        entries: big-endian uint16 length and bytes, repeated

Tile N of level L holds the nodes N*256 to N*256+255 of the tree's level 8L. A full tile has 256 and
never changes; one with fewer (W) is partial. N is written in groups of three digits, all but the
last with an `x` before them.

    >>> Tile(0, 1234067, 256).path, Tile(1, 0, 17).path, Bundle(3, 256).path
    ('tile/0/x001/x234/067', 'tile/1/000.p/17', 'tile/entries/003')
    >>> [tile.path for tile in tiles_between(0, 70000)][-3:]
    ['tile/1/000', 'tile/1/001.p/17', 'tile/2/000.p/1']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from affidavit.core.merkle import Digest, Node, complete_levels
from affidavit.errors import InputError

TILE_HEIGHT: Final = 8
TILE_WIDTH: Final = 1 << TILE_HEIGHT
LEVELS: Final = 64

_DIGEST_BYTES: Final = 32
_LENGTH_BYTES: Final = 2
_PATH = re.compile(
    r"tile/(?P<level>entries|0|[1-9][0-9]?)/(?P<number>(?:x[0-9]{3}/){0,6}[0-9]{3})"
    r"(?:\.p/(?P<width>[1-9][0-9]{0,2}))?\Z",
    re.ASCII,
)


class Tile(NamedTuple):
    """Some neighbouring nodes of one level of the log's tree."""

    level: int
    number: int
    width: int

    @property
    def path(self) -> str:
        """Where it lies."""
        return f"tile/{self.level}/{_path(self.number, self.width)}"

    def nodes(self) -> list[Node]:
        """The nodes whose hashes it holds, in order."""
        first, level = self.number * TILE_WIDTH, self.level * TILE_HEIGHT
        return [Node(level, first + offset) for offset in range(self.width)]


class Bundle(NamedTuple):
    """The entries below one tile of level 0."""

    number: int
    width: int

    @property
    def path(self) -> str:
        """Where it lies."""
        return f"tile/entries/{_path(self.number, self.width)}"


def _path(number: int, width: int) -> str:
    groups = [f"{number % 1000:03d}"]
    while number := number // 1000:
        groups.append(f"x{number % 1000:03d}")
    partial = "" if width == TILE_WIDTH else f".p/{width}"
    return "/".join(reversed(groups)) + partial


def parse_tile_path(path: str) -> Tile | Bundle:
    """Read a path that `path` writes; every other spelling is refused."""
    if match := _PATH.match(path):
        width = int(match["width"] or TILE_WIDTH)
        number = int(match["number"].replace("x", "").replace("/", ""))
        found: Tile | Bundle = Bundle(number, width)
        if match["level"] != "entries":
            found = Tile(int(match["level"]), number, width)
        fits = number < 2**63 and width <= TILE_WIDTH and getattr(found, "level", 0) < LEVELS
        if fits and found.path == path:
            return found
    raise InputError(f"path: {path!r:.200} is not that of a tile", field="path")


def tiles_between(old_size: int, new_size: int) -> Iterator[Tile]:
    """The tiles of a log of `new_size` that it did not have at `old_size`, lowest level first."""
    level = 0
    while nodes := new_size >> (level * TILE_HEIGHT):
        old_nodes = old_size >> (level * TILE_HEIGHT)
        for number in range(old_nodes // TILE_WIDTH, -(-nodes // TILE_WIDTH)):
            width = min(TILE_WIDTH, nodes - number * TILE_WIDTH)
            if number * TILE_WIDTH + width > old_nodes:
                yield Tile(level, number, width)
        level += 1


def tile_of(node: Node, size: int) -> Tile:
    """The tile that holds a node, or what is below it, in a log of this size."""
    level = node.level // TILE_HEIGHT
    first = node.position << node.level % TILE_HEIGHT
    number = first // TILE_WIDTH
    nodes = size >> level * TILE_HEIGHT
    return Tile(level, number, min(TILE_WIDTH, nodes - number * TILE_WIDTH))


class TiledTree:
    """A log's tree as its tiles tell it: what a prover asks, from the bytes of tiles."""

    def __init__(self, size: int, read: Callable[[str], bytes]) -> None:
        self._size = size
        self._read = read

    def read_hashes(self, nodes: Sequence[Node]) -> list[Digest]:
        """The hashes of these nodes."""
        return [self._hash(node) for node in nodes]

    def _hash(self, node: Node) -> Digest:
        tile = tile_of(node, self._size)
        hashes = decode_tile(self._read(tile.path), tile.width)
        width = 1 << node.level % TILE_HEIGHT
        first = node.position * width % TILE_WIDTH
        return complete_levels(hashes[first : first + width])[-1][0]


def bundles_between(old_size: int, new_size: int) -> Iterator[Bundle]:
    """The bundles of a log of `new_size` that it did not have at `old_size`."""
    for number in range(old_size // TILE_WIDTH, -(-new_size // TILE_WIDTH)):
        yield Bundle(number, min(TILE_WIDTH, new_size - number * TILE_WIDTH))


def bundle_of(index: int, size: int) -> Bundle:
    """The bundle that holds an entry in a log of this size."""
    if not 0 <= index < size:
        raise InputError(f"index: {index} is not in a log of {size}", field="index")
    number = index // TILE_WIDTH
    return Bundle(number, min(TILE_WIDTH, size - number * TILE_WIDTH))


def encode_tile(hashes: Sequence[Digest]) -> bytes:
    """The bytes of a tile."""
    return b"".join(hashes)


def decode_tile(data: bytes, width: int) -> list[Digest]:
    """The hashes of a tile of this width."""
    if len(data) != width * _DIGEST_BYTES:
        raise InputError(f"tile: {len(data)} bytes are not {width} hashes", field="tile")
    return [Digest(data[at : at + _DIGEST_BYTES]) for at in range(0, len(data), _DIGEST_BYTES)]


def encode_bundle(entries: Sequence[bytes]) -> bytes:
    """The bytes of an entry bundle; every entry has at most 65,535."""
    return b"".join(len(entry).to_bytes(_LENGTH_BYTES, "big") + entry for entry in entries)


def decode_bundle(data: bytes, width: int) -> list[bytes]:
    """The entries of a bundle of this width."""
    entries, at = [], 0
    while at + _LENGTH_BYTES <= len(data):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "big")
        entries.append(data[start:at])
    if at != len(data) or len(entries) != width:
        raise InputError(f"entry bundle: not {width} entries and no more", field="bundle")
    return entries
