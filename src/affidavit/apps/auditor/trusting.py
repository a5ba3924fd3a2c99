"""Whom this user believes: what was named in the call, and what lies in the user's own folders.

<keys>/*.vkey     verifier keys of others that this user trusts, one a line; `#` begins a remark
<keys>/*.key      this user's own signing keys
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from affidavit.apps import places
from affidavit.apps.auditor.pins import kept_pins
from affidavit.apps.auditor.reading import read_checkpoint, read_file
from affidavit.core.note import ED25519, VerifierKey, parse_signing_key, parse_verifier_key
from affidavit.core.policy import parse_policy
from affidavit.errors import InputError, StoreError, invalid
from affidavit.verify.trust import Trust


def read_trust(
    keys: Sequence[str] = (), policy: str | None = None, pinned: Sequence[str] = ()
) -> Trust:
    """What a call names, beside the keys and checkpoints in this user's folders."""
    return Trust(
        tuple(_read_key(text) for text in keys),
        None if policy is None else parse_policy(read_file(policy)),
        tuple(map(read_checkpoint, pinned)),
        tuple(own_keys()),
        tuple(kept_pins()),
    )


def _read_key(text: str) -> VerifierKey:
    try:
        key = parse_verifier_key(text)
    except InputError as error:
        raise invalid(
            "key", error.message, hint="`affidavit key show` prints it; quote it for the shell."
        ) from None
    if key.type != ED25519:
        raise invalid("key", f"{key.name} is the key of a witness", hint="Name it in a --policy.")
    return key


def own_keys() -> Iterator[VerifierKey]:
    """The keys in this user's folder; a secret that may not be read is passed over."""
    folder = places.keys_folder()
    try:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            yield from _read_own(path)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be read ({error.strerror or error})", hint="Check its rights."
        ) from None


def _read_own(path: Path) -> Iterator[VerifierKey]:
    if path.suffix not in (".key", ".vkey"):
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix == ".key":
            yield from (parse_signing_key(line).verifier for line in lines)
        else:
            named = (line.strip() for line in lines)
            yield from (parse_verifier_key(line) for line in named if line and line[0] != "#")
    except PermissionError:
        return
    except ValueError as error:  # no text, or no key
        raise StoreError(
            f"{path} is not a key ({error})", hint="Put it back from a copy, or take it away."
        ) from None
