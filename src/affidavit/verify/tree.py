"""The kept nodes of the log's tree and of sealed sessions' trees, computed again and compared."""

from __future__ import annotations

from collections.abc import Sequence

from affidavit.core.merkle import Digest, complete_levels
from affidavit.core.tile import TILE_HEIGHT, TILE_WIDTH
from affidavit.verify.damage import Damage
from affidavit.verify.findings import Findings
from affidavit.verify.ports import WHOLE, LedgerSource, Repairer, Stretch

_LOG = 0
_PLACE = "merkle_nodes"


class TreeCheck:
    """Follows the leaves of the log and compares each kept node once its subtree is complete.

    What stands above a missing entry cannot be computed and is not judged: the gap is told already.
    """

    def __init__(
        self, source: LedgerSource, findings: Findings, repairer: Repairer, stretch: Stretch
    ) -> None:
        self._source = source
        self._findings = findings
        self._repairer = repairer
        self._tile = stretch.start >> TILE_HEIGHT
        self._is_whole = stretch == WHOLE
        self._leaves: list[Digest] = []
        # Leaves of entries whose kept hash says otherwise: which of the two is right is not known.
        self._doubts: dict[int, Digest] = {}
        # By level, the computed nodes below the next one up, by position.
        self._below: dict[int, dict[int, Digest]] = {}
        self.checked = 0

    def add(self, index: int, leaf: Digest, otherwise: Digest | None = None) -> None:
        """The next leaf of the log, and what else it may be."""
        if index >> TILE_HEIGHT != self._tile:
            self._start_tile(index >> TILE_HEIGHT)
        if otherwise is not None:
            self._doubts[len(self._leaves)] = otherwise
        self._leaves.append(leaf)
        if len(self._leaves) == TILE_WIDTH:
            self._check_up(TILE_HEIGHT, self._tile, self._top())
            self._start_tile(self._tile + 1)

    def _start_tile(self, tile: int) -> None:
        self._tile, self._leaves, self._doubts = tile, [], {}

    def _top(self) -> Digest:
        top = complete_levels(self._leaves)[-1][0]
        if self._doubts and self._stored(TILE_HEIGHT, self._tile) != [top]:
            leaves = [self._doubts.get(n, leaf) for n, leaf in enumerate(self._leaves)]
            other = complete_levels(leaves)[-1][0]
            if self._stored(TILE_HEIGHT, self._tile) == [other]:
                return other
        return top

    def _check_up(self, level: int, position: int, node: Digest) -> None:
        """Compare a node, and those above it while they are complete too."""
        while True:
            self._compare(level, position, node)
            first = position - position % TILE_WIDTH
            below = self._below.setdefault(level, {})
            if first not in below:
                below.clear()
            below[position] = node
            if len(below) != TILE_WIDTH or not self._is_whole:
                return  # what stands above a part of the log is for `check_above`
            node = complete_levels([below[n] for n in range(first, first + TILE_WIDTH)])[-1][0]
            below.clear()
            level, position = level + TILE_HEIGHT, position // TILE_WIDTH

    def check_above(self, size: int) -> None:
        """The levels above tiles that were checked by others, part by part."""
        level = TILE_HEIGHT
        while size >> level + TILE_HEIGHT:
            for position in range(size >> level + TILE_HEIGHT):
                first = position * TILE_WIDTH
                below = self._source.nodes(_LOG, level, first, first + TILE_WIDTH)
                top = complete_levels([Digest(node) for node in below])[-1][0]
                self._compare(level + TILE_HEIGHT, position, top)
            level += TILE_HEIGHT

    def _stored(self, level: int, position: int) -> list[bytes]:
        return self._source.nodes(_LOG, level, position, position + 1)

    def _compare(self, level: int, position: int, must_be: Digest) -> None:
        self.checked += 1
        stored = self._stored(level, position)
        if stored == [must_be]:
            return
        index = ((position + 1) << level) - 1
        wrong = "is not the hash of its leaves" if stored else "is missing"
        self._findings.add(
            "tree_node_bad", index, _PLACE, f"the log's node {level}, {position} {wrong}"
        )
        self._repairer.put_node(_LOG, level, position, must_be)

    def check_session(self, seal_index: int, levels: Sequence[Sequence[Digest]]) -> None:
        """The nodes kept for the session sealed at an entry, given its levels above the leaves."""
        expected = {
            (level, position): digest
            for level, digests in enumerate(levels, start=1)
            for position, digest in enumerate(digests)
        }
        self.checked += len(expected)
        for level, position, digest in self._source.tree_nodes(seal_index):
            if (must_be := expected.pop((level, position), None)) is None:
                self._say_session(seal_index, level, position, "belongs to nothing")
                self._repairer.delete_node(seal_index, level, position)
            elif must_be != digest:
                self._say_session(seal_index, level, position, "is not the hash of its leaves")
                self._repairer.put_node(seal_index, level, position, must_be)
        for (level, position), must_be in expected.items():
            self._say_session(seal_index, level, position, "is missing")
            self._repairer.put_node(seal_index, level, position, must_be)

    def _say_session(self, seal_index: int, level: int, position: int, wrong: str) -> None:
        said = f"node {level}, {position} of the session sealed here {wrong}"
        self._findings.add("tree_node_bad", seal_index, _PLACE, said)

    def check_strays(self, size: int, damage: Damage) -> None:
        """Nodes that belong to no tree."""
        for tree, level, position in self._source.stray_nodes(size):
            if tree != _LOG and (damage.is_damaged(tree) or damage.is_missing(tree)):
                continue  # the seal they may belong to cannot be read
            said = f"node {level}, {position} of tree {tree} belongs to nothing"
            self._findings.add("tree_node_bad", None, _PLACE, said)
            self._repairer.delete_node(tree, level, position)
