"""Where a session stands at one point of the log, and what a seal claims of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from affidavit.core.merkle import Digest, complete_levels, levels_root


class SessionState:
    """Where a session stands at one point of the walk."""

    __slots__ = (
        "_closing_task", "chain_hash", "closed_at", "entry_leaves", "first_index", "last_index",
        "next_seq", "reflects", "sealed", "thought_leaves",
    )  # fmt: skip

    def __init__(
        self,
        chain_hash: str,
        next_seq: int,
        closing_task: str | None = None,
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
        # None where the walk does not know all of them; they are read again when a seal comes.
        self.entry_leaves: list[Digest] | None = [] if whole else None
        self.thought_leaves: list[Digest] | None = [] if whole else None

    def add_thought(self, leaf: Digest, chain_hash: str, reflects: bool, index: int) -> None:
        """A record of this session went by."""
        self.chain_hash = chain_hash
        self.next_seq += 1
        self.reflects = reflects
        self.last_index = index
        if self.first_index is None:
            self.first_index = index
        if self.thought_leaves is not None:
            self.thought_leaves.append(leaf)
        self.add_entry(leaf)

    def is_closing(self, type_: str, task_id: str) -> bool:
        """Whether a record closes the session: a reflection, in proof grade on its task."""
        return type_ == "reflection" and self._closing_task in (None, task_id)

    def add_entry(self, leaf: Digest) -> None:
        """An entry that names this session went by."""
        if self.entry_leaves is not None:
            self.entry_leaves.append(leaf)

    def forget_leaves(self) -> None:
        """Give the memory back."""
        self.entry_leaves = self.thought_leaves = None

    def close(self, index: int, *, sealed: bool) -> None:
        """The session was sealed or ended."""
        if self.closed_at is None or sealed:
            self.closed_at = index
        self.sealed = self.sealed or sealed


def check_seal(
    body: dict[str, Any],
    state: SessionState,
    thoughts: Sequence[Sequence[Digest]],
    entries: Sequence[Digest],
) -> Iterator[tuple[str, str]]:
    """Every claim of a seal that does not hold; the records come as the levels of their tree."""
    holds = {
        "root": levels_root(thoughts).hex(),
        "record_count": len(thoughts[0]),
        "chain_hash": state.chain_hash,
        "closing_reflection": state.reflects,
        "entries_root": levels_root(complete_levels(entries)).hex(),
        "entry_count": len(entries),
        "first_index": state.first_index,
        "last_index": state.last_index,
    }
    for key, value in holds.items():
        if body[key] != value:
            yield f"seals.{key}", f"{key} is {body[key]!r:.80}, the log gives {value!r:.80}"
