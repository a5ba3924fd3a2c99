"""Where things are kept on this machine.

    kind     AFFIDAVIT_HOME=H or macOS (H = ~/Library/Application Support/affidavit)   Linux, XDG
    data     H/data                                                ~/.local/share/affidavit
    state    H/state                                               ~/.local/state/affidavit
    keys     H/keys                                                ~/.config/affidavit/keys

Keys are never below the data folder, so that a copy of the data never carries them away. Nothing
here makes a folder or opens a file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from affidavit.errors import InputError, StoreError, invalid

_XDG = {
    "data": ("XDG_DATA_HOME", ".local/share", "affidavit"),
    "state": ("XDG_STATE_HOME", ".local/state", "affidavit"),
    "keys": ("XDG_CONFIG_HOME", ".config", "affidavit/keys"),
}


def data_folder() -> Path:
    """Where the ledger is."""
    return _folder("data")


def state_folder() -> Path:
    """What this machine remembers about ledgers, outside of them."""
    return _folder("state")


def keys_folder() -> Path:
    """Signing keys, and keys of others that this user trusts."""
    return _folder("keys")


def signer_socket() -> Path | None:
    """Where a signer of another user listens, if one is to be asked."""
    named = os.environ.get("AFFIDAVIT_SIGNER")
    return _expanded(named, "AFFIDAVIT_SIGNER").absolute() if named else None


def ledger_path(given: str | None = None) -> str:
    """The ledger a command is about: the one named, `AFFIDAVIT_LEDGER`, or this user's own."""
    if given is None:
        given = os.environ.get("AFFIDAVIT_LEDGER") or None
    if given is None:
        return str(data_folder() / "ledger.db")
    if given == ":memory:":
        raise InputError(
            "ledger: ':memory:' would be gone when the command ends",
            hint="Name a file.",
            field="ledger",
        )
    if not given:
        raise invalid("ledger", "must not be empty", hint="Name a file.")
    # A kind of ledger that is not a file is for the wiring to know, or to refuse.
    return given if "://" in given else str(_expanded(given, "ledger").absolute())


def _folder(kind: str, platform: str = sys.platform) -> Path:
    home = os.environ.get("AFFIDAVIT_HOME")
    if home:
        return _expanded(home, "AFFIDAVIT_HOME").absolute() / kind
    if platform == "darwin":
        return _home() / "Library" / "Application Support" / "affidavit" / kind
    variable, default, name = _XDG[kind]
    chosen = Path(os.environ.get(variable, ""))
    # The XDG specification: a relative path in such a variable is invalid and to be ignored.
    return (chosen if chosen.is_absolute() else _home() / default) / name


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise StoreError(
            "this user has no home folder",
            hint="Set AFFIDAVIT_HOME to a folder, or name the ledger with --ledger.",
        ) from None


def _expanded(path: str, field: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise invalid(field, f"there is no user for {path!r:.200}") from None
