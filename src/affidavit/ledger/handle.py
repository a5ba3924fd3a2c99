"""A handle on a ledger: how calls reach the store, and what it says of itself."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from msgspec import Struct

from affidavit.core.entry import Source
from affidavit.errors import ConflictError, StoreError
from affidavit.ledger import checkpoints, idempotency, served
from affidavit.ledger.context import Context
from affidavit.ledger.inputs import read_id
from affidavit.ledger.moments import find_moment, is_settled, read_as_of
from affidavit.ledger.ports import Reader, Writer

T = TypeVar("T")

# Has one connection for all: reads beside a transaction wait for it too.
_MEMORY: Final = ":memory:"
H = TypeVar("H", bound="Handle")


class Handle:
    """Opened, used and closed: what every call needs."""

    def __init__(
        self,
        context: Context,
        close: Callable[[], None],
        note_write: Callable[[], None] | None = None,
    ) -> None:
        self._open_context: Context | None = context
        self._name = f"{context.store.location} {context.ledger_id}"
        self._close = ExitStack()
        self._close.callback(close)
        self._has_written = False
        # A handle for one call tells the one that was opened.
        self._note_write = note_write or self._set_written
        # Threads inside a transaction of this handle: a write beside it would wait for itself.
        self._inside: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self._name}{'' if self._open_context else ' (closed)'}>"

    @property
    def _context(self) -> Context:
        if self._open_context is None:
            raise StoreError("the ledger is closed", hint="Open it again.")
        return self._open_context

    def close(self) -> None:
        """Close the handle; facts already acknowledged are on disk.

        Where facts came in through it and the ledger has a key, the log is signed first.
        """
        context, self._open_context = self._open_context, None
        with self._close:
            if context is not None and self._has_written:
                context.store.flush()
            if context is not None and context.signs_at_close and self._has_written:
                said = checkpoints.sign_if_keyed(context)
                if said is not None:
                    warnings.warn(said, RuntimeWarning, stacklevel=2)

    @property
    def ledger_id(self) -> str:
        """The id this ledger was created with."""
        return self._context.ledger_id

    @property
    def location(self) -> str:
        """Where the ledger is kept."""
        return self._context.store.location

    @property
    def readonly(self) -> bool:
        """Whether this handle can only read."""
        return self._context.store.readonly

    def __len__(self) -> int:
        """How many entries the log has."""
        return self._read(lambda reader: reader.size())

    def _read(self, ask: Callable[[Reader], T]) -> T:
        if self._inside and self.location == _MEMORY:
            self._check_outside()
        with self._context.store.read() as reader:
            return ask(reader)

    def _write(
        self,
        given: Struct,
        unit: Callable[[Writer], tuple[T, int, int]],
        replay: Callable[[Writer, int, int], T],
        key: str | None,
        *,
        quick: bool = True,
    ) -> T:
        """Run a unit that answers (result, first index, last index), once per idempotency key."""
        if key is not None:
            unit = idempotency.once(
                read_id(key, "idempotency_key"), given, self._context.new_salt(), unit, replay
            )
        return self._run(unit, quick=quick)

    def _commit(self, unit: Callable[[Writer], T]) -> T:
        """Run a unit that is safe to repeat by what it is."""
        return self._run(lambda tx: (unit(tx), -1, -1), quick=True)

    def _run(self, unit: Callable[[Writer], tuple[T, int, int]], *, quick: bool) -> T:
        if self._inside:
            self._check_outside()
        context = self._context
        if context.call is not None:
            unit = served.with_entry(context.call, context.src, unit)
        result, _, _ = context.store.write(unit, context.clock, quick=quick)
        self._note_write()
        return result

    def _set_written(self) -> None:
        self._has_written = True

    def _acting_for(self, src: Source, call: served.ServedCall | None, root: str | None) -> Self:
        context = self._context._replace(src=src, call=call)
        if root is not None:
            context = context._replace(project_root=root)
        return type(self)(context, lambda: None, self._note_write)

    def _leave_entry(self, outcome: str, *, reads: bool) -> None:
        context = self._context
        if context.call is None:
            return
        unit = served.entry_alone(context.call, context.src, outcome, reads=reads)
        write = context.store.write_soon if reads else context.store.write
        write(unit, context.clock)
        self._note_write()

    @contextmanager
    def _within(self, *, waits: bool) -> Iterator[None]:
        """This thread is inside a transaction, for which writes beside it wait."""
        self._check_outside()
        if not (waits or self.location == _MEMORY):
            yield
            return
        own = threading.get_ident()
        self._inside.add(own)
        try:
            yield
        finally:
            self._inside.discard(own)

    def _check_outside(self) -> None:
        if threading.get_ident() in self._inside:
            raise ConflictError(
                "this thread is inside a transaction of this ledger",
                code="ERR_TRANSACTION_OPEN",
                hint="Call the transaction, not the ledger, or end it first.",
            )

    def check_writable(self) -> None:
        """Refuse as a write would be refused now; nothing is written."""
        self._context.store.write(lambda tx: tx.size(), self._context.clock)

    def _read_at(self, as_of: Any, as_of_index: Any, ask: Callable[[Reader, int | None], T]) -> T:
        """Ask what held at a moment of the ledger's axis."""
        wanted, index = read_as_of(as_of, as_of_index)
        clock = self._context.clock
        return self._read(lambda reader: ask(reader, find_moment(reader, wanted, index, clock)))

    def _glance(self, as_of: Any, as_of_index: Any, ask: Callable[[Reader, int | None], T]) -> T:
        """The same for one thing by its key, whose rows never change once they are there."""
        if as_of_index is not None or as_of == "NOW" or self._inside:
            return self._read_at(as_of, as_of_index, ask)
        wanted = None if as_of is None else read_as_of(as_of)[0]
        moment = wanted if isinstance(wanted, int) else None
        return self._context.store.glance(lambda reader: ask(reader, moment))

    def settled(self, as_of: Any = None, *, as_of_index: int | None = None) -> bool:
        """Whether an entry later than a moment is committed: answers as of it never change."""
        return self._read_at(as_of, as_of_index, is_settled)

    def describe(self) -> dict[str, Any]:
        """Facts about this ledger for a person: where it is, how large, what clock it runs on."""
        size, last_at = self._read(lambda reader: (reader.size(), reader.last_at()))
        return {
            "ledger_id": self.ledger_id,
            "entries": size,
            "readonly": self.readonly,
            "clock_ahead_us": max(0, last_at - self._context.clock()),
            **self._context.store.describe(),
        }


def acting_for(
    handle: H,
    src: Source,
    call: served.ServedCall | None = None,
    project_root: str | None = None,
) -> H:
    """The same ledger for one call that came in another way; it needs no closing."""
    return handle._acting_for(src, call, project_root)  # noqa: SLF001 - not for everybody


def leave_entry(handle: Handle, outcome: str, *, reads: bool) -> None:
    """Record what became of the call a handle is for, where no unit of its own has done it."""
    handle._leave_entry(outcome, reads=reads)  # noqa: SLF001 - for servers, not for everybody
