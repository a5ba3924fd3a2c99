"""Recording and reading what came from where: links, channels, losses."""

from __future__ import annotations

from affidavit.core.views.sessions import SessionRow
from affidavit.errors import invalid
from affidavit.ledger import captures, redaction, sessions
from affidavit.ledger.captures import (
    Capture,
    Dropped,
    LinkSession,
    NoteDropped,
    SessionLink,
    SwitchCapture,
)
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, StartSession, read_id, read_input
from affidavit.ledger.ports import Reader, Writer
from affidavit.ledger.results import Session


class Captures(Handle):
    """Calls about what came from where."""

    def link_session(
        self,
        session_id: str = REQUIRED,
        source: str = REQUIRED,
        external_id: str = REQUIRED,
    ) -> SessionLink:
        """Record what another program calls a session; the same again writes nothing."""
        fields = {"session_id": session_id, "source": source, "external_id": external_id}
        given = read_input(LinkSession, fields)
        src = self._context.src
        return self._commit(lambda tx: captures.session_link(captures.link_session(tx, given, src)))

    def find_linked(self, source: str = REQUIRED, external_id: str = REQUIRED) -> Session | None:
        """The session that another program's id was linked with last, or None."""
        names = read_id(source, "source"), read_id(external_id, "external_id")

        def ask(reader: Reader) -> Session | None:
            row = reader.find_linked(*names)
            return None if row is None else sessions.describe(reader, row)

        return self._read(ask)

    def list_links(self, session_id: str = REQUIRED) -> list[SessionLink]:
        """What other programs call a session, oldest first."""
        name = read_id(session_id, "session_id")
        return self._read(lambda reader: [captures.session_link(row) for row in reader.links(name)])

    def enter_session(
        self,
        source: str = REQUIRED,
        external_id: str = REQUIRED,
        *,
        intent: str = REQUIRED,
        caller: str | None = None,
        task_id: str | None = None,
        project: str | None = None,
        model: str | None = None,
    ) -> Session:
        """The open session of another program's id: the one linked with it, or a new one.

        Where the linked one is sealed or ended, the new one continues it.
        """
        names = read_id(source, "source"), read_id(external_id, "external_id")
        fields = {
            "intent": intent,
            "caller": caller,
            "task_id": task_id,
            "project": project,
            "model": model,
        }
        given = read_input(StartSession, fields)
        context, cleaned = self._context, redaction.clean(given)
        fresh, salt = context.new_id(), context.new_salt()

        def unit(tx: Writer) -> Session:
            kept, removed = redaction.choose(tx, given, cleaned)

            def start(wanted: StartSession) -> SessionRow:
                return sessions.start_session(
                    tx, wanted, fresh, context.ledger_id, salt, context.src, removed
                )

            row = captures.enter_session(tx, *names, kept, start, context.src)
            return sessions.describe(tx, row)

        return self._commit(unit)

    def start_capture(
        self,
        channel: str = REQUIRED,
        source: str = REQUIRED,
        *,
        version: str | None = None,
        session_id: str | None = None,
        settings_sha256: str | None = None,
    ) -> Capture:
        """Record that a channel is on, for a session or for everything."""
        fields = {
            "channel": channel,
            "source": source,
            "version": version,
            "session_id": session_id,
            "settings_sha256": settings_sha256,
        }
        return self._switch(read_input(SwitchCapture, fields), "started")

    def stop_capture(
        self,
        channel: str = REQUIRED,
        source: str = REQUIRED,
        *,
        version: str | None = None,
        session_id: str | None = None,
        count: int | None = None,
    ) -> Capture:
        """Record that a channel is off; `count` says how many events it brought."""
        fields = {
            "channel": channel,
            "source": source,
            "version": version,
            "session_id": session_id,
            "count": count,
        }
        return self._switch(read_input(SwitchCapture, fields), "stopped")

    def _switch(self, given: SwitchCapture, state: str) -> Capture:
        captures.check_settings_digest(given)
        src = self._context.src
        return self._commit(
            lambda tx: captures.capture(captures.switch_capture(tx, given, state, src))
        )

    def list_captures(self, session_id: str | None = None) -> list[Capture]:
        """Channels switched on and off for a session, or for everything, oldest first."""
        name = None if session_id is None else read_id(session_id, "session_id")
        return self._read(lambda reader: captures.list_captures(reader, name))

    def note_dropped(
        self,
        channel: str = REQUIRED,
        count: int = REQUIRED,
        from_ms: int = REQUIRED,
        to_ms: int = REQUIRED,
    ) -> Dropped:
        """Record that events of a channel were lost between two times."""
        fields = {"channel": channel, "count": count, "from_ms": from_ms, "to_ms": to_ms}
        given = read_input(NoteDropped, fields)
        if given.from_ms > given.to_ms:
            raise invalid("from_ms", f"{from_ms} is after to_ms, {to_ms}")
        src = self._context.src
        return self._commit(lambda tx: captures.dropped(captures.note_dropped(tx, given, src)))

    def list_dropped(self) -> list[Dropped]:
        """What was lost, oldest first."""
        return self._read(lambda reader: [captures.dropped(row) for row in reader.dropped()])
