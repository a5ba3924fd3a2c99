"""The one way from what a caller wrote to what is stored of it.

    ready_text, ready_json      before the write lock: checked, paths related, the digest taken
    fill                        inside the unit: the body's fields, and what the row keeps

Everything a person or a model writes into turns, tool calls and proposals goes through here, so
that what is never to be stored is taken out in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from affidavit.core.canonical import (
    canonicalize_text,
    canonicalize_value,
    encode_utf8,
    hex_digest,
    parse_json,
)
from affidavit.core.entry import commitment
from affidavit.core.names import check_size, is_digest
from affidavit.core.paths import relate_diffs, relate_paths
from affidavit.core.payload_paths import drop, find_paths, keep
from affidavit.core.redact import RULES, redact_json, redact_text
from affidavit.core.views.payload import Payload, read_payload
from affidavit.errors import InputError, invalid
from affidavit.ledger.ports import Writer
from affidavit.ledger.redaction import is_off, noted
from affidavit.ledger.settings import setting

# Payload fields that a ledger may keep as digests alone, with how their digest is called.
_DIGESTS: Final = {"arguments": "args", "outcome": "outcome"}


class Ready(NamedTuple):
    """What a caller wrote, as it may be stored; `whole` still has the secrets that were removed.

    `digest` and `form` are those of a JSON value, `outside` counts paths outside of the project.
    """

    text: str | None
    whole: str | None = None
    digest: str | None = None
    form: str | None = None
    outside: int = 0
    removed: int = 0


R = TypeVar("R", Ready, "Ready | None")


class Filled(NamedTuple):
    """The payload fields of one entry: as its body has them, and as its row keeps them."""

    body: dict[str, Any]
    payloads: dict[str, Payload]


def ready_text(text: str | None) -> Ready | None:
    """A text that was checked already."""
    if text is None:
        return None
    kept, removed = redact_text(text)
    return Ready(kept, text, removed=removed)


def ready_json(value: Any, field: str, root: str, digest: Any = None) -> Ready | None:
    """A value, JSON text, or a digest alone; None where there is neither.

    A string is JSON text; one that is not JSON stands for itself.
    """
    given = None if digest is None else _check_digest(digest, field)
    if value is None:
        return None if given is None else Ready(None, None, given, "given")
    text, form = _canonical(value, field)
    own = hex_digest(encode_utf8(text, field))
    if given not in (None, own):
        said = f"is {given}, the digest of {field} is {own}"
        raise invalid("args_sha256" if field == "arguments" else f"{field}_sha256", said)
    if form == "raw":
        kept, removed = redact_text(text)
        return Ready(kept, text, own, form, 0, removed)
    relate = relate_diffs if field == "diffs" else relate_paths
    related, outside = relate(parse_json(text, field), root)
    plain, removed = redact_json(related)
    whole = canonicalize_value(related, field)
    kept = canonicalize_value(plain, field) if removed else whole
    return Ready(kept, whole, own, form, outside, removed)


def _check_digest(digest: Any, field: str) -> str:
    if not is_digest(digest):
        raise invalid(
            "args_sha256" if field == "arguments" else f"{field}_sha256",
            "is not SHA-256 in lower-case hex",
        )
    return str(digest)


def _canonical(value: Any, field: str) -> tuple[str, str]:
    if not isinstance(value, str):
        text, form = canonicalize_value(value, field), "jcs"
    else:
        check_size(value, field)
        try:
            text, form = canonicalize_text(str.__str__(value), field)
        except InputError:
            text, form = canonicalize_value(value, field), "jcs"
    check_size(text, field)
    return text, form


def stored(tx: Writer, ready: R) -> R:
    """What a ledger stores of it: everything, where its secrets are to be kept."""
    if ready is None or not ready.removed or not is_off(tx):
        return ready
    return ready._replace(text=ready.whole, removed=0)


def is_same_text(tx: Writer, row: Any, field: str, given: Ready | None) -> bool:
    """Whether a row keeps what is given, as far as can still be told.

    What was cleaned by other rules than these tells nothing against it, what was erased only when
    it was longer or shorter.
    """
    kept = read_payload(row, field).text
    if kept == (None if given is None else given.text):
        return True
    if given is None or given.text is None:
        return False
    body = tx.entry(row.log_index).body
    said = body.get(field)
    if said is None or body.get("redaction", {}).get("rules", RULES) != RULES:
        return said is not None
    # Of what was erased its length is still known.
    return kept is None and bool(said["bytes"] == len(given.text.encode()))


def fill(tx: Writer, given: Mapping[str, Ready | None], new_salt: Callable[[], bytes]) -> Filled:
    """The payload fields of an entry; what has a digest may be stored as that alone."""
    keeps, filled = setting(tx, "payloads") == "keep", Filled({}, {})
    removed = outside = 0
    for name, one in given.items():
        ready = stored(tx, one)
        prefix = _DIGESTS.get(name)
        if prefix is not None:
            filled.body[f"{prefix}_form"] = None if ready is None else ready.form
            digest = None if ready is None else ready.digest
            _put(filled, f"{prefix}_sha256", digest, new_salt)
        text = None if ready is None else ready.text
        if ready is not None and prefix is not None:
            text = _choose(name, ready, str(setting(tx, "payload_paths")), keeps=keeps)
        _put(filled, name, text, new_salt)
        if ready is None or text is None:
            continue
        removed, outside = removed + ready.removed, outside + ready.outside
    if outside:
        filled.body["paths_outside"] = outside
    filled.body.update(noted(removed))
    return filled


def _choose(name: str, ready: Ready, paths: str, *, keeps: bool) -> str | None:
    """What is stored of a value that has a digest."""
    chosen = find_paths(paths, name, dropped=keeps)
    if not chosen or ready.text is None:
        return ready.text if keeps else None
    if ready.form == "raw":
        return None  # nobody can say where in such a text a path leads
    value = parse_json(ready.text, name)
    part = drop(value, chosen) if keeps else keep(value, chosen)
    return None if part is None else canonicalize_value(part, name)


def _put(filled: Filled, name: str, text: str | None, new_salt: Callable[[], bytes]) -> None:
    filled.body[name] = None
    if text is not None:
        payload = filled.payloads[name] = Payload(text, new_salt())
        filled.body[name] = commitment(payload.salt or b"", text)
