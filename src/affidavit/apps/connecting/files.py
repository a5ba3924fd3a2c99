"""Changing files of others so that it can be undone: planned as a whole, backed up, put in place.

Beside what is remembered of each change lies the text that was there before: a file that nobody
touched since gets it back byte for byte, any other only loses what we put in.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from affidavit.apps.connecting.claude_code import Place, Wanted
from affidavit.apps.durable_files import put_in_place, told
from affidavit.errors import InputError


class Change(NamedTuple):
    """What a file holds, and what it is to hold; None where there is, or will be, no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    def diff(self) -> list[str]:
        """The difference, for a person."""
        old, new = ((data or b"").decode().splitlines() for data in (self.before, self.after))
        return list(difflib.unified_diff(old, new, str(self.path), str(self.path), lineterm=""))


def plan_connecting(places: Sequence[Place], wanted: Wanted) -> list[Change]:
    """What has to change; refused as a whole where one file cannot be understood."""
    changes = []
    for place in places:
        before, text = _read(place.path)
        after = _told(place.path, place.add, text, wanted).encode()
        if after != before:
            changes.append(Change(place.path, before, after))
    return changes


def plan_disconnecting(places: Sequence[Place], backups: Path) -> list[Change]:
    """What has to change for every file to be as if we had never been there."""
    changes = []
    for place in places:
        before, text = _read(place.path)
        kept = _backup(backups, place.path)
        if before is not None and kept is not None and kept[0] == _digest(before):
            after = kept[1]
        else:
            after = None if before is None else _told(place.path, place.take_out, text).encode()
        if after != before:
            changes.append(Change(place.path, before, after))
    return changes


def carry_out(changes: Sequence[Change], backups: Path | None) -> None:
    """Put every file in place; with backups, so that it can be undone."""
    if backups is not None:
        with told(backups):
            backups.mkdir(0o700, parents=True, exist_ok=True)
        for change in changes:
            _keep(backups, change)
    for change in changes:
        with told(change.path):
            if change.after is None:
                change.path.unlink()
                continue
            change.path.parent.mkdir(parents=True, exist_ok=True)
            mode = change.path.stat().st_mode & 0o777 if change.path.exists() else 0o600
        target = change.path.resolve()
        put_in_place(target, target.with_name(f".{target.name}.affidavit"), change.after, mode)


def forget(places: Sequence[Place], backups: Path) -> None:
    """Nothing is connected any more: what was kept to undo it goes."""
    for place in places:
        if _has_made_folder(backups, place.path):
            with contextlib.suppress(OSError):  # something else is in it
                place.path.parent.rmdir()
        for suffix in (".json", ".before"):
            (backups / f"{_name(place.path)}{suffix}").unlink(missing_ok=True)


def _keep(backups: Path, change: Change) -> None:
    """The text of before our first change stays the one that comes back."""
    kept = _backup(backups, change.path)
    ours = kept is not None and change.before is not None and kept[0] == _digest(change.before)
    before = kept[1] if ours and kept is not None else change.before
    about = {"path": str(change.path), "was": before is not None}
    about["ours"] = _digest(change.after or b"")
    about["made"] = not change.path.parent.exists() or _has_made_folder(backups, change.path)
    name = _name(change.path)
    for suffix, data in ((".before", before or b""), (".json", json.dumps(about).encode())):
        put_in_place(backups / f"{name}{suffix}", backups / f"{name}{suffix}.part", data)


def _backup(backups: Path, path: Path) -> tuple[str, bytes | None] | None:
    """The digest of what we wrote, and what was there before."""
    try:
        about = json.loads((backups / f"{_name(path)}.json").read_text(encoding="utf-8"))
        before = (backups / f"{_name(path)}.before").read_bytes()
    except (OSError, ValueError):
        return None
    return str(about["ours"]), before if about["was"] else None


def _has_made_folder(backups: Path, path: Path) -> bool:
    """Whether the folder of a file was not there before us."""
    try:
        about = json.loads((backups / f"{_name(path)}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(about.get("made"))


def _name(path: Path) -> str:
    return _digest(str(path.absolute()).encode())[:16]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(path: Path) -> tuple[bytes | None, str]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        raise _refused(path, f"it cannot be read ({error.strerror})") from None
    try:
        return data, data.decode()
    except UnicodeDecodeError:
        raise _refused(path, "it is not UTF-8") from None


def _told(path: Path, change: Callable[..., str], *given: object) -> str:
    try:
        return change(*given)
    except InputError as error:
        raise _refused(path, error.message) from None


def _refused(path: Path, why: str) -> InputError:
    return InputError(
        f"{path} is left as it is: {why}",
        hint="Put the file in order, or move it away, then call again. Nothing was changed.",
        field="settings",
    )
