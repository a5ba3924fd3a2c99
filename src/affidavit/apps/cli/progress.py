"""How far something long has come, for somebody who watches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def shown(doing: str) -> Iterator[_Bar | None]:
    """A progress bar where somebody sees it, gone afterwards."""
    bar = _Bar(doing) if sys.stderr.isatty() else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.clear()


class _Bar:
    """A progress bar on a terminal's stderr."""

    _WIDTH = 40

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._shown = -1

    def __call__(self, done: int, size: int) -> None:
        """Draw it again where it has moved."""
        percent = 100 * done // max(size, 1)
        if percent == self._shown:
            return
        self._shown = percent
        full = self._WIDTH * percent // 100
        bar = "#" * full + "." * (self._WIDTH - full)
        print(f"\r{self._doing} [{bar}] {percent:3d}%", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take it away again."""
        if self._shown >= 0:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
