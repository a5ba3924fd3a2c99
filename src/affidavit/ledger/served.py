"""What a server leaves of each call that reaches it: one entry, `call.finished` or `call.failed`.

The entry of a call that writes is part of the call's own unit, so that both are durable at once or
not at all. A refused call is a unit of its own. A call that only reads waits for no disk: its entry
goes with the next commit, a second later at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from affidavit.core.entry import Entry, Source, commitment, encode_call
from affidavit.core.views.calls import call_row
from affidavit.core.views.payload import NO_PAYLOAD, Payload
from affidavit.ledger.ports import Writer
from affidavit.ledger.settings import setting

T = TypeVar("T")

FINISHED: Final = "ok"


class ServedCall(NamedTuple):
    """One call a server answers; its entry says no more of the arguments than a salted digest."""

    tool: str
    caller: str | None
    args_sha256: str | None
    salt: bytes
    elapsed_us: Callable[[], int]


def with_entry(
    call: ServedCall, src: Source, unit: Callable[[Writer], tuple[T, int, int]]
) -> Callable[[Writer], tuple[T, int, int]]:
    """A unit that ends with the entry of the call that asked for it."""

    def run(tx: Writer) -> tuple[T, int, int]:
        first = tx.size()
        answer = unit(tx)
        _write(tx, call, src, FINISHED, call.elapsed_us(), (first, tx.size() - 1))
        return answer

    return run


def entry_alone(
    call: ServedCall, src: Source, outcome: str, *, reads: bool
) -> Callable[[Writer], None]:
    """A unit that is nothing but the entry of a call; a setting may leave out those that read."""
    took_us = call.elapsed_us()

    def run(tx: Writer) -> None:
        if not reads or setting(tx, "audit_reads"):
            _write(tx, call, src, outcome, took_us, (0, -1))

    return run


def _write(
    tx: Writer, call: ServedCall, src: Source, outcome: str, took_us: int, wrote: tuple[int, int]
) -> None:
    first, last = wrote if wrote[0] <= wrote[1] else (None, None)
    digest = NO_PAYLOAD if call.args_sha256 is None else Payload(call.args_sha256, call.salt)
    body = {
        "tool": call.tool,
        "caller": call.caller,
        "duration_us": took_us,
        "outcome": outcome,
        "args_sha256": commitment(call.salt, digest.text) if digest.text else None,
        "first_index": first,
        "last_index": last,
    }
    kind = "call.finished" if outcome == FINISHED else "call.failed"
    entry = Entry(tx.at, kind, body, src)
    tx.append(encode_call(entry), call_row(tx.size(), entry, digest))
