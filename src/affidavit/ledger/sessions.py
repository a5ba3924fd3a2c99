"""Sessions: started with a recorded genesis, sealed over everything they hold, ended once."""

from __future__ import annotations

from itertools import islice

from affidavit.core.entry import Entry, Source, commitment, encode_entry
from affidavit.core.merkle import complete_levels, levels_root
from affidavit.core.moment import render_time
from affidavit.core.session import Continued, Metadata, genesis
from affidavit.core.views.payload import Payload
from affidavit.core.views.sessions import SealRow, SessionRow, seal_row, session_row
from affidavit.core.views.thoughts import ThoughtRow
from affidavit.errors import ConflictError, IntegrityViolation
from affidavit.ledger import results
from affidavit.ledger.inputs import ListSessions, StartSession
from affidavit.ledger.ports import Reader, SessionEntry, Writer
from affidavit.ledger.redaction import noted
from affidavit.ledger.results import Seal, Session, SessionEnd
from affidavit.ledger.thoughts import session_not_found

NO_REFLECTION = "the newest record is not a reflection: the seal does not cover a closing account"


def start_session(
    tx: Writer,
    given: StartSession,
    session_id: str,
    ledger_id: str,
    salt: bytes,
    src: Source,
    removed: int = 0,
) -> SessionRow:
    """Record that a session starts; its genesis binds who, when and what it continues."""
    if tx.session_head(session_id) is not None:
        raise ConflictError(
            f"there is a session {session_id!r:.100} already",
            code="ERR_SESSION_EXISTS",
            hint="Leave session_id out to get a fresh one.",
        )
    metadata = Metadata(
        caller=given.caller,
        continues=None if given.continues is None else _continued(tx, given.continues),
        ledger_id=ledger_id,
        proof_grade=given.proof_grade,
        session_id=session_id,
        started_at=render_time(tx.at),
        task_id=given.task_id,
    ).to_body()
    body = {
        **metadata,
        "genesis": genesis(metadata),
        "intent": commitment(salt, given.intent),
        "project": given.project,
        "model": given.model,
        **noted(removed),
    }
    entry = Entry(tx.at, "session.started", body, src)
    row = session_row(tx.size(), entry, Payload(given.intent, salt))
    tx.append(encode_entry(*entry), row)
    return row


def _continued(tx: Writer, session_id: str) -> Continued:
    head = tx.session_head(session_id)
    if head is None:
        raise session_not_found(session_id, "continues")
    if head.sealed_index is None and head.ended_index is None:
        raise ConflictError(
            f"session {session_id!r:.100} is still open",
            code="ERR_SESSION_OPEN",
            hint="Seal or end it first; only then its last chain hash is final.",
        )
    return Continued(session_id, head.chain_hash)


def seal_session(tx: Writer, session_id: str, src: Source) -> tuple[SealRow, bool]:
    """Seal a session over its records and entries, once; the second call finds the first seal."""
    row = _existing(tx, session_id)
    found = tx.find_seal(session_id)
    if found is not None:
        return found, True
    _check_start(tx, row)
    entries = tx.session_entries(session_id, row.log_index)
    own = [entry for entry in entries if entry.is_thought]
    last = _get_last(tx, row, own)
    levels = complete_levels([entry.leaf for entry in own])
    body = {
        "session_id": session_id,
        "root": levels_root(levels).hex(),
        "record_count": len(own),
        "chain_hash": last.chain_hash,
        "closing_reflection": _is_closed_by(last, row),
        "entries_root": levels_root(complete_levels([entry.leaf for entry in entries])).hex(),
        "entry_count": len(entries),
        "finalized_at": render_time(tx.at),
        "first_index": own[0].log_index,
        "last_index": own[-1].log_index,
    }
    entry = Entry(tx.at, "session.sealed", body, src)
    seal = seal_row(tx.size(), entry)
    tx.append(encode_entry(*entry), seal)
    tx.add_levels(seal.log_index, levels[1:])
    return seal, False


def _existing(reader: Reader, session_id: str, field: str = "session_id") -> SessionRow:
    row = reader.find_session(session_id)
    if row is None:
        raise session_not_found(session_id, field)
    return row


def _get_last(tx: Writer, row: SessionRow, own: list[SessionEntry]) -> ThoughtRow:
    """The newest record of a session, when its records may be sealed."""
    session_id = row.session_id
    if not own:
        raise ConflictError(
            f"session {session_id!r:.100} has no records to seal",
            code="ERR_NO_RECORDS",
            hint="Record a thought with this session_id first.",
        )
    _check_chain(tx, session_id, own)
    last = tx.thoughts_between(own[-1].log_index, own[-1].log_index)[0]
    if row.proof_grade and not _is_closed_by(last, row):
        raise ConflictError(
            f"session {session_id!r:.100} is proof grade and does not end with a reflection"
            + (f" of task {row.task_id!r:.100}" if row.task_id else ""),
            code="ERR_CLOSING_REFLECTION_REQUIRED",
            hint="Record a thought of type reflection in this session, then seal again.",
        )
    return last


def _check_start(tx: Writer, row: SessionRow) -> None:
    """That the view tells of this session what the log does: a seal trusts the log alone."""
    started = tx.entry(row.log_index)
    if started.kind == "session.started":
        derived = session_row(row.log_index, started, Payload(row.intent, row.intent_salt))
        if derived == row._replace(ended_index=None, ended_at=None, end_reason=None):
            return
    raise _broken(row.session_id, row.log_index, row.session_id, "its row differs from its start")


def _is_closed_by(last: ThoughtRow, row: SessionRow) -> bool:
    if last.type != "reflection":
        return False
    return not row.proof_grade or row.task_id in (None, last.task_id)


def _check_chain(tx: Writer, session_id: str, own: list[SessionEntry]) -> None:
    """A seal over a broken chain would swear to something false."""
    report = tx.check_session(session_id)
    if not report.valid:
        raise _broken(session_id, report.first_broken_index, report.first_broken_at, report.reason)
    kept = tx.thoughts(
        task_id=None, session_id=session_id, type=None, after=-1, end=tx.size(), limit=None
    )
    lost = sorted({entry.log_index for entry in own} ^ {row.log_index for row in kept})
    if lost:
        raise _broken(session_id, lost[0], None, "the record in the log has no row")


def _broken(
    session_id: str, index: int | None, record_id: str | None, reason: str | None
) -> IntegrityViolation:
    return IntegrityViolation(
        f"session {session_id!r:.100} is broken at entry {index}: {reason}",
        code="ERR_CHAIN_BROKEN",
        hint="Run `affidavit verify` and keep the ledger as it is.",
        index=index,
        id=record_id,
    )


def end_session(tx: Writer, session_id: str, reason: str, src: Source) -> SessionRow:
    """End a session; ending it again repeats the first answer."""
    row = _existing(tx, session_id)
    if row.ended_index is not None:
        return row
    ended_at = render_time(tx.at)
    body = {"session_id": session_id, "ended_at": ended_at, "reason": reason}
    index = tx.append(encode_entry(tx.at, "session.ended", body, src), None)
    ended = row._replace(ended_index=index, ended_at=ended_at, end_reason=reason)
    tx.end_session(ended)
    return ended


def end_idle_sessions(tx: Writer, before_us: int, src: Source) -> None:
    """End what nobody touched for too long; never seal it, for nobody vouched for it."""
    for session_id in tx.idle_sessions(before_us):
        end_session(tx, session_id, "lost", src)


def describe_end(reader: Reader, row: SessionRow) -> SessionEnd:
    """How a session ended, as callers see it: as it was when it ended."""
    seal, ended = reader.find_seal(row.session_id), row.ended_index or 0
    return SessionEnd(
        session_id=row.session_id,
        ended_at=row.ended_at or "",
        record_count=reader.record_count(row.session_id),
        sealed=seal is not None and seal.log_index < ended,
        reason=row.end_reason or "",
        index=ended,
    )


def describe(reader: Reader, row: SessionRow) -> Session:
    """A session as callers see it."""
    return results.session(
        row, reader.find_seal(row.session_id), reader.record_count(row.session_id)
    )


def describe_seal(row: SealRow, *, already: bool) -> Seal:
    """A seal as callers see it."""
    warnings = () if row.closing_reflection else (NO_REFLECTION,)
    return results.seal(row, already=already, warnings=warnings)


def get_root(reader: Reader, session_id: str) -> Seal:
    """The seal of a sealed session."""
    found = reader.find_seal(session_id)
    if found is not None:
        return describe_seal(found, already=True)
    _existing(reader, session_id)
    raise ConflictError(
        f"session {session_id!r:.100} is not sealed",
        code="ERR_NOT_FINALIZED",
        hint="Seal it first (merkle_finalize, `affidavit session seal`).",
    )


def describe_as_of(reader: Reader, row: SessionRow, end: int) -> Session:
    """A session as it was when the log had so many entries."""
    seal = reader.find_seal(row.session_id)
    if seal is not None and seal.log_index >= end:
        seal = None
    if row.ended_index is not None and row.ended_index >= end:
        row = row._replace(ended_index=None, ended_at=None, end_reason=None)
    return results.session(row, seal, reader.record_count(row.session_id, end))


def list_sessions_as_of(reader: Reader, wanted: ListSessions, end: int) -> list[Session]:
    """Sessions as they were when the log had so many entries, newest first."""
    before = min(end, _place(reader, wanted))
    rows = reader.sessions(
        task_id=wanted.task_id, state=None, continues=wanted.continues, before=before, limit=None
    )
    found = (describe_as_of(reader, row, end) for row in rows)
    return list(islice((s for s in found if wanted.state in (None, s.state)), wanted.limit))


def _place(reader: Reader, wanted: ListSessions) -> int:
    if wanted.after is None:
        return 2**62
    return _existing(reader, wanted.after, "after").log_index


def list_sessions(reader: Reader, wanted: ListSessions) -> list[Session]:
    """Sessions, newest first; `after` is the id of the last one already seen."""
    rows = reader.sessions(
        task_id=wanted.task_id,
        state=wanted.state,
        continues=wanted.continues,
        before=_place(reader, wanted),
        limit=wanted.limit,
    )
    return [describe(reader, row) for row in rows]
