"""Checkpoints that an auditor keeps, and proofs of misbehaviour found with them.

    <state>/<hex H(origin)>/pins/<size>-<root, 16 hex>          a note, as it came
    <state>/<hex H(origin)>/evidence/fork-<sizes and roots>.json

Several are kept for one log: each is something that a later history must agree with.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from affidavit.apps import places
from affidavit.apps.durable_files import put_in_place, told
from affidavit.core.checkpoint import UnverifiedCheckpoint, parse_checkpoint
from affidavit.core.misbehaviour import Fork, encode_fork
from affidavit.errors import InputError, StoreError


def kept_pins(origin: str | None = None) -> list[UnverifiedCheckpoint]:
    """The checkpoints kept, of one log or of all, the smallest first."""
    state = places.state_folder()
    folders = "*/pins" if origin is None else f"{_name(origin)}/pins"
    with told(state):
        found = [_read(path) for path in state.glob(f"{folders}/*") if path.suffix != ".new"]
    return sorted(found, key=lambda pin: (pin.claims.size, pin.claims.root))


def _read(path: Path) -> UnverifiedCheckpoint:
    try:
        return parse_checkpoint(path.read_bytes())
    except InputError as error:
        raise StoreError(
            f"the checkpoint kept in {path} is damaged ({error.message})",
            hint="Put it back from a copy, or take it away.",
        ) from None


def keep_pin(found: UnverifiedCheckpoint) -> Path:
    """Keep a checkpoint; it is on disk when this returns."""
    head = found.claims
    path = _folder(head.origin, "pins") / f"{head.size}-{head.root.hex()[:16]}"
    _write(path, found.note.encode())
    return path


def keep_fork(fork: Fork) -> Path:
    """Keep the proof that a log forked, for others to check."""
    older, newer = fork.older.claims, fork.newer.claims
    name = f"fork-{older.size}-{older.root.hex()[:16]}-{newer.size}-{newer.root.hex()[:16]}.json"
    path = _folder(newer.origin, "evidence") / name
    _write(path, encode_fork(fork))
    return path


def _folder(origin: str, name: str) -> Path:
    return places.state_folder() / _name(origin) / name


def _name(origin: str) -> str:
    # An origin may be anything a note says, so only its hash is ever part of a path.
    return sha256(origin.encode()).hexdigest()


def _write(path: Path, data: bytes) -> None:
    with told(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        put_in_place(path, path.with_name(f"{path.name}.new"), data)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
