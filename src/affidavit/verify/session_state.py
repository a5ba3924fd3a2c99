"""One session as a walk over the log knows it."""

from __future__ import annotations

from affidavit.core.merkle import Digest


class SessionState:
    """Where a session stands at one point of the walk."""

    __slots__ = (
        "_closing_task", "chain_hash", "ended_at", "entry_leaves", "first_index", "last_index",
        "link", "next_seq", "reflects", "sealed_at", "start_index", "thought_leaves",
    )  # fmt: skip

    def __init__(
        self,
        start_index: int,
        chain_hash: str,
        next_seq: int = 0,
        closing_task: str | None = None,
        *,
        whole: bool = True,
    ) -> None:
        self.start_index = start_index
        self.chain_hash = chain_hash
        self.next_seq = next_seq
        self._closing_task = closing_task
        self.ended_at: int | None = None
        self.sealed_at: int | None = None
        self.reflects = False
        self.first_index: int | None = None
        self.last_index: int | None = None
        # Where the session's row says that it ended; True where that was judged already.
        self.link: int | bool | None = True
        # None where the walk does not know all of them; they are read again when a seal comes.
        self.entry_leaves: list[Digest] | None = [] if whole else None
        self.thought_leaves: list[Digest] | None = [] if whole else None

    @property
    def is_open(self) -> bool:
        """Whether it takes records."""
        return self.ended_at is None and self.sealed_at is None

    def add_thought(
        self, leaf: Digest, type_: str, task_id: str, chain_hash: str, index: int
    ) -> None:
        """A record of this session went by."""
        self.chain_hash = chain_hash
        self.next_seq += 1
        self.reflects = type_ == "reflection" and self._closing_task in (None, task_id)
        self.last_index = index
        if self.first_index is None:
            self.first_index = index
        if self.thought_leaves is not None:
            self.thought_leaves.append(leaf)
        self.add_entry(leaf)

    def add_entry(self, leaf: Digest) -> None:
        """An entry that names this session went by."""
        if self.entry_leaves is not None:
            self.entry_leaves.append(leaf)

    def forget_leaves(self) -> None:
        """Give the memory back."""
        self.entry_leaves = self.thought_leaves = None
