"""What a verifier asks of a ledger, and how a rebuild puts its views right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from affidavit.core.merkle import Digest
from affidavit.core.views import View
from affidavit.verify.session_state import SessionState

# A row as a verifier reads it: the columns in order; bytes that are no text hold surrogates.
RawRow = tuple[Any, ...]


class Stretch(NamedTuple):
    """Neighbouring entries, `end` not included; the last stretch of a log is open."""

    start: int
    end: int | None


WHOLE: Final = Stretch(0, None)


class LedgerSource(Protocol):
    """One snapshot of a ledger as a verifier reads it, whatever its columns hold."""

    def size(self) -> int: ...
    def unreadable_tables(self) -> list[str]: ...
    def log(self, stretch: Stretch = ...) -> Iterator[tuple[int, bytes, bytes]]: ...
    def entry(self, index: int) -> bytes | None: ...
    def rows(self, table: str, stretch: Stretch = ...) -> Iterator[RawRow]: ...
    def chain(
        self, *, task_id: str | None, session_id: str | None
    ) -> Iterator[tuple[bytes | None, RawRow]]: ...
    def task_ids(self) -> list[str]: ...
    def session_ids(self) -> list[str]: ...
    def task_hash_before(self, task_id: str, index: int) -> str | None: ...
    def session_before(self, session_id: str, index: int) -> SessionState | None: ...
    def session_leaves(
        self, session_id: str, end: int, *, thoughts: bool, scan: bool
    ) -> list[Digest]: ...
    def seal_of(self, session_id: str) -> RawRow | None: ...
    def session_start(self, session_id: str) -> RawRow | None: ...
    def version_before(self, view: View, name: tuple[str, ...], index: int) -> RawRow | None: ...
    def nodes(self, tree: int, level: int, start: int, end: int) -> list[bytes]: ...
    def tree_nodes(self, tree: int) -> Iterator[tuple[int, int, bytes]]: ...
    def stray_nodes(self, size: int) -> Iterator[tuple[int, int, int]]: ...
    def newest_remembered(self) -> int: ...
    def schema_differences(self) -> list[str]: ...


class Repairer(Protocol):
    """How a rebuild puts rows right."""

    def put_row(self, row: Any) -> None: ...
    def put_links(self, table: str, index: int, links: Mapping[str, Any]) -> None: ...
    def delete_row(self, table: str, index: int) -> None: ...
    def put_node(self, tree: int, level: int, position: int, digest: Digest) -> None: ...
    def delete_node(self, tree: int, level: int, position: int) -> None: ...


class LeaveAlone:
    """The repairer of a verifier: it only looks."""

    def put_row(self, row: Any) -> None:
        """Leave the row as it is."""

    def put_links(self, table: str, index: int, links: Mapping[str, Any]) -> None:
        """Leave the row as it is."""

    def delete_row(self, table: str, index: int) -> None:
        """Leave the row as it is."""

    def put_node(self, tree: int, level: int, position: int, digest: Digest) -> None:
        """Leave the node as it is."""

    def delete_node(self, tree: int, level: int, position: int) -> None:
        """Leave the node as it is."""
