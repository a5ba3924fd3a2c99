"""A folder in which a log is published: files for everybody to read, each whole or not there.

<folder>/checkpoint, <folder>/tile/...       as core/tile.py says
<folder>/.lock                               held by the process that publishes
<folder>/.new                                what it is writing right now
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from affidavit.apps.durable_files import hold_lock, put_in_place, told
from affidavit.stores.sqlite.files import sync_folder

LOCK_WAIT_S: Final = 60.0
_FOR_EVERYBODY: Final = 0o644


class PublishedFolders:
    """Folders by their paths."""

    @contextmanager
    def hold(self, place: str) -> Iterator[PublishedFolder]:
        """A folder, made where there is none, for this process alone."""
        folder = Path(place).absolute()
        with told(folder):
            _make(folder)
        with hold_lock(folder / ".lock", LOCK_WAIT_S, "publishing"):
            yield PublishedFolder(folder)


class PublishedFolder:
    """One folder while it is held."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder = folder
        self._unsynced: set[Path] = set()

    def read(self, path: str) -> bytes | None:
        """A file, if it is there."""
        with told(self._folder / path):
            try:
                return (self._folder / path).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, path: str, data: bytes) -> None:
        """Put a file in place; one that holds these bytes is only made sure of."""
        target = self._folder / path
        with told(target):
            _make(target.parent)
        if self.read(path) != data:
            put_in_place(target, self._folder / ".new", data, _FOR_EVERYBODY)
        self._unsynced.add(target.parent)

    def remove_partials(self, path: str) -> None:
        """Take away the partial forms of a file that is there as a whole."""
        partials = self._folder / f"{path}.p"
        with told(partials):
            if not partials.is_dir():
                return
            for file in partials.iterdir():
                file.unlink()
            with contextlib.suppress(OSError):  # somebody else's file lies there
                partials.rmdir()

    def sync(self) -> None:
        """Wait until the names of all files written are on disk; their bytes are already."""
        for folder in sorted(self._unsynced):
            with told(folder):
                sync_folder(folder)
        self._unsynced.clear()


def _make(folder: Path) -> None:
    """Make a folder and those above it, and have the disk remember each name."""
    if folder.is_dir():
        return
    _make(folder.parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o755)  # noqa: PTH102 - the folders of `make_folder` are for one user
    sync_folder(folder.parent)
