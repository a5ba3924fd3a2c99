"""The tools of the decision trail: records, sessions, and the proof over them."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, structs

from affidavit.apps.mcp.answers import (
    ChainVerdict,
    Finalized,
    Records,
    Root,
    SessionEnded,
    SessionStarted,
)
from affidavit.apps.mcp.envelope import RESULT_CHARACTERS_MAX
from affidavit.apps.mcp.past import (
    GetSession,
    SessionSeen,
    SessionsSeen,
    SessionsWanted,
    fields_of,
    look,
    seen,
)
from affidavit.apps.mcp.tools import Request, Tool, arguments, reading, writing
from affidavit.errors import InputError
from affidavit.ledger.inputs import (
    ListThoughts,
    Name,
    NameSession,
    Note,
    RecordThought,
    Search,
    VerifyChain,
)
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import Found, RecordProof, Session, ThoughtRecord

_PAGE: Final = 100


class StartSession(Struct, frozen=True, forbid_unknown_fields=True):
    """A session to start; its caller is the client that asks."""

    intent: Note
    task_id: Name | None = None
    session_id: Name | None = None
    continues: Name | None = None
    proof_grade: bool = False


class NameThought(Struct, frozen=True, forbid_unknown_fields=True):
    """A record, by its id."""

    id: Name


def _start(ledger: Ledger, given: StartSession, request: Request) -> Session:
    key = request.idempotency_key
    return ledger.start_session(**arguments(given), caller=request.caller, idempotency_key=key)


def _list_thoughts(ledger: Ledger, given: ListThoughts, request: Request) -> Records:
    # In pages, and only as far as an answer can show.
    del request
    wanted, after, left = arguments(given), given.after, given.limit or 2**53 - 1
    found: list[ThoughtRecord] = []
    size = 0
    while left > 0 and size <= RESULT_CHARACTERS_MAX:
        wanted.update(after=after, limit=min(left, _PAGE))
        page = ledger.list_thoughts(**wanted)
        found += page
        if len(page) < wanted["limit"]:
            break
        size += sum(300 + len(record.content or "") for record in page)
        left -= len(page)
        after = page[-1].id
    return Records(found)


def _list_sessions(ledger: Ledger, given: SessionsWanted, request: Request) -> SessionsSeen:
    del request
    wanted = {**fields_of(given), "limit": min(given.limit or _PAGE, _PAGE)}
    found, more = look(ledger, given, lambda at, when: at.list_sessions(**wanted, **when))
    return SessionsSeen(found, **more)


def _get_thought(ledger: Ledger, given: NameThought, request: Request) -> ThoughtRecord:
    del request
    found = ledger.get_thought(given.id)
    if found is None:
        raise InputError(
            f"id: there is no record {given.id!r:.100}",
            code="ERR_NOT_FOUND",
            hint="List the records to see their ids.",
            field="id",
        )
    return found


def _prove(ledger: Ledger, given: NameThought, request: Request) -> RecordProof:
    del request
    return ledger.prove(given.id)


def _get_session(ledger: Ledger, given: GetSession, request: Request) -> SessionSeen:
    del request
    found, more = look(ledger, given, lambda at, when: at.get_session(given.session_id, **when))
    if found is None:
        raise InputError(
            f"session_id: there is no session {given.session_id!r:.100}",
            code="ERR_SESSION_NOT_FOUND",
            hint="List the sessions to see their ids.",
            field="session_id",
        )
    seen_session: SessionSeen = seen(SessionSeen, found, more)
    return seen_session


def _verify(ledger: Ledger, given: VerifyChain, request: Request) -> dict[str, Any]:
    del request
    return ledger.verify_chain(**arguments(given)).to_dict()


def _search(ledger: Ledger, given: Search, request: Request) -> Found:
    del request
    asked = structs.asdict(given)
    return Found(tuple(ledger.search(asked.pop("query"), **asked)))


TRAIL_TOOLS: Final = (
    Tool(
        "thought_record",
        "Record a decision",
        "Call this when you choose between options, before an edit that is hard to undo, and "
        "before saying done. Say what, why, what else was possible and what remains in doubt. "
        "type: plan (what you intend), analysis (what you learned), decision (what you chose), "
        "reflection (what happened, what is proved). Records cannot be changed: to correct one, "
        "record another that names its id.",
        RecordThought,
        ThoughtRecord,
        writing(Ledger.record_thought),
        binds=("agent_id", "session_id"),
        joins=True,
    ),
    Tool(
        "thought_record_list",
        "Read recorded decisions",
        "Call this before you decide, to see what was decided and why, oldest first; after: id of "
        "the last record seen.",
        ListThoughts,
        Records,
        _list_thoughts,
        reads=True,
        repeatable=True,
    ),
    Tool(
        "audit_session_start",
        "Start a session",
        "Call this when a piece of work begins whose record will be sealed; give its session_id "
        "to every thought_record. continues: the sealed or ended session this goes on from. "
        "proof_grade: cannot be sealed without a closing reflection.",
        StartSession,
        SessionStarted,
        _start,
    ),
    Tool(
        "audit_verify_chain",
        "Check the records",
        "Call this before you seal, or to prove a record again: every hash is computed anew. "
        "One task or one session; without either, every chain. all: count every break.",
        VerifyChain,
        ChainVerdict,
        _verify,
        reads=True,
        repeatable=True,
    ),
    Tool(
        "merkle_finalize",
        "Seal a session",
        "Call this when the closing reflection is recorded: no record can be added afterwards.",
        NameSession,
        Finalized,
        writing(Ledger.seal_session),
        repeatable=True,
        binds=("session_id",),
    ),
    Tool(
        "merkle_root",
        "Show a sealed session's root",
        "Call this after merkle_finalize, for the root to quote elsewhere.",
        NameSession,
        Root,
        reading(Ledger.merkle_root),
        reads=True,
        repeatable=True,
        binds=("session_id",),
    ),
    Tool(
        "audit_session_end",
        "End a session",
        "Call this last, when the work is over or given up.",
        NameSession,
        SessionEnded,
        writing(Ledger.end_session),
        repeatable=True,
        binds=("session_id",),
    ),
    Tool(
        "thought_get",
        "Show one record",
        "Call this to read one record by its id.",
        NameThought,
        ThoughtRecord,
        _get_thought,
        reads=True,
        repeatable=True,
        core=False,
    ),
    Tool(
        "proof_get",
        "Prove one record",
        "Call this when somebody outside is to believe a record: its entry, and a proof that it is "
        "in the log under a signed checkpoint, and in its session once that is sealed.",
        NameThought,
        RecordProof,
        _prove,
        reads=True,
        signs=True,
        repeatable=True,
        core=False,
    ),
    Tool(
        "session_list",
        "List sessions",
        "Call this to find a session, newest first, 100 at a time; after: id of the last seen.",
        SessionsWanted,
        SessionsSeen,
        _list_sessions,
        reads=True,
        repeatable=True,
        core=False,
    ),
    Tool(
        "session_get",
        "Show a session",
        "Call this to see how a session began and where it stands.",
        GetSession,
        SessionSeen,
        _get_session,
        reads=True,
        repeatable=True,
        core=False,
    ),
    Tool(
        "trail_search",
        "Search what was written",
        "Call this to find records, tasks, turns or tool calls by their words; all must be there, "
        "word* finds every word that begins so. kind: thought, task, turn, tool_call, ...",
        Search,
        Found,
        _search,
        reads=True,
        repeatable=True,
        core=False,
    ),
)
