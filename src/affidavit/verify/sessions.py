"""Where a session stands at one point of the log, and what a seal claims of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from affidavit.core.merkle import Digest, Frontier, tree_root

# Leaves kept for one session; a longer one is read again from the log when its seal comes.
_LEAVES_MAX: Final = 65_536


class SessionState:
    """Where a session stands at one point of the walk."""

    __slots__ = (
        "_closing_task", "_leaves", "chain_hash", "closed_at", "entries", "first_index",
        "last_index", "next_seq", "reflects", "sealed",
    )  # fmt: skip

    def __init__(
        self,
        chain_hash: bytes,
        next_seq: int,
        closing_task: bytes | None = None,
        *,
        whole: bool = True,
    ) -> None:
        self.chain_hash = chain_hash
        self.next_seq = next_seq
        self._closing_task = closing_task
        self.closed_at: int | None = None
        self.sealed = False
        self.reflects = False
        self.first_index: int | None = None
        self.last_index: int | None = None
        # None once the walk has not seen this session from its start.
        self.entries: Frontier | None = Frontier() if whole else None
        self._leaves: list[Digest] | None = [] if whole else None

    def add_thought(self, leaf: Digest, chain_hash: bytes, reflects: bool, index: int) -> None:
        """A record of this session went by."""
        self.chain_hash = chain_hash
        self.next_seq += 1
        self.reflects = reflects
        self.last_index = index
        if self.first_index is None:
            self.first_index = index
        if self._leaves is not None:
            self._leaves.append(leaf)
            if len(self._leaves) > _LEAVES_MAX:
                self._leaves = None
        if self.entries is not None:
            self.entries.add(leaf)

    def is_closing(self, type_: bytes, task_id: bytes) -> bool:
        """Whether a record closes the session: a reflection, in proof grade on its task."""
        return type_ == b"reflection" and self._closing_task in (None, task_id)

    def add_entry(self, leaf: Digest) -> None:
        """Another entry naming this session went by."""
        if self.entries is not None:
            self.entries.add(leaf)

    def close(self, index: int, *, sealed: bool) -> None:
        """The session was sealed or ended."""
        if self.closed_at is None or sealed:
            self.closed_at = index
        self.sealed = self.sealed or sealed

    def leaves_or(self, read: Callable[[], Sequence[Digest]]) -> Sequence[Digest]:
        """The leaves of all its records, kept or read again."""
        return read() if self._leaves is None else self._leaves


def check_seal(
    body: dict[str, Any], state: SessionState, leaves: Sequence[Digest], entries: Frontier
) -> Iterator[tuple[str, str]]:
    """Every claim of a seal that does not hold: its place and a sentence."""
    holds = {
        "root": tree_root(leaves).hex(),
        "record_count": len(leaves),
        "chain_hash": state.chain_hash.decode(),
        "closing_reflection": state.reflects,
        "entries_root": entries.root().hex(),
        "entry_count": entries.size,
        "first_index": state.first_index,
        "last_index": state.last_index,
    }
    for key, value in holds.items():
        if body[key] != value:
            yield f"seals.{key}", f"{key} is {body[key]!r:.80}, the log gives {value!r:.80}"
