"""Starting, sealing and ending sessions."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from affidavit.ledger import checkpoints, redaction, results, sessions, thoughts
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import (
    REQUIRED,
    EndSession,
    ListSessions,
    NameSession,
    StartSession,
    read_id,
    read_input,
)
from affidavit.ledger.ports import Reader, Writer
from affidavit.ledger.results import Seal, Session, SessionEnd


class Sessions(Handle):
    """Calls about sessions."""

    def start_session(
        self,
        *,
        intent: str = REQUIRED,
        caller: str | None = None,
        task_id: str | None = None,
        session_id: str | None = None,
        proof_grade: bool = False,
        continues: str | None = None,
        project: str | None = None,
        model: str | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Start a session; `continues` is the id of a sealed or ended one it goes on from."""
        given = read_input(
            StartSession,
            {
                "intent": intent,
                "caller": caller,
                "task_id": task_id,
                "session_id": session_id,
                "proof_grade": proof_grade,
                "continues": continues,
                "project": project,
                "model": model,
            },
        )
        context = self._context
        fresh = given.session_id or context.new_id()
        salt, cleaned = context.new_salt(), redaction.clean(given)

        def unit(tx: Writer) -> tuple[Session, int, int]:
            kept, removed = redaction.choose(tx, given, cleaned)
            row = sessions.start_session(
                tx, kept, fresh, context.ledger_id, salt, context.src, removed
            )
            return results.session(row, None, 0), row.log_index, row.log_index

        return self._write(given, unit, _replay_start, idempotency_key)

    def get_session(
        self,
        session_id: str = REQUIRED,
        *,
        as_of: Any = None,
        as_of_index: int | None = None,
    ) -> Session | None:
        """A session by its id, as it is or was, or None."""
        name = read_id(session_id, "session_id")

        def ask(reader: Reader, moment: int | None) -> Session | None:
            row = reader.find_session(name)
            if row is None or (moment is not None and row.at > moment):
                return None
            if moment is None:
                return sessions.describe(reader, row)
            return sessions.describe_as_of(reader, row, reader.end_of(moment))

        return self._read_at(as_of, as_of_index, ask)

    def list_sessions(
        self,
        *,
        task_id: str | None = None,
        state: str | None = None,
        continues: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        as_of: Any = None,
        as_of_index: int | None = None,
    ) -> list[Session]:
        """Sessions, newest first; `after` is the id of the last one already seen."""
        wanted = read_input(
            ListSessions,
            {
                "task_id": task_id,
                "state": state,
                "continues": continues,
                "after": after,
                "limit": limit,
            },
        )

        def ask(reader: Reader, moment: int | None) -> list[Session]:
            if moment is None:
                return sessions.list_sessions(reader, wanted)
            return sessions.list_sessions_as_of(reader, wanted, reader.end_of(moment))

        return self._read_at(as_of, as_of_index, ask)

    def seal_session(
        self, session_id: str = REQUIRED, *, idempotency_key: str | None = None
    ) -> Seal:
        """Seal a session over its records and entries; the second call gives the same answer.

        Where the ledger has a key, the log is signed; if that fails, a warning says so.
        """
        given = read_input(NameSession, {"session_id": session_id})
        context = self._context
        src = context.src

        def unit(tx: Writer) -> tuple[Seal, int, int]:
            row, already = sessions.seal_session(tx, given.session_id, src)
            last = row.log_index - 1 if already else row.log_index
            return sessions.describe_seal(row, already=already), row.log_index, last

        def replay(tx: Writer, first: int, last: int) -> Seal:
            row = tx.find_seal(given.session_id)
            if row is None:
                raise thoughts.session_not_found(given.session_id)
            return sessions.describe_seal(row, already=last < first)

        sealed = self._write(given, unit, replay, idempotency_key, quick=False)
        said = checkpoints.sign_if_keyed(context)
        return sealed if said is None else replace(sealed, warnings=(*sealed.warnings, said))

    def merkle_root(self, session_id: str = REQUIRED) -> Seal:
        """The root of a sealed session."""
        given = read_input(NameSession, {"session_id": session_id})
        return self._read(lambda reader: sessions.get_root(reader, given.session_id))

    def end_session(
        self,
        session_id: str = REQUIRED,
        *,
        reason: str = "done",
        idempotency_key: str | None = None,
    ) -> SessionEnd:
        """End a session; ending it again repeats the first answer."""
        given = read_input(EndSession, {"session_id": session_id, "reason": reason})
        src = self._context.src

        def unit(tx: Writer) -> tuple[SessionEnd, int, int]:
            row = sessions.end_session(tx, given.session_id, given.reason, src)
            end = sessions.describe_end(tx, row)
            return end, end.index, end.index

        def replay(tx: Writer, first: int, last: int) -> SessionEnd:
            del first, last
            return unit(tx)[0]

        return self._write(given, unit, replay, idempotency_key)


def _replay_start(tx: Writer, first: int, last: int) -> Session:
    del last
    row = tx.session_at(first)._replace(ended_index=None, ended_at=None, end_reason=None)
    return results.session(row, None, 0)
