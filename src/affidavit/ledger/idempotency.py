"""Safe retries: a key stands for one call, and repeats its answer.

What is kept is where the facts of the first call lie, and a salted digest of its input; the answer
is read from the log again, so that no second copy of a text exists.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

import msgspec
from msgspec import Struct

from affidavit.errors import ConflictError
from affidavit.ledger.ports import KeyUse, Writer

T = TypeVar("T")

Unit = Callable[[Writer], tuple[T, int, int]]


def once(
    key: str,
    given: Struct,
    salt: bytes,
    unit: Unit[T],
    replay: Callable[[Writer, int, int], T],
) -> Unit[T]:
    """The unit, run only if its key is new; else the first answer again."""
    operation = type(given).__name__.lstrip("_")
    text = msgspec.json.encode(given)

    def run(tx: Writer) -> tuple[T, int, int]:
        used = tx.find_key(key)
        if used is not None:
            if used.operation != operation or used.input_digest != _digest(used.salt, text):
                raise ConflictError(
                    "this idempotency_key was used for another call",
                    code="ERR_IDEMPOTENCY_MISMATCH",
                    hint="Use a fresh key for a new call; repeat a call with exactly its input.",
                )
            return replay(tx, used.first_index, used.last_index), used.first_index, used.last_index
        result, first, last = unit(tx)
        tx.add_key(key, KeyUse(operation, salt, _digest(salt, text), first, last))
        return result, first, last

    return run


def _digest(salt: bytes, text: bytes) -> bytes:
    return sha256(salt + text).digest()
