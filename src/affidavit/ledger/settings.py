"""Settings: rules of a ledger that its owner may change, each change an entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from affidavit.core.entry import Entry, Source, encode_entry
from affidavit.core.names import quoted
from affidavit.core.payload_paths import PathList
from affidavit.core.views.settings import setting_row
from affidavit.errors import invalid
from affidavit.ledger.inputs import plain_string, read_id
from affidavit.ledger.ports import Reader, Writer

Value = str | int | bool


class Setting(NamedTuple):
    """One setting: its value when nobody chose, what it may be, and what it does."""

    default: Value
    allowed: tuple[Value, ...] | range | PathList
    meaning: str


SETTINGS: Final[dict[str, Setting]] = {
    "audit_reads": Setting(
        True, (True, False), "whether a server leaves an entry of calls that only read"
    ),
    "payload_paths": Setting(
        "",
        PathList(),
        "parts of arguments and outcomes to keep (arguments.command) where only digests are, or to "
        "drop (-outcome.stdout) where they are kept; parted by spaces",
    ),
    "payloads": Setting(
        "hash",
        ("hash", "keep"),
        "whether arguments and outcomes of tool calls are kept, or only their digests",
    ),
    "publish": Setting(
        "hashes",
        ("hashes", "entries"),
        "what `affidavit publish` gives away: the tree's hashes, or the entries too",
    ),
    "redaction": Setting(
        "on", ("on", "off"), "whether secrets are taken out of texts before they are stored"
    ),
    "retain_proposal_days": Setting(
        0, range(36_501), "for how many days the texts of proposals are kept; 0: for ever"
    ),
    "retain_tool_call_days": Setting(
        0, range(36_501), "for how many days the texts of tool calls are kept; 0: for ever"
    ),
    "retain_turn_days": Setting(
        0, range(36_501), "for how many days the texts of turns are kept; 0: for ever"
    ),
    "session_idle_hours": Setting(
        24, range(1, 24 * 366), "after how many idle hours an open session counts as lost"
    ),
    "transitions": Setting(
        "open",
        ("open", "strict"),
        "whether task_update may move a task between any two states, or only as allowed",
    ),
    "writeback": Setting(
        "any",
        ("any", "reflection"),
        "what a task needs before it is DONE: any record of it, or a reflection as the newest",
    ),
}


def check_settings(given: Mapping[str, Any]) -> dict[str, Value]:
    """Settings as a caller gives them, each known and of an allowed value."""
    if not isinstance(given, Mapping):
        raise invalid("settings", f"is {type(given).__name__}, not a dict")
    given = {name: plain_string(value) for name, value in given.items()}
    for name, value in given.items():
        known = SETTINGS.get(name) if isinstance(name, str) else None
        if known is None:
            raise invalid(
                f"settings.{ascii(name)[1:-1]:.80}".rstrip("."),
                f"is not one of {', '.join(SETTINGS)}",
            )
        if type(value) is not type(known.default) or value not in known.allowed:
            allowed = known.allowed
            choices = (
                f"{allowed.start} to {allowed.stop - 1}"
                if isinstance(allowed, range)
                else " or ".join(map(str, allowed))
            )
            raise invalid(f"settings.{name}", f"{quoted(value, 60)} is not {choices}")
    return dict(given)


def initial_settings(given: Mapping[str, Value]) -> dict[str, Value]:
    """What a new ledger starts with: every setting, chosen or not."""
    return {name: given.get(name, known.default) for name, known in SETTINGS.items()}


def read_settings(reader: Reader, end: int | None = None) -> dict[str, Value]:
    """The settings in force, now or below an index."""
    created = reader.entry(0).body["settings"]
    values = {name: created.get(name, known.default) for name, known in SETTINGS.items()}
    for change in reader.setting_changes(2**62 if end is None else end):
        values[change.body["name"]] = change.body["new"]
    return values


def setting(tx: Writer, name: str) -> Value:
    """One setting in force, inside a unit."""
    values: dict[str, Value] = tx.cached("settings", lambda: read_settings(tx))
    return values[name]


def change_settings(
    tx: Writer, wanted: Mapping[str, Value], by: str | None, src: Source
) -> tuple[int, int]:
    """Record each setting that differs; the indices written, or an empty stretch."""
    first = tx.size()
    for name, new in sorted(wanted.items()):
        old = setting(tx, name)
        if old != new:
            body = {"name": name, "old": old, "new": new, "by": by}
            entry = Entry(tx.at, "setting.changed", body, src)
            tx.append(encode_entry(*entry), setting_row(tx.size(), entry))
    return first, tx.size() - 1


def read_by(by: object) -> str | None:
    """Who changes a setting, where it is said."""
    return None if by is None else read_id(by, "by")
