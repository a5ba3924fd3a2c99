"""Which Claude Code is installed: asked of the program itself, where it is found."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Final

_WAIT_S: Final = 10.0
_NUMBERS: Final = re.compile(r"\b(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b", re.ASCII)


def find_version() -> tuple[int, ...] | None:
    """The version that `claude --version` says; None where nobody answers."""
    program = shutil.which("claude")
    if program is None:
        return None
    try:
        ran = subprocess.run(  # noqa: S603 - the client that is to be connected
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WAIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _NUMBERS.search(ran.stdout.decode("utf-8", "replace"))
    return None if found is None else tuple(int(number) for number in found.groups())


def write_version(version: tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))
