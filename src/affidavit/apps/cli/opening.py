"""Opening the ledger a command is about, in the way the command needs it."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from affidavit.apps import places, wiring
from affidavit.apps.cli.render import show_note
from affidavit.core.entry import Source
from affidavit.errors import AffidavitError, invalid
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.settings import Value

T = TypeVar("T")

_SOURCE = Source(auth="none", client=None, via="cli")


def ledger_path(args: argparse.Namespace) -> str:
    """Where the ledger of this command is."""
    return places.ledger_path(getattr(args, "ledger", None))


def open_for_reading(args: argparse.Namespace) -> Ledger:
    """The ledger, opened so that nothing can be written; what was erased is taken out before."""
    ledger, warned = _open_quietly(args, readonly=True, create=False)
    if _waits_for_a_writer(ledger):
        ledger.close()
        with suppress(AffidavitError):  # then it is shown as it is, with the warning
            _open_quietly(args, readonly=False, create=False)[0].close()
        return _open(args, readonly=True, create=False)
    _show(warned)
    return ledger


def _waits_for_a_writer(ledger: Ledger) -> bool:
    with suppress(AffidavitError):
        return ledger.has_unfinished_erasures()
    return False


def open_as_it_is(args: argparse.Namespace) -> Ledger:
    """The ledger as a verifier reads it: whatever is in the file, it stays so."""
    return _open(args, readonly=True, create=False)


def as_of(
    args: argparse.Namespace, ask: Callable[[Ledger, Mapping[str, Any]], Any]
) -> tuple[Any, dict[str, Any]]:
    """What held at the moment asked for, how large the log was, and whether that is settled."""
    moment = {"as_of": args.as_of, "as_of_index": args.as_of_index}
    with open_for_reading(args) as ledger, ledger.transaction(write=False) as snapshot:
        found = ask(snapshot, moment)
        return found, {"log_size": len(snapshot), "settled": snapshot.settled(**moment)}


def asks_of_the_past(args: argparse.Namespace) -> bool:
    """Whether a moment was named."""
    return args.as_of is not None or args.as_of_index is not None


def open_for_writing(args: argparse.Namespace) -> Ledger:
    """The ledger, which must be there."""
    return _open(args, readonly=False, create=False)


def open_for_serving(args: argparse.Namespace) -> Ledger:
    """The ledger as a server needs it; what it says goes to stderr."""
    writes = args.mode == "full"
    return _open(args, readonly=not writes, create=writes and not args.no_create)


def keep_signed(
    args: argparse.Namespace, ledger: Ledger, publish_to: str | None = None
) -> AbstractContextManager[object]:
    """Sign, and maybe publish, what is recorded while a server runs that may record."""
    if args.mode != "full":
        if publish_to is not None:
            raise invalid("publish", f"mode {args.mode} signs nothing", hint="Leave --publish out.")
        return nullcontext()
    from affidavit.apps.kept_signed import KeptSigned  # noqa: PLC0415 - for servers alone

    return KeptSigned(ledger, show_note, publish_to=publish_to)


def keep_retained(args: argparse.Namespace, ledger: Ledger) -> AbstractContextManager[object]:
    """Apply periods of retention every hour while a server runs that may record."""
    if args.mode != "full":
        return nullcontext()
    from affidavit.apps.kept_retained import KeptRetained  # noqa: PLC0415 - for servers alone

    return KeptRetained(ledger, show_note)


def take_hooks(args: argparse.Namespace, ledger: Ledger) -> AbstractContextManager[object]:
    """Take what hooks of other users bring while a server runs that may record."""
    if args.hooks is None:
        if args.allow:
            raise invalid("allow", "nobody brings anything", hint="Name a socket: --hooks SOCKET")
        return nullcontext()
    if args.mode != "full" or not args.allow:
        said = f"mode {args.mode} records nothing" if args.allow else "nobody may bring anything"
        raise invalid("hooks", said, hint="Give --allow USER, and no --mode, or leave --hooks out.")
    from affidavit.apps.hooks_received import HooksReceived  # noqa: PLC0415 - for servers alone
    from affidavit.apps.peers import find_user  # noqa: PLC0415

    allowed = [find_user(name) for name in args.allow]
    return HooksReceived(ledger.location, Path(args.hooks).absolute(), allowed, show_note)


def create(args: argparse.Namespace, settings: Mapping[str, Value]) -> Ledger:
    """A new ledger, with settings of its own."""
    return _open(args, readonly=False, create=True, settings=settings)


def write_or_create(args: argparse.Namespace, write: Callable[[Ledger], T]) -> T:
    """Write to the ledger, made where there is none; said, because the path may be mistyped.

    What an empty ledger refuses is refused before there is one: a refusal leaves no file behind.
    """
    path = ledger_path(args)
    new = is_new(path)
    if new:
        with wiring.open_ledger(":memory:", source=_SOURCE) as trial:
            write(trial)
    with _open(args, readonly=False, create=True) as ledger:
        if new:
            show_note(f"made a new ledger, {path}")
        return write(ledger)


def sign_first(ledger: Ledger) -> None:
    """Sign a sealed log that has no key yet; what cannot be signed is said, and stays sealed."""
    try:
        if not ledger.list_keys():
            ledger.checkpoint()
    except AffidavitError as error:
        show_note(f"warning: sealed, but not signed: {error.message}")


def is_new(path: str) -> bool:
    """Whether there is no ledger yet."""
    target = Path(path)
    try:
        # An empty file is what a start that was cut short leaves behind.
        return not target.exists() or (target.is_file() and target.stat().st_size == 0)
    except OSError:
        return True


def _open(args: argparse.Namespace, **how: Any) -> Ledger:
    ledger, warned = _open_quietly(args, **how)
    _show(warned)
    return ledger


def _show(warned: Sequence[warnings.WarningMessage]) -> None:
    for warning in warned:
        show_note(f"warning: {warning.message}")


def _open_quietly(
    args: argparse.Namespace,
    *,
    readonly: bool,
    create: bool,
    settings: Mapping[str, Value] | None = None,
) -> tuple[Ledger, Sequence[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        ledger = wiring.open_ledger(
            ledger_path(args), readonly=readonly, create=create, settings=settings, source=_SOURCE
        )
    return ledger, caught
