"""An entry of the log as a card of a story: what it is called, who, what was said, where it leads.

Kinds with words of their own are in `_TELL`; any other kind is told by its name and its body, so
that a story never leaves an entry out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from affidavit.core.changes import Change, find_changes
from affidavit.core.names import is_digest
from affidavit.ledger.results import LogEntry
from affidavit.ledger.stories import Mark, Step, ToldCall, basis_of
from affidavit.verify.findings import Finding

# The texts in which edits stand.
_EDITS: Final = ("arguments", "diffs")
_AUTHORS: Final = {
    "none": "nobody vouches for its author",
    "claimed": "its author is as the client named itself",
}


class Fact(NamedTuple):
    """A name and a value; `leads_to` is the page about it, of those that have one."""

    name: str
    value: str
    leads_to: str | None = None

    @property
    def is_hash(self) -> bool:
        """Whether it is shown by its first digits."""
        return is_digest(self.value)


@dataclass(frozen=True, slots=True)
class Card:
    """One entry, ready to be shown."""

    index: int
    at: int | None
    title: str
    tone: str
    who: str | None
    said: str | None
    via: str | None
    source: str
    texts: Sequence[tuple[str, str | None, bool]]
    facts: Sequence[Fact]
    findings: Sequence[Finding]
    damage: str | None
    sizes: Mapping[str, int]
    changes: Sequence[Change]
    marks: Sequence[Mark] = ()
    call: ToldCall | None = None


def card_of(
    entry: LogEntry, findings: Mapping[int, Sequence[Finding]], step: Step | None = None
) -> Card:
    """The card of an entry, as a step of a story where it is one."""
    title, tone, who, shown = _tell(entry)
    body = entry.body
    if step is not None and step.told_at is not None and entry.kind == "tool_call.requested":
        title = f"{body.get('tool_name')} seen by {entry.via} too"
    digests = [
        Fact(_words(name), text or "") for name, text in entry.texts.items() if is_digest(text)
    ]
    texts = [
        (name, text, name in entry.cut)
        for name, text in entry.texts.items()
        if not is_digest(text) and (text is not None or _is_committed(body, name))
    ]
    return Card(
        index=entry.index,
        at=entry.at,
        title=title,
        tone=tone,
        who=body.get(who) if who else None,
        said=basis_of(entry.kind, body, entry.via),
        via=_seen_by(entry, step),
        source=_describe_source(entry),
        texts=texts,
        facts=[*(fact for name in shown for fact in _facts(name, body.get(name))), *digests],
        findings=findings.get(entry.index, ()),
        damage=entry.damage,
        sizes={name: size for name in entry.texts if (size := _size(body.get(name))) is not None},
        changes=[change for name in _EDITS for change in _changes(entry.texts.get(name))],
        marks=() if step is None else step.marks,
        call=None if step is None else step.call,
    )


def _seen_by(entry: LogEntry, step: Step | None) -> str | None:
    """How it came in; of a tool call, every channel that saw it."""
    if step is None or step.call is None or not step.call.sources:
        return entry.via
    return ", ".join(step.call.sources)


def all_facts(entry: LogEntry) -> list[Fact]:
    """Everything an entry's body says."""
    return [fact for name, value in sorted(entry.body.items()) for fact in _facts(name, value)]


def _size(committed: Any) -> int | None:
    size = committed.get("bytes") if isinstance(committed, Mapping) else None
    return size if isinstance(size, int) else None


def _changes(text: str | None) -> list[Change]:
    """What an edit changes; nothing where it is cut off."""
    try:
        return [] if text is None else find_changes(json.loads(text))
    except (ValueError, RecursionError):
        return []


def _is_committed(body: Mapping[str, Any], name: str) -> bool:
    """Whether an entry says that there was such a text: then its absence is worth a word."""
    return name == "content" or body.get(name) is not None


def _describe_source(entry: LogEntry) -> str:
    parts = [f"came in by {entry.via}"]
    if entry.client:
        parts.append(f"from {entry.client}")
    parts.append(_AUTHORS.get(str(entry.auth), f"its author known by {entry.auth}"))
    return ", ".join(parts)


# Title, tone, the key that says who, and the keys shown beside the texts.
_Told = tuple[str, str, str | None, Sequence[str]]


def _tell(entry: LogEntry) -> _Told:
    if entry.kind is None:
        return "Unreadable entry", "bad", None, ()
    tell = _TELL.get(entry.kind)
    if tell is not None:
        return tell(entry.body)
    return entry.kind, "plain", None, sorted(entry.body.keys() - entry.texts)


def _thought(body: Mapping[str, Any]) -> _Told:
    return (
        str(body["type"]).capitalize(),
        str(body["type"]),
        "agent_id",
        ("task_id", "session_id", "hash", "chain_hash"),
    )


def _call(body: Mapping[str, Any]) -> _Told:
    title = f"Call of {body['tool']}: {body['outcome']}"
    return title, "plain", "caller", ("duration_us", "first_index", "last_index")


def _said(
    tone: str, title: str, word: str, who: str | None, *shown: str
) -> Callable[[Mapping[str, Any]], _Told]:
    """A title that ends with a word of the body."""
    return lambda body: (title.format(body[word]), tone, who, shown)


def _task_update(body: Mapping[str, Any]) -> _Told:
    status = body["changed"].get("status")
    title = "Task changed" if status is None else f"Task moved to {status}"
    return title, "task", None, ("task_id", "changed")


def _always(*told: Any) -> Callable[[Mapping[str, Any]], _Told]:
    return lambda _: told


_FINISH: Final = ("call_id", "error_kind", "latency_ms")
_TELL: Final[dict[str, Callable[[Mapping[str, Any]], _Told]]] = {
    "ledger.created": _always("Ledger created", "plain", None, ("ledger_id", "origin")),
    "thought.recorded": _thought,
    "session.started": _always(
        "Session started", "session", "caller", ("task_id", "continues", "genesis")
    ),
    "session.sealed": _always(
        "Session sealed", "seal", None, ("root", "record_count", "closing_reflection")
    ),
    "session.ended": _always("Session ended", "session", None, ("reason",)),
    "task.created": _always("Task created", "task", "assignee", ("task_id", "status", "priority")),
    "task.updated": _task_update,
    "task.deleted": _always("Task deleted", "task", None, ("task_id",)),
    "call.finished": _call,
    "call.failed": _call,
    "turn.asserted": _said("turn", "Turn: {}", "turn_kind", "actor", "thread_id", "model"),
    "turn.retracted": _always("Turn taken back", "turn", None, ("id",)),
    "tool_call.requested": _said(
        "tool", "{} called", "tool_name", "actor", "vendor", "model", "call_id"
    ),
    "tool_call.completed": _always("Tool call completed", "tool", None, _FINISH),
    "tool_call.failed": _always("Tool call failed", "tool", None, _FINISH),
    "tool_call.late": _always("Result of a tool call, late", "tool", None, _FINISH),
    "proposal.created": _always("Edit proposed", "tool", None, ("confidence",)),
    "proposal.decided": _said("tool", "Edit {}", "decision", "by"),
    "proposal.applied": _always("Edit applied", "tool", "by", ("commit_hash",)),
    "proposal.reverted": _always("Edit reverted", "tool", "by", ("commit_hash",)),
    "approval.decided": _said("tool", "Tool call {}", "decision", "by", "call_id"),
    "session.linked": _always("Session linked", "session", None, ("source", "external_id")),
    "capture.started": _said("session", "Recording began: {}", "channel", "source", "version"),
    "capture.stopped": _said("session", "Recording ended: {}", "channel", "source", "count"),
    "events.dropped": _said("plain", "Events lost: {}", "count", "channel", "from_ms", "to_ms"),
    "setting.changed": _always("Setting changed", "plain", "by", ("name", "old", "new")),
}


def _facts(name: str, value: Any) -> list[Fact]:
    """A value of a body in words; what is nested is told part by part."""
    if value is None or value == {}:
        return []
    if isinstance(value, Mapping):
        return [fact for key, part in value.items() for fact in _facts(f"{name}.{key}", part)]
    shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return [Fact(_words(name), shown, _LEADS.get(name))]


def _words(name: str) -> str:
    return name.removesuffix("_id").replace("_", " ").replace(".", ": ")


_LEADS: Final = {
    "session_id": "session",
    "continues.session_id": "session",
    "task_id": "task",
}
