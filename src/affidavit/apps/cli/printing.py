"""Standard output that fails: said as an error of ours, but for a reader who has gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from affidavit.errors import StoreError


@contextmanager
def printing(what: str, hint: str) -> Iterator[None]:
    """While something is printed; that nobody reads it any more is for the shell to hear."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_stdout()
        raise StoreError(f"{what} cannot be printed ({error.strerror})", hint=hint) from None


@contextmanager
def saying() -> Iterator[None]:
    """While an error is said; where that fails too, the exit code alone says it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        discard_stdout()
        _discard(sys.stderr)


def discard_stdout() -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
