"""What signing keeps on this machine, outside of every ledger: keys, and guards.

    <keys>/<hex H(origin)>.<key ID>.key          a signing key, mode 0600, made with O_EXCL
    <state>/<hex H(origin)>/checkpoint           the guard: the newest note signed here
    <state>/<hex H(origin)>/lock                 held by the process that signs
    <state>/<hex H(origin)>/evidence/            what was refused, and why

An origin may be anything a ledger says, so only its hash is ever part of a path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from affidavit.apps.durable_files import hold_lock, put_in_place, refused, told, write_whole
from affidavit.core.checkpoint import TreeHead, sign_checkpoint
from affidavit.core.note import SigningKey, VerifierKey, parse_signing_key
from affidavit.errors import StoreError
from affidavit.ledger.ports import ProveGrowth
from affidavit.stores.sqlite.files import make_folder, sync_folder

LOCK_WAIT_S: Final = 60.0
# A caller who only wants his session sealed does not wait for who was stopped while signing.
HURRY_S: Final = 2.0
EVIDENCE_MAX: Final = 1_000


class KeyFolder:
    """The signing keys of this user."""

    def __init__(self, find_folder: Callable[[], Path], new_secret: Callable[[], bytes]) -> None:
        self._find_folder = find_folder
        self._new_secret = new_secret

    def has(self, key: VerifierKey) -> bool:
        """Whether the secret of a key is here and may be read."""
        return self._find(key) is not None

    def _find(self, key: VerifierKey) -> SigningKey | None:
        path = self._path(key)
        try:
            found = parse_signing_key(path.read_text(encoding="utf-8").removesuffix("\n"))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None
        except OSError as error:
            raise refused(path, error) from None
        except ValueError:  # no text, or not a key: an InputError is one too
            raise StoreError(
                f"{path} is not a signing key", hint="Put it back from a copy, or take it away."
            ) from None
        return found if found.verifier == key else None

    def make(self, origin: str) -> VerifierKey:
        """A new key; it is on disk when this returns."""
        key = SigningKey(origin, self._new_secret())
        path = self._path(key.verifier)
        with told(path):
            make_folder(path.parent)
            write_whole(path, f"{key.encode()}\n".encode(), os.O_EXCL)
            sync_folder(path.parent)
        return key.verifier

    def count(self, origin: str | None = None) -> int:
        """How many keys there are, for an origin or for all."""
        folder = self._find_folder()
        with told(folder):
            return sum(1 for _ in folder.glob(f"{_hash(origin) if origin else '*'}.*.key"))

    def sign(self, head: TreeHead, keys: Sequence[VerifierKey], prove: ProveGrowth) -> bytes:
        """The checkpoint with a signature by each of these keys."""
        del prove  # the guard has seen that the log only grew
        return sign_checkpoint(head, [key for key in map(self._find, keys) if key is not None])

    def _path(self, key: VerifierKey) -> Path:
        return self._find_folder() / f"{_hash(key.name)}.{key.id.hex()}.key"


class GuardFolder:
    """The guards of this user, one for each origin."""

    def __init__(self, find_folder: Callable[[], Path]) -> None:
        self._find_folder = find_folder

    def look(self, origin: str) -> bytes | None:
        """The newest note signed here, without waiting for who is signing."""
        return Guard(self._find_folder() / _hash(origin)).read()

    @contextmanager
    def hold(self, origin: str, *, patient: bool = True) -> Iterator[Guard]:
        """The guard of an origin, for this process alone."""
        folder = self._find_folder() / _hash(origin)
        with told(folder):
            make_folder(folder)
        with hold_lock(folder / "lock", LOCK_WAIT_S if patient else HURRY_S, "signing"):
            yield Guard(folder)


class Guard:
    """A guard while it is held."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "checkpoint"

    def read(self) -> bytes | None:
        """The newest note signed here."""
        with told(self._path):
            try:
                return self._path.read_bytes()
            except FileNotFoundError:
                return None

    def write(self, note: bytes) -> None:
        """Remember a note; a power cut leaves the one before it or this one."""
        _replace(self._path, note)

    def keep_evidence(self, name: str, data: bytes) -> str:
        """Keep what shows that a history was replaced; the same again is kept once."""
        place = self._path.parent / "evidence" / name
        with told(place):
            make_folder(place.parent)
            # Whoever may ask for signatures must not fill the disk with refusals.
            if not place.exists() and sum(1 for _ in place.parent.iterdir()) < EVIDENCE_MAX:
                _replace(place, data)
        return str(place)


def _hash(origin: str) -> str:
    return sha256(origin.encode()).hexdigest()


def _replace(path: Path, data: bytes) -> None:
    put_in_place(path, path.with_name(f"{path.name}.new"), data)
    with told(path):
        sync_folder(path.parent)
