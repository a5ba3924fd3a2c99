"""The kept nodes of the log's tree and of sealed sessions' trees, computed again and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from affidavit.core.merkle import Digest, complete_levels
from affidavit.verify.findings import Findings
from affidavit.verify.ports import LedgerSource, Repairer

TILE_HEIGHT: Final = 8
TILE_WIDTH: Final = 1 << TILE_HEIGHT
_LOG = 0
_PLACE = "merkle_nodes"


class TreeCheck:
    """Follows the leaves of the log and compares each kept node once its subtree is complete."""

    def __init__(self, source: LedgerSource, findings: Findings, repairer: Repairer) -> None:
        self._source = source
        self._findings = findings
        self._repairer = repairer
        self._leaves: list[Digest] = []
        self._full_rows = 0
        self.checked = 0

    def add(self, leaf: Digest) -> None:
        """The next leaf of the log."""
        self._leaves.append(leaf)
        if len(self._leaves) == TILE_WIDTH:
            row, self._leaves = self._leaves, []
            self._check_up(row, self._full_rows)
            self._full_rows += 1

    def _check_up(self, row: Sequence[Digest], position: int) -> None:
        """Compare the node above a full row, and those above while they fill a row too."""
        level = TILE_HEIGHT
        while True:
            self._compare(level, position, complete_levels(row)[-1][0])
            if (position + 1) % TILE_WIDTH:
                return
            first = position + 1 - TILE_WIDTH
            row = [Digest(item) for item in self._source.nodes(_LOG, level, first, position + 1)]
            if len(row) != TILE_WIDTH:
                return  # reported when the missing one was looked for
            level, position = level + TILE_HEIGHT, position // TILE_WIDTH

    def _compare(self, level: int, position: int, must_be: Digest) -> None:
        self.checked += 1
        stored = self._source.nodes(_LOG, level, position, position + 1)
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
        for level, digests in enumerate(levels, start=1):
            self.checked += len(digests)
            stored = self._source.nodes(seal_index, level, 0, len(digests))
            for position, must_be in enumerate(digests) if stored != digests else ():
                if position < len(stored) and stored[position] == must_be:
                    continue
                self._findings.add(
                    "tree_node_bad",
                    seal_index,
                    _PLACE,
                    f"node {level}, {position} of the session sealed here is wrong or missing",
                )
                self._repairer.put_node(seal_index, level, position, must_be)

    def check_strays(self, size: int) -> None:
        """Nodes that belong to no tree."""
        for tree, level, position in self._source.stray_nodes(size):
            self._findings.add(
                "tree_node_bad",
                None,
                _PLACE,
                f"node {level}, {position} of tree {tree} belongs to nothing",
            )
            self._repairer.delete_node(tree, level, position)
