"""What an episode of the history observes: turns, tool calls, proposals, and how they came in."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

SPACE = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")


def observe(ledger: Any, name: str) -> int:
    """Every kind of turn, tool call, proposal and capture; how many entries that made."""
    before = len(ledger)

    def uid(what: str) -> str:
        return str(uuid5(SPACE, f"{name} {what}"))

    _talk(ledger, name, uid)
    _call(ledger, name, uid)
    _propose(ledger, name, uid)
    _capture(ledger, name)
    return len(ledger) - before


def _talk(ledger: Any, name: str, uid: Any) -> None:
    ledger.upsert_turn(
        uid("turn"),
        uid("message"),
        "user",
        f"Which index? {name}",
        parent_id=uid("parent"),
        thread_id=f"thread {name}",
        occurred_at_ms=1_776_384_000_000 + ord(name),
        session_id=f"{name}-silent",
        actor="émile",
        model=f"m-{name}",
        usage={"input_tokens": 3 + ord(name)},
        attributes={"client": name},
    )
    ledger.upsert_turn(uid("turn"), uid("message"), "user", "Which index, then?")
    ledger.upsert_turn(uid("answer"), uid("answer"), "assistant", "The second.", thread_id="t")
    ledger.upsert_turn(uid("note"), uid("note"), "sysinfo", f"Nobody needs this {name}.")
    ledger.retract_turn(uid("note"), f"Said by mistake {name}.")
    with ledger.transaction() as tx:
        tx.upsert_turn(uid("moment"), uid("moment"), "tool", f"At one instant {name}.")
        tx.retract_turn(uid("moment"), "Beaten by what was said.")


def _call(ledger: Any, name: str, uid: Any) -> None:
    call = {"vendor": "openai", "tool_name": f"grep-{name}", "session_id": f"{name}-silent"}
    ledger.request_tool_call(
        uid("request"),
        f"{name}-1",
        uid("parent"),
        arguments={"path": "/outside", "pattern": name},
        started_at_ms=1_776_384_000_000 + ord(name),
        actor=f"agent {name}",
        model=f"m-{name}",
        attributes={"try": name},
        **call,
    )
    ledger.decide_call(uid("request"), f"{name}-1", "approved", f"owner {name}", f"Fine {name}.")
    usage = {"output_tokens": 5 + ord(name)}
    ledger.finish_tool_call(uid("request"), f"{name}-1", "completed", [name], usage=usage)
    ledger.request_tool_call(
        uid("request"), f"{name}-2", arguments={"uri": "https://example.org"}, **call
    )
    ledger.request_tool_call(uid("request"), f"{name}-2", arguments={"uri": name}, **call)
    ledger.decide_call(uid("request"), f"{name}-2", "denied", "émile")
    ledger.finish_tool_call(
        uid("request"), f"{name}-2", "failed", error_kind=f"denied {name}", error_msg=f"No {name}."
    )
    ledger.request_tool_call(
        uid("request"), f"{name}-3", args_sha256="ab" * 32, vendor="mcp", tool_name="late"
    )
    ledger.mark_orphans(0)
    ledger.finish_tool_call(uid("request"), f"{name}-3", "completed", f"After all {name}.")
    ledger.request_tool_call(uid("request"), f"{name}-4", arguments="{}", **call)


def _propose(ledger: Any, name: str, uid: Any) -> None:
    def create(what: str, share: float) -> str:
        diffs = [{"path": f"/outside/{name}.py", "diff": f"+{name}"}]
        ledger.create_proposal(uid(what), diffs, share, f"{name}-silent")
        return uid(what)

    whole = create("whole", 0.5 + ord(name) / 1000)
    ledger.decide_proposal(whole, "approved", f"owner {name}", f"It measures well {name}.")
    ledger.apply_proposal(whole, f"abc{name}", 1_776_384_000_000 + ord(name))
    ledger.revert_proposal(whole, f"def{name}")
    ledger.decide_proposal(create("denied", 0.25), "denied", "émile", "No.")
    create("pending", 1.0)


def _capture(ledger: Any, name: str) -> None:
    session = {"session_id": f"{name}-silent"}
    ledger.link_session(f"{name}-silent", f"client-{name}", f"run {name}")
    ledger.link_session(f"{name}-silent", f"client-{name}", f"résumé {name}")
    digest = f"{ord(name):064x}"
    ledger.start_capture("hook", f"client-{name}", version=f"2.{ord(name)}", **session)
    ledger.start_capture(f"proxy-{name}", "other", settings_sha256=digest)
    ledger.stop_capture("hook", f"client-{name}", count=ord(name), **session)
    ledger.note_dropped(f"hook-{name}", ord(name), 5 + ord(name), 7_000 + ord(name))
    ledger.note_dropped("proxy", 1, 8, 9)
