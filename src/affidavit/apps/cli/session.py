"""The commands about sessions: start, list, show, seal, root, end."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from affidavit.apps import wiring
from affidavit.apps.cli.opening import (
    as_of,
    asks_of_the_past,
    open_for_reading,
    open_for_writing,
    sign_first,
    write_or_create,
)
from affidavit.apps.cli.render import Answer, count, fields, table
from affidavit.apps.plain import one_line
from affidavit.errors import CODES, AffidavitError, InputError, IntegrityViolation
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Seal, Session

_PAGE = 500


def start(args: argparse.Namespace) -> Answer:
    """Start a session."""
    started = write_or_create(
        args,
        lambda ledger: ledger.start_session(
            intent=args.intent,
            caller=args.caller,
            task_id=args.task,
            session_id=args.session,
            proof_grade=args.proof_grade,
            continues=args.continues,
            project=args.project,
            model=args.model,
            idempotency_key=args.idempotency_key,
        ),
    )
    lines = [f"Started session {one_line(started.session_id)}", *describe_session(started)]
    return Answer(started.to_dict(), lines)


def list_(args: argparse.Namespace) -> Answer:
    """Sessions, newest first."""
    found, moment = as_of(
        args,
        lambda ledger, when: ledger.list_sessions(
            task_id=args.task, state=args.state, after=args.after, limit=args.limit, **when
        ),
    )
    lines = list(
        table(
            ("session", "state", "records", "started", "caller", "intent"),
            [
                (
                    one.session_id,
                    one.state,
                    one.record_count,
                    one.started_at,
                    one.caller,
                    one.intent,
                )
                for one in found
            ],
        )
    )
    if len(found) == args.limit:
        lines.append(f"There may be more: --after {one_line(found[-1].session_id)}")
    data = {"sessions": [one.to_dict() for one in found]}
    if asks_of_the_past(args):
        data |= moment
    return Answer(data, lines if found else ["No sessions."])


def show(args: argparse.Namespace) -> Answer:
    """One session."""
    found, moment = as_of(args, lambda ledger, when: ledger.get_session(args.session, **when))
    if found is None:
        raise InputError(
            f"session_id: there is no session {args.session!r:.100}",
            code="ERR_SESSION_NOT_FOUND",
            hint="`affidavit session list` shows the sessions.",
            field="session_id",
        )
    lines = [f"Session {one_line(found.session_id)} is {found.state}", *describe_session(found)]
    data = found.to_dict()
    return Answer({**data, **moment} if asks_of_the_past(args) else data, lines)


def describe_session(one: Session) -> Iterator[str]:
    """What is known of a session as a whole."""
    ended = None if one.ended_at is None else f"{one.ended_at} ({one.end_reason})"
    return fields(
        [
            ("intent", one.intent),
            ("caller", one.caller),
            ("task", one.task_id),
            ("project", one.project),
            ("model", one.model),
            ("continues", one.continues),
            ("proof grade", "yes" if one.proof_grade else None),
            ("started", one.started_at),
            ("sealed", one.finalized_at),
            ("ended", ended),
            ("records", f"{one.record_count:,}"),
            ("genesis", one.genesis),
            ("root", one.root),
        ]
    )


def seal(args: argparse.Namespace) -> Answer:
    """Seal one session, or every one that was left alone for long enough."""
    if (args.session is None) == (args.idle is None):
        raise InputError(
            "name either a session or --idle AGE", hint="For example `affidavit session seal S1`."
        )
    if args.idle is not None:
        if args.idempotency_key is not None:
            raise InputError(
                "--idempotency-key goes with one session, not with --idle",
                hint="Leave it out: sealing again gives the same answer.",
            )
        return _seal_idle(args)
    with open_for_writing(args) as ledger:
        sealed = ledger.seal_session(args.session, idempotency_key=args.idempotency_key)
        sign_first(ledger)
    again = ", as it was before" if sealed.already_finalized else ""
    lines = [f"Sealed session {one_line(sealed.session_id)}{again}", *_describe_seal(sealed)]
    return Answer(sealed.to_dict(), lines)


def root(args: argparse.Namespace) -> Answer:
    """The root of a sealed session."""
    with open_for_reading(args) as ledger:
        found = ledger.merkle_root(args.session)
    lines = [f"Root of session {one_line(found.session_id)}", *_describe_seal(found)]
    return Answer(found.to_dict(), lines)


def _describe_seal(one: Seal) -> Iterator[str]:
    yield from fields(
        [
            ("root", one.root),
            ("records", f"{one.record_count:,}"),
            ("sealed", one.finalized_at),
            ("entry", one.index),
        ]
    )
    yield from (f"  note: {one_line(warning)}" for warning in one.warnings)


def _seal_idle(args: argparse.Namespace) -> Answer:
    """Seal what nobody touched; one that cannot be sealed does not keep the others from it."""
    sealed: list[Seal] = []
    left: list[tuple[str, AffidavitError]] = []
    with open_for_writing(args) as ledger:
        for session_id in _idle_sessions(ledger, wiring.now_us() - args.idle):
            try:
                sealed.append(ledger.seal_session(session_id))
            except AffidavitError as error:
                if CODES[error.code].exit_code == CODES["ERR_STORE_UNAVAILABLE"].exit_code:
                    raise
                left.append((session_id, error))
        if sealed:
            sign_first(ledger)
    broken = any(isinstance(error, IntegrityViolation) for _, error in left)
    data: dict[str, Any] = {
        "sealed": [one.to_dict() for one in sealed],
        "left": [{"session_id": name, "error": error.to_dict()} for name, error in left],
    }
    lines = [f"Sealed {count(len(sealed), 'session')} left alone for that long."]
    lines += [f"  {one_line(one.session_id)}  root {one.root}" for one in sealed]
    lines += [f"  {one_line(name)}  left: {one_line(error.message)}" for name, error in left]
    return Answer(data, lines, 1 if broken else 0)


def _idle_sessions(ledger: Ledger, before_us: int) -> list[str]:
    """Unsealed sessions, ended or not, that have records and whose newest is older than this."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = ledger.list_sessions(after=after, limit=_PAGE)
        for one in page:
            if one.root is None and one.record_count > 0 and one.at < before_us:
                newest = max(
                    thought.at for thought in ledger.iter_thoughts(session_id=one.session_id)
                )
                if newest < before_us:
                    found.append(one.session_id)
        if len(page) < _PAGE:
            return found
        after = page[-1].session_id


def end(args: argparse.Namespace) -> Answer:
    """End a session."""
    with open_for_writing(args) as ledger:
        ended = ledger.end_session(
            args.session, reason=args.reason, idempotency_key=args.idempotency_key
        )
    lines = [f"Ended session {one_line(ended.session_id)} ({ended.reason})"]
    lines += fields(
        [
            ("ended", ended.ended_at),
            ("records", f"{ended.record_count:,}"),
            ("sealed", "yes" if ended.sealed else "no; it can still be sealed"),
        ]
    )
    return Answer(ended.to_dict(), lines)
