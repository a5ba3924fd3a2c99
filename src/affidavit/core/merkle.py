r"""RFC 6962 trees: hashes, frontiers, inclusion and consistency proofs.

    leaf = H(0x00 || entry)      node = H(0x01 || left || right)      root of nothing = H("")

A node is named by its level (0 is a leaf) and its position in that level; only nodes whose subtree
is complete exist. A prover asks a `TreeReader` for all the nodes it needs in one call and never
reads storage itself. Checks follow RFC 9162, 2.1.3.2 and 2.1.4.2.

    >>> frontier = Frontier()
    >>> for entry in (b"", b"\x00"): frontier.add(leaf_hash(entry))
    >>> frontier.root().hex()[:8]
    'fac54203'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple, NewType, Protocol

from affidavit.errors import InputError, IntegrityViolation

Digest = NewType("Digest", bytes)

EMPTY_ROOT: Final = Digest(sha256(b"").digest())


class Node(NamedTuple):
    """A complete subtree of 2**level leaves; the position counts such subtrees from the left."""

    level: int
    position: int


class TreeReader(Protocol):
    """The only thing a prover asks of storage."""

    def read_hashes(self, nodes: Sequence[Node]) -> Sequence[Digest]:
        """The hashes of these nodes, in this order."""
        ...


def leaf_hash(entry: bytes) -> Digest:
    """The hash of an entry."""
    return Digest(sha256(b"\x00" + entry).digest())


def node_hash(left: bytes, right: bytes) -> Digest:
    """The hash of two subtrees."""
    return Digest(sha256(b"\x01" + left + right).digest())


class Frontier:
    """The right edge of a growing tree: enough to add leaves and to know the root."""

    __slots__ = ("_edge", "size")

    def __init__(self) -> None:
        self.size = 0
        self._edge: list[Digest] = []

    def add(self, leaf: Digest) -> None:
        """Append one leaf."""
        edge = self._edge
        size = self.size
        while size & 1:
            leaf = node_hash(edge.pop(), leaf)
            size >>= 1
        edge.append(leaf)
        self.size += 1

    def root(self) -> Digest:
        """The root over all leaves added so far."""
        return fold_right(self._edge)


def fold_right(hashes: Sequence[Digest]) -> Digest:
    """The root over complete subtrees from left to right, each smaller than the one before."""
    if not hashes:
        return EMPTY_ROOT
    root = hashes[-1]
    for left in reversed(hashes[:-1]):
        root = node_hash(left, root)
    return root


def tree_root(leaves: Iterable[Digest]) -> Digest:
    """The root over these leaves."""
    frontier = Frontier()
    for leaf in leaves:
        frontier.add(leaf)
    return frontier.root()


def complete_levels(leaves: Sequence[Digest]) -> list[list[Digest]]:
    """Every node of these leaves whose subtree is complete, level by level, the leaves first."""
    levels = [list(leaves)]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = zip(below[::2], below[1::2], strict=False)
        # Inlined node_hash: this line hashes every entry of a ledger being verified.
        levels.append([sha256(b"\x01" + left + right).digest() for left, right in pairs])  # type: ignore[misc]
    return levels


def levels_root(levels: Sequence[Sequence[Digest]]) -> Digest:
    """The root over the leaves that `complete_levels` started from."""
    size = len(levels[0])
    return fold_right([levels[node.level][node.position] for node in cover(0, size)])


class LeafTree:
    """A tree whose leaves are all at hand, such as that of a session."""

    def __init__(self, leaves: Sequence[Digest]) -> None:
        self._levels = complete_levels(leaves)

    def read_hashes(self, nodes: Sequence[Node]) -> list[Digest]:
        """The hashes of these nodes."""
        return [self._levels[level][position] for level, position in nodes]


def cover(start: int, end: int) -> list[Node]:
    """The largest complete subtrees that together are the leaves `start` to `end`, left to right.

    `start` must be a multiple of the largest power of two below `end - start`, as it is for every
    range a proof speaks of.
    """
    nodes = []
    while start < end:
        level = (end - start).bit_length() - 1
        nodes.append(Node(level, start >> level))
        start += 1 << level
    return nodes


def _split(size: int) -> int:
    """The largest power of two smaller than `size`."""
    return 1 << (size - 1).bit_length() - 1


def _read_ranges(ranges: list[tuple[int, int]], reader: TreeReader) -> list[Digest]:
    covers = [cover(start, end) for start, end in ranges]
    hashes = iter(reader.read_hashes([node for nodes in covers for node in nodes]))
    return [fold_right([next(hashes) for _ in nodes]) for nodes in covers]


def read_root(size: int, reader: TreeReader) -> Digest:
    """The root of the first `size` leaves."""
    return _read_ranges([(0, size)], reader)[0]


def prove_inclusion(index: int, size: int, reader: TreeReader) -> list[Digest]:
    """The audit path of leaf `index` in the tree of `size` leaves (RFC 9162 2.1.3.1)."""
    if not 0 <= index < size:
        raise InputError(f"index: {index} is not in a tree of {size}", field="index")
    start, end = 0, size
    ranges = []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start = middle
    return _read_ranges(ranges[::-1], reader)


def prove_consistency(old_size: int, new_size: int, reader: TreeReader) -> list[Digest]:
    """That the first tree is a prefix of the second (RFC 9162 2.1.4.1)."""
    if not 0 < old_size <= new_size:
        raise InputError(f"old_size: {old_size} is not between 1 and {new_size}", field="old_size")
    start, end, whole = 0, new_size, True
    ranges = []
    while end != old_size:
        middle = start + _split(end - start)
        if old_size <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start, whole = middle, False
    if not whole:
        ranges.append((start, end))
    return _read_ranges(ranges[::-1], reader)


def check_inclusion(
    index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes
) -> None:
    """That `leaf` is at `index` of the tree of `size` leaves with this root (RFC 9162 2.1.3.2)."""
    _check_lengths([leaf, root, *proof])
    if not 0 <= index < size:
        raise IntegrityViolation(f"index {index} is not in a tree of {size}")
    fn, sn, digest = index, size - 1, Digest(leaf)
    for sibling in proof:
        if sn == 0:
            raise IntegrityViolation("the inclusion proof is too long")
        if fn & 1 or fn == sn:
            digest = node_hash(sibling, digest)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            digest = node_hash(digest, sibling)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise IntegrityViolation("the inclusion proof is too short")
    _check_equal(digest, root, "the inclusion proof leads to another root")


def check_consistency(
    old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """That the tree with `old_root` is a prefix of the one with `new_root` (RFC 9162 2.1.4.2)."""
    if not 0 < old_size <= new_size:
        raise IntegrityViolation(f"old size {old_size} is not between 1 and {new_size}")
    if old_size == new_size:
        if proof:
            raise IntegrityViolation("trees of one size need no consistency proof, one was given")
        _check_equal(old_root, new_root, "the two trees have one size but different roots")
        return
    _check_lengths([old_root, new_root, *proof])
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)
    if not path:
        raise IntegrityViolation("the consistency proof is empty")
    old, new = _fold_consistency(old_size, new_size, path)
    _check_equal(old, old_root, "the consistency proof leads to another old root")
    _check_equal(new, new_root, "the consistency proof leads to another new root")


def _fold_consistency(old_size: int, new_size: int, path: Sequence[bytes]) -> tuple[bytes, bytes]:
    fn, sn = old_size - 1, new_size - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    old = new = path[0]
    for sibling in path[1:]:
        if sn == 0:
            raise IntegrityViolation("the consistency proof is too long")
        if fn & 1 or fn == sn:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            new = node_hash(new, sibling)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise IntegrityViolation("the consistency proof is too short")
    return old, new


def _check_lengths(digests: Sequence[bytes]) -> None:
    for digest in digests:
        if len(digest) != 32:
            raise IntegrityViolation(f"a hash has {len(digest)} bytes, not 32")


def _check_equal(computed: bytes, expected: bytes, message: str) -> None:
    if computed != expected:
        raise IntegrityViolation(message, computed=computed.hex(), expected=expected.hex())
