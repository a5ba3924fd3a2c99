"""Payloads of an evidence file: each text is the one its entry commits to, or is accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from affidavit.core.bundle import PAYLOADS, Evidence, Shown, payload_fields
from affidavit.core.entry import Entry, is_commitment_to
from affidavit.verify.findings import Findings
from affidavit.verify.thoughts import hashes_hold

Entries = Mapping[int, tuple[bytes, Entry]]
_THOUGHT: Final = "thought.recorded"
_ERASED: Final = "payload.erased"


def check_payloads(
    evidence: Evidence,
    entries: Entries,
    findings: Findings,
    checked: dict[str, int],
    unchecked: list[str],
) -> None:
    """Every payload field of every entry has its line, and no line is of anything else."""
    counts = {"texts": 0, "erased": 0, "withheld": 0}
    for index, (_, entry) in entries.items():
        shown = evidence.payloads.get(index, {})
        names = payload_fields(entry.kind, entry.body)
        for name in names:
            if name not in shown:
                said = f"{name} is neither there nor marked erased or withheld"
                findings.add("payload_lost", index, f"{PAYLOADS} {name}", said)
            elif _check_field(index, name, entry, shown[name], entries, findings):
                one = shown[name]
                kind = "texts" if one.text is not None else "withheld" if one.is_withheld else ""
                counts[kind or "erased"] += 1
        for name in sorted(shown.keys() - set(names)):
            said = f"the entry has no payload {name!r:.60}"
            findings.add("view_extra", index, f"{PAYLOADS} {name}"[:200], said)
    for index in sorted(evidence.payloads.keys() - evidence.entries.keys()):
        findings.add("view_extra", index, PAYLOADS, "payloads of an entry that is not there")
    checked["payloads"] = counts["texts"]
    for what in ("erased", "withheld"):
        if counts[what]:
            whose = "by the ledger's owner" if what == "erased" else "by whoever made the file"
            unchecked.append(f"{counts[what]:,} payloads {what} {whose}")


def _check_field(
    index: int, name: str, entry: Entry, shown: Shown, entries: Entries, findings: Findings
) -> bool:
    place = f"{PAYLOADS} {name}"
    if shown.erased is not None:
        if not _erases(shown.erased, index, name, entries):
            said = f"entry {shown.erased} does not say that {name} was erased"
            findings.add("erasure_unexplained", index, place, said)
            return False
    elif shown.text is not None and not _is_text_of(name, entry, shown, shown.text):
        findings.add("payload_mismatch", index, place, f"{name} is not the text that was recorded")
        return False
    return True


def _erases(at: int, index: int, name: str, entries: Entries) -> bool:
    """Whether an entry of the file says that this payload was erased before it."""
    if at not in entries or at <= index or entries[at][1].kind != _ERASED:
        return False
    fields = entries[at][1].body.get("fields")
    return isinstance(fields, list) and [index, name] in fields


def _is_text_of(name: str, entry: Entry, shown: Shown, text: str) -> bool:
    if entry.kind == _THOUGHT:
        return shown.salt is None and bool(text) and hashes_hold(entry.body, text)
    return is_commitment_to(entry.body[name], shown.salt, text)
