"""Erasing what somebody wrote: the text, its salt and its digests go, the fact stays.

An erasure is an entry of the log that names each field, in the same transaction as the change it
explains. What was erased is remembered outside of the ledger too, so that a backup restored later
is made to forget it again. Before anything goes, a mark is left there: should the process die
between the commit and the cleaning of the file, the next one to open the ledger finishes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from affidavit.core.entry import Entry, encode_entry
from affidavit.core.merkle import leaf_hash
from affidavit.core.moment import render_time
from affidavit.core.views import VIEW_OF_KIND
from affidavit.core.views.erasures import erasure_row
from affidavit.core.views.payload import NO_PAYLOAD
from affidavit.errors import InputError, StoreError, invalid
from affidavit.ledger.context import Context
from affidavit.ledger.inputs import Erase
from affidavit.ledger.keys import Said, committed
from affidavit.ledger.ports import Reader, Remembered, Writer
from affidavit.ledger.redaction import noted
from affidavit.ledger.results import Erasure, ErasurePlan
from affidavit.ledger.thoughts import session_not_found

# So many fields fit an entry with room to spare.
FIELDS_MAX: Final = 500
# A digest of a short text leads back to it.
_DIGESTS: Final = {"arguments": "args_sha256", "outcome": "outcome_sha256"}
_AGAIN: Final = Said("affidavit", NO_PAYLOAD)


class Target(NamedTuple):
    """A payload that is there and is to go."""

    log_index: int
    kind: str
    name: str
    bytes: int


def find_targets(reader: Reader, wanted: Erase) -> list[Target]:
    """Everything a wish to erase is about, as far as it is still there."""
    if wanted.matching is not None:
        found = list(_matching(reader, wanted.matching))
    else:
        indices = _indices(reader, wanted)
        found = [target for index in indices for target in _present(reader, index)]
    # A server's call kept a digest of what it was given: of these very words.
    calls = reader.calls_behind([one.log_index for one in found])
    known = set(found)
    more = (target for index in calls for target in _present(reader, index))
    return found + [target for target in more if target not in known]


def _indices(reader: Reader, wanted: Erase) -> Sequence[int]:
    if wanted.session_id is not None:
        if reader.find_session(wanted.session_id) is None:
            raise session_not_found(wanted.session_id)
        return reader.entry_indices(session_id=wanted.session_id, task_id=None)
    if wanted.turn_id is not None:
        return _versions_of_turn(reader, wanted.turn_id)
    found = None if wanted.record_id is None else reader.find_thought(wanted.record_id)
    if found is None:
        raise InputError(
            f"record_id: there is no record {wanted.record_id!r:.100}",
            code="ERR_NOT_FOUND",
            hint="`affidavit thoughts` shows the ids of records.",
            field="record_id",
        )
    return [found.log_index]


def _versions_of_turn(reader: Reader, turn_id: str) -> list[int]:
    indices = reader.turn_indices(turn_id.lower())
    if not indices:
        raise InputError(
            f"turn_id: there is no turn {turn_id!r:.100}",
            code="ERR_NOT_FOUND",
            hint="list_turns shows the ids of turns.",
            field="turn_id",
        )
    return indices


def _present(reader: Reader, index: int) -> Iterator[Target]:
    kind = reader.entry(index).kind
    for name, size in reader.text_sizes(index, kind).items():
        if size:
            yield Target(index, kind, name, size)


def _matching(reader: Reader, text: str) -> Iterator[Target]:
    """Each text that holds these words, and the digest of it where there is one."""
    for index, names in sorted(reader.texts_holding(text).items()):
        also = {_DIGESTS[name] for name in names if name in _DIGESTS}
        yield from (one for one in _present(reader, index) if one.name in names | also)


def plan(reader: Reader, targets: Sequence[Target], matching: str | None) -> ErasurePlan:
    """What an erasure would do, for a person to say yes to."""
    kinds: dict[str, int] = {}
    for target in targets:
        kinds[target.kind] = kinds.get(target.kind, 0) + 1
    return ErasurePlan(
        fields=tuple((one.log_index, one.name) for one in targets),
        field_count=len(targets),
        bytes=sum(one.bytes for one in targets),
        kinds=kinds,
        named_in=0 if matching is None else reader.count_entries_holding(matching),
    )


def erase(context: Context, wanted: Erase, why: Said) -> Erasure:
    """Erase what is wanted and clean the file; answers with what went."""
    return _erase(context, lambda reader: find_targets(reader, wanted), why)


def erase_entries(context: Context, indices: Sequence[int], why: Said) -> Erasure:
    """Erase every text of some entries."""

    def find(reader: Reader) -> list[Target]:
        return [target for index in indices for target in _present(reader, index)]

    return _erase(context, find, why)


def _erase(context: Context, find: Callable[[Reader], list[Target]], why: Said) -> Erasure:
    context.store.check_scrubbable()
    with context.store.read() as reader:
        is_there = bool(find(reader))
    if not is_there:
        return Erasure(0, (), "done" if finish_scrub(context) else "pending")

    def unit(tx: Writer) -> tuple[list[Remembered], int]:
        targets = find(tx)
        return _write(tx, targets, why, context), len(targets)

    return _carry_out(context, unit)


def _carry_out(context: Context, unit: Any) -> Erasure:
    memory, ledger_id = context.memory, context.ledger_id
    with memory.hold(ledger_id):
        is_left = memory.is_marked(ledger_id)  # by one who died, or who found somebody reading
        memory.mark(ledger_id)
        try:
            notes, count = context.store.write(unit, context.clock)
        except BaseException:
            _finish(context)  # it may have been committed all the same
            raise
        memory.remember(ledger_id, notes)
        done = _finish(context) if is_left else _scrub(context, notes)
    indices = tuple(note.log_index for note in notes)
    return Erasure(count, indices, "done" if done else "pending")


def _scrub(context: Context, notes: Iterable[Remembered]) -> bool:
    fields = [(index, name) for note in notes for index, name, _ in note.fields]
    try:
        done = context.store.scrub(fields)
    except StoreError:
        return False  # the erasure is committed; its mark stays, and the next opener tries again
    if done:
        context.memory.unmark(context.ledger_id)
    return done


def _write(tx: Writer, targets: Sequence[Target], why: Said, context: Context) -> list[Remembered]:
    """The entries of an erasure, and the change each of them explains."""
    return [_write_one(tx, part, why, context) for part in _parts(targets)]


def _parts(targets: Iterable[Target]) -> Iterator[list[Target]]:
    rest = iter(targets)
    while part := list(islice(rest, FIELDS_MAX)):
        yield part


def _write_one(tx: Writer, part: list[Target], why: Said, context: Context) -> Remembered:
    by = why.by or "affidavit"
    body = {
        "fields": [[target.log_index, target.name] for target in part],
        "field_count": len(part),
        "by": by,
        "reason": committed(why.reason),
        **noted(why.removed),
    }
    entry = Entry(tx.at, "payload.erased", body, context.src)
    data = encode_entry(*entry)
    index = tx.append(data, erasure_row(tx.size(), entry, why.reason))
    erased_at = render_time(tx.at)
    for target in part:
        tx.erase(VIEW_OF_KIND[target.kind].table, target.log_index, target.name, erased_at)
    tx.forget_inputs([target.log_index for target in part])
    return Remembered(index, leaf_hash(data).hex(), by, _hashed(tx, body["fields"]))


def _hashed(reader: Reader, fields: Iterable[Any]) -> tuple[tuple[int, str, str], ...]:
    return tuple((index, name, reader.leaf(index).hex()) for index, name in fields)


def finish_erasures(context: Context) -> None:
    """When a ledger is opened: finish what was cut short, and forget again what a backup brought.

    Costs two looks at a folder where nothing was ever erased.
    """
    finish_scrub(context)
    newest = context.memory.newest(context.ledger_id)
    if newest is not None and not _is_here(context, newest):
        _erase_again(context)


def is_unfinished(context: Context) -> bool:
    """Whether erased texts are in this file, still or again; a writer that opens it ends that."""
    memory = context.memory
    if memory.is_marked(context.ledger_id):
        return True
    newest = memory.newest(context.ledger_id)
    if newest is None or _is_here(context, newest):
        return False
    with context.store.read() as reader:
        return any(_brought_back(reader, memory.recall(context.ledger_id)))


def finish_scrub(context: Context) -> bool:
    """Clean the file where that still waits; whether nothing does any more."""
    memory, ledger_id = context.memory, context.ledger_id
    if not memory.is_marked(ledger_id):
        return True
    try:
        with memory.hold(ledger_id, patient=False):
            return _finish(context)
    except StoreError as error:
        if error.code != "ERR_STORE_LOCKED":
            raise
        return False  # whoever erases now cleans the file too


def _finish(context: Context) -> bool:
    """Remember every erasure the log has, then clean the file; whether it is clean."""
    known = {note.leaf for note in context.memory.recall(context.ledger_id)}
    with context.store.read() as reader:
        found = [
            Remembered(
                index, reader.leaf(index).hex(), entry.body["by"],
                _hashed(reader, entry.body["fields"]),
            )
            for index, entry in reader.erasures()
            if reader.leaf(index).hex() not in known
        ]  # fmt: skip
    context.memory.remember(context.ledger_id, found)
    return _scrub(context, context.memory.recall(context.ledger_id))


def _is_here(context: Context, note: Remembered) -> bool:
    with context.store.read() as reader:
        return note.log_index < reader.size() and reader.leaf(note.log_index).hex() == note.leaf


def _erase_again(context: Context) -> None:
    notes = context.memory.recall(context.ledger_id)

    def unit(tx: Writer) -> tuple[list[Remembered], int]:
        targets = list(_brought_back(tx, notes))
        return _write(tx, targets, _AGAIN, context), len(targets)

    with context.store.read() as reader:
        if not any(_brought_back(reader, notes)):
            return
    _carry_out(context, unit)


def _brought_back(reader: Reader, notes: Iterable[Remembered]) -> Iterator[Target]:
    """Erased texts that are there again, in entries that are the very same."""
    wanted: dict[int, set[str]] = {}
    size = reader.size()
    for note in notes:
        for index, name, leaf in note.fields:
            if index < size and reader.leaf(index).hex() == leaf:
                wanted.setdefault(index, set()).add(name)
    for index, names in sorted(wanted.items()):
        yield from (one for one in _present(reader, index) if one.name in names)


def check_wish(wanted: Erase) -> None:
    """That exactly one thing is named."""
    parts = (wanted.session_id, wanted.record_id, wanted.turn_id, wanted.matching)
    named = [part for part in parts if part is not None]
    if len(named) != 1:
        raise invalid("session_id", "name one of session_id, record_id, turn_id, matching")
