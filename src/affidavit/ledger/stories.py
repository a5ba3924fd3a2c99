"""The story of a session: its entries in order, tool calls with how they ended, and what to doubt.

Every entry is one step. `basis` says how it is known: *said* are an agent's own words and whatever
somebody told the ledger, *seen* is what a hook, a proxy or telemetry saw happen. A step is marked
where a call was never finished, and where somebody says that tests pass although no run of tests
was seen since the last edit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from affidavit.core.entry import Entry
from affidavit.core.lifecycle import ORPHANED
from affidavit.errors import IntegrityViolation
from affidavit.ledger.claims import command_of, is_edit, is_shell, runs_tests, says_tests_pass
from affidavit.ledger.entries import read_entry
from affidavit.ledger.inputs import TellStory
from affidavit.ledger.ports import Reader
from affidavit.ledger.results import LogEntry, Result

Basis = Literal["said", "seen"]
CallState = Literal["open", "completed", "failed", "dead"]

_SEEN: Final = frozenset(("hook", "proxy", "otlp"))
_ENDS: Final = frozenset(("tool_call.completed", "tool_call.failed", "tool_call.late"))
_TIMES: Final = ("occurred_at_ms", "started_at_ms", "ended_at_ms", "at_ms")
# A claim stands at the end of a text as often as at its beginning.
_CLAIM_BYTES_MAX: Final = 100_000
_COMMAND_BYTES_MAX: Final = 20_000
# How many entries before a claim are looked at; a run further back is none for it.
_LOOK_BACK_MAX: Final = 5_000
_ORPHAN_AFTER_MS: Final = 3_600_000
_DIGEST_BYTES_MAX: Final = 100


class Mark(Result, frozen=True):
    """What to doubt about a step: `unproven`, `dead` or `disputed`, and why.

    `about` is an entry behind it.
    """

    code: str
    said: str
    about: int | None = None


class ToldCall(Result, frozen=True):
    """A tool call as its story tells it; without `end` nobody has finished it.

    `sources` says which channels saw it, the first first: each left its version of the request.
    """

    tool_name: str
    state: CallState
    started_at_ms: int
    ended_at_ms: int | None
    latency_ms: int | None
    error_kind: str | None
    end: LogEntry | None
    sources: tuple[str, ...] = ()


_NOTHING: Final = Mark("unproven", "says tests pass: no run of tests is recorded before")
_EDITED: Final = Mark("unproven", "says tests pass: no run of tests is recorded since the edit")
_UNKEPT: Final = Mark("unproven", "says tests pass: what commands ran before is not kept")


class Step(Result, frozen=True):
    """One entry of a story; what else is said of a call is `told_at` the index of its request too.

    `when_us` is when it happened as far as anybody says: an import tells of an earlier time.
    """

    entry: LogEntry
    basis: Basis | None
    when_us: int | None
    call: ToldCall | None = None
    told_at: int | None = None
    marks: tuple[Mark, ...] = ()


def basis_of(kind: str | None, body: Mapping[str, Any], via: str | None) -> Basis | None:
    """How a fact is known; None where nobody can say, or where the ledger itself wrote it."""
    if kind is None or via in (None, "internal"):
        return None
    return "said" if _is_of_an_agent(kind, body) or via not in _SEEN else "seen"


def _is_of_an_agent(kind: str, body: Mapping[str, Any]) -> bool:
    """A hook sees that an agent says something, not that it is so."""
    is_reply = kind == "turn.asserted" and body.get("turn_kind") == "assistant"
    return is_reply or kind == "thought.recorded"


def tell_story(reader: Reader, wanted: TellStory, now_us: int) -> list[Step]:
    """The steps of a session, in the order of the log, with what to doubt about them."""
    indices = reader.entry_indices(session_id=wanted.session_id, task_id=None)
    first = 0 if wanted.after is None else bisect_right(indices, wanted.after)
    chosen = range(first, len(indices))[: wanted.limit]
    head = reader.session_head(wanted.session_id)
    is_over = head is not None and head.ended_index is not None
    teller = _Teller(reader, indices, now_us // 1_000, is_over=is_over)
    return [teller.step(place, wanted.text_bytes_max) for place in chosen]


class _Teller:
    """Tells steps of one session from one snapshot."""

    def __init__(
        self, reader: Reader, indices: Sequence[int], now_ms: int, *, is_over: bool
    ) -> None:
        self._reader = reader
        self._indices = indices
        self._now_ms = now_ms
        self._is_over = is_over
        # Up to where the newest claim looked back, and what it found: the next goes on from there.
        self._looked_at = 0
        self._behind: Mark | int = _NOTHING

    def step(self, place: int, text_bytes_max: int) -> Step:
        entry = read_entry(self._reader, self._indices[place], text_bytes_max)
        known = entry, basis_of(entry.kind, entry.body, entry.via), _when(entry)
        if entry.kind == "tool_call.requested":
            return self._asked(entry, known, text_bytes_max)
        if entry.kind in _ENDS:
            return Step(*known, told_at=self._request_of(entry))
        claim = self._doubt_claim(place, entry)
        return Step(*known, marks=() if claim is None else (claim,))

    def _asked(
        self, entry: LogEntry, known: tuple[LogEntry, Basis | None, int | None], text_bytes_max: int
    ) -> Step:
        """A call; who sees it after others adds a source to it."""
        seen = self._sightings(entry.body)
        first = self._place_of(seen)
        if first not in (None, entry.index) and seen.get(entry.index) != seen.get(first):
            return Step(*known, told_at=first)
        sources = tuple(dict.fromkeys(seen.values()))
        call = replace(self._call(entry, text_bytes_max), sources=sources)
        return Step(*known, call, marks=(*_doubts_of_call(call), *self._disputes(seen)))

    def _sightings(self, body: Mapping[str, Any]) -> dict[int, str]:
        """The requests of a call that can be read, the oldest first, and how each came in."""
        found = ((index, self._read(index)) for index in self._reader.call_requests(*_name(body)))
        return {index: entry.src.via for index, entry in found if entry is not None}

    def _place_of(self, seen: Mapping[int, str]) -> int | None:
        """Where in this session a call stands: the newest version of who saw it first."""
        first = next(iter(seen.values()), None)
        return max((index for index in self._here(seen) if seen[index] == first), default=None)

    def _here(self, wanted: Iterable[int]) -> Iterator[int]:
        for index in wanted:
            place = bisect_left(self._indices, index)
            if place < len(self._indices) and self._indices[place] == index:
                yield index

    def _disputes(self, seen: Mapping[int, str]) -> tuple[Mark, ...]:
        """Whether those who saw a call saw other arguments."""
        newest = {via: index for index, via in seen.items()}
        if len(newest) < 2:
            return ()
        texts = (
            self._reader.texts(index, "tool_call.requested", _DIGEST_BYTES_MAX)
            for index in newest.values()
        )
        digests = {raw for told in texts if (raw := told.get("args_sha256"))}
        if len(digests) < 2:
            return ()
        said = f"{' and '.join(newest)} saw other arguments"
        return (Mark("disputed", said, max(newest.values())),)

    def _call(self, asked: LogEntry, text_bytes_max: int) -> ToldCall:
        found = self._reader.call_ends(*_name(asked.body))
        end = read_entry(self._reader, found[-1], text_bytes_max) if found else None
        body: Mapping[str, Any] = {} if end is None else end.body
        return ToldCall(
            tool_name=str(asked.body.get("tool_name")),
            state=self._state(asked.body, end),
            started_at_ms=int(asked.body.get("started_at_ms") or 0),
            ended_at_ms=body.get("ended_at_ms"),
            latency_ms=body.get("latency_ms"),
            error_kind=body.get("error_kind"),
            end=end,
        )

    def _state(self, asked: Mapping[str, Any], end: LogEntry | None) -> CallState:
        if end is not None:
            if end.body.get("error_kind") == ORPHANED:
                return "dead"
            return "completed" if end.body.get("status") == "completed" else "failed"
        left = self._now_ms - int(asked.get("started_at_ms") or 0) >= _ORPHAN_AFTER_MS
        return "dead" if self._is_over or left else "open"

    def _request_of(self, end: LogEntry) -> int | None:
        """Where in this session the call was asked for."""
        return self._place_of(self._sightings(end.body))

    def _doubt_claim(self, place: int, entry: LogEntry) -> Mark | None:
        """What to say of a claim that tests pass; None where it is none, or a run was seen."""
        if not entry.kind or not _is_of_an_agent(entry.kind, entry.body):
            return None
        text = entry.texts.get("content") or ""
        if "content" in entry.cut:
            whole = read_entry(self._reader, entry.index, _CLAIM_BYTES_MAX)
            text = whole.texts.get("content") or ""
        return self._look_back(place) if says_tests_pass(text) else None

    def _look_back(self, place: int) -> Mark | None:
        """What stands behind a claim: the newest run of tests, unless an edit came after it."""
        if place < self._looked_at:
            self._looked_at, self._behind = 0, _NOTHING
        first = max(self._looked_at, place - _LOOK_BACK_MAX)
        behind, unkept = self._behind if first == self._looked_at else _NOTHING, None
        for index in reversed(self._indices[first:place]):
            entry = self._read(index)
            ran = entry is not None and self._ran_tests(index, entry)
            if ran or (entry is not None and _is_change(entry)):
                behind = index if ran else replace(_EDITED, about=index)
                break
            if ran is None and unkept is None:
                unkept = replace(_UNKEPT, about=index)
        if unkept is not None and isinstance(behind, Mark):
            behind = unkept
        self._looked_at, self._behind = place, behind
        return behind if isinstance(behind, Mark) else self._doubt_run(behind, self._indices[place])

    def _read(self, index: int) -> Entry | None:
        try:
            return self._reader.entry(index)
        except IntegrityViolation:
            return None

    def _ran_tests(self, index: int, entry: Entry) -> bool | None:
        """Whether an entry is a call that ran tests; None where its command is not kept."""
        if entry.kind != "tool_call.requested" or not is_shell(str(entry.body.get("tool_name"))):
            return False
        raw = self._reader.texts(index, entry.kind, _COMMAND_BYTES_MAX).get("arguments")
        return runs_tests(command_of(raw.decode("utf-8", "replace"))) if raw else None

    def _doubt_run(self, index: int, claim: int) -> Mark | None:
        """A run counts for a claim once it was seen to end well before it."""
        entry = self._reader.entry(index)
        ends = [one for one in self._reader.call_ends(*_name(entry.body)) if one < claim]
        end = self._read(ends[-1]) if ends else None
        if end is None:
            return Mark("unproven", "says tests pass: the run before did not end", index)
        if end.body.get("status") != "completed":
            return Mark("unproven", "says tests pass: the run before failed", index)
        if entry.src.via in _SEEN or end.src.via in _SEEN:
            return None
        said = f"says tests pass: the run before is told (by {entry.src.via}), nobody saw it"
        return Mark("unproven", said, index)


def _when(entry: LogEntry) -> int | None:
    told = (entry.body.get(name) for name in _TIMES) if entry.via == "import" else ()
    said_ms = next((one for one in told if isinstance(one, int)), None)
    return entry.at if said_ms is None else said_ms * 1_000


def _name(body: Mapping[str, Any]) -> tuple[str, str]:
    return str(body.get("request_id")), str(body.get("call_id"))


def _is_change(entry: Entry) -> bool:
    if entry.kind in ("proposal.created", "proposal.applied"):
        return True
    is_call = entry.kind == "tool_call.requested"
    return is_call and is_edit(str(entry.body.get("tool_name")))


def _doubts_of_call(call: ToldCall) -> tuple[Mark, ...]:
    if call.state != "dead":
        return ()
    return (Mark("dead", "nobody finished this call"),)
