"""One tool call from its arguments to its answer. Knows nothing of the protocol it came by."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from affidavit.apps.mcp import envelope
from affidavit.apps.mcp.observed_tools import OBSERVED_TOOLS
from affidavit.apps.mcp.run_of_client import RunOfClient
from affidavit.apps.mcp.server_tools import SERVER_TOOLS
from affidavit.apps.mcp.task_tools import TASK_TOOLS
from affidavit.apps.mcp.tools import Facts, Mode, Registry, Request, Tool, choose
from affidavit.apps.mcp.trail_tools import TRAIL_TOOLS
from affidavit.core.canonical import canonicalize_value
from affidavit.core.entry import SALT_BYTES, Source
from affidavit.core.names import is_name
from affidavit.errors import AffidavitError, InputError
from affidavit.ledger.handle import acting_for, leave_entry
from affidavit.ledger.inputs import convert
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.served import FINISHED, ServedCall

# Every tool there is, in the order they are listed. A new one joins here.
TOOLS: Final[tuple[Tool, ...]] = (*TASK_TOOLS, *TRAIL_TOOLS, *OBSERVED_TOOLS, *SERVER_TOOLS)


def check_tools(wanted: str) -> None:
    """Refuse a choice of tools that names one there is not."""
    choose(TOOLS, "full", wanted)


_log = logging.getLogger(__name__)


class Peer:
    """Who is at the other end of a connection, and the session it started last."""

    def __init__(self) -> None:
        self.session_id: str | None = None


class Service:
    """The tools of one ledger, ready to be called; calls may come from many threads."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        mode: Mode = "full",
        tools: str = "core",
        bind_auto: bool = False,
        run: RunOfClient | None = None,
    ) -> None:
        self.ledger = ledger
        self.tools: Registry = choose(TOOLS, mode, tools)
        self.bind_auto = bind_auto
        self._run = run if mode == "full" else None
        self.facts = Facts(mode, time.monotonic())

    def call(
        self,
        tool: Tool,
        given: Mapping[str, Any],
        *,
        client: tuple[str, str] | None = None,
        peer: Peer | None = None,
        idempotency_key: str | None = None,
        call_id: str | None = None,
    ) -> envelope.Answer:
        """Carry out one call; whatever happens, there is an answer."""
        caller = client_name(client)
        arguments = self._filled(tool, given, client, peer)
        request = Request(self.facts, caller, idempotency_key)
        try:
            ledger = self.ledger if tool.silent else self._acting(tool.name, given, caller)
            arguments |= self._joined(tool, arguments, caller, call_id)
        except AffidavitError as error:
            return envelope.refusal(tool.name, arguments, error, inside=tool.refuses_inside)
        try:
            checked = convert(tool.input, arguments)
            answer = envelope.success(tool.name, tool.run(ledger, checked, request), tool.answer)
            if tool.reads and not tool.silent:
                leave_entry(ledger, FINISHED, reads=True)
        except AffidavitError as error:
            _leave_failure(ledger, tool, error.code)
            return envelope.refusal(tool.name, arguments, error, inside=tool.refuses_inside)
        except Exception:  # noqa: BLE001 - the client gets an answer, the operator the trace
            _log.exception("%s failed", tool.name)
            _leave_failure(ledger, tool, AffidavitError.default_code)
            return envelope.bug(tool.name)
        self._link(tool, answer, peer)
        return answer

    def refuse_unknown(
        self, name: str, given: Mapping[str, Any], client: tuple[str, str] | None
    ) -> str:
        """Leave the entry of a call of a tool that is not offered; answers with what to say."""
        told = name if any(name == tool.name for tool in TOOLS) else "unknown"  # it may be anything
        try:
            ledger = self._acting(told, given, client_name(client))
            leave_entry(ledger, InputError.default_code, reads=False)
        except AffidavitError as error:
            _log.warning("no entry of a call of a tool there is not: %s", error.code)
        return f"Unknown tool: {name[:100]!r}. There are: {', '.join(self.tools.names)}"

    def _acting(self, tool: str, given: Mapping[str, Any], caller: str | None) -> Ledger:
        """The ledger as this call uses it: what it writes ends with the entry of the call."""
        call, began = None, time.perf_counter_ns()
        if self.facts.mode == "full":
            call = ServedCall(
                tool,
                caller,
                _digest(given),
                os.urandom(SALT_BYTES),
                lambda: (time.perf_counter_ns() - began) // 1000,
            )
        source = Source("claimed" if caller else "none", caller, "mcp")
        return acting_for(self.ledger, source, call)

    def _filled(
        self,
        tool: Tool,
        given: Mapping[str, Any],
        client: tuple[str, str] | None,
        peer: Peer | None,
    ) -> dict[str, Any]:
        """The arguments, with what the connection can tell of those that are absent."""
        filled = dict(given)
        if not self.bind_auto:
            return filled
        known = {
            "agent_id": client[0] if client and is_name(client[0]) else None,
            "session_id": peer.session_id if peer else None,
        }
        for name in tool.binds:
            if name not in filled and known[name] is not None:
                filled[name] = known[name]
        return filled

    def _joined(
        self, tool: Tool, arguments: Mapping[str, Any], caller: str | None, call_id: str | None
    ) -> dict[str, str]:
        """The session of the client's run, for what names none."""
        if self._run is None or not tool.joins or "session_id" in arguments:
            return {}
        plain = acting_for(self.ledger, Source("claimed" if caller else "none", caller, "mcp"))
        found = self._run.session_for(plain, call_id)
        return {} if found is None else {"session_id": found}

    def _link(self, tool: Tool, answer: envelope.Answer, peer: Peer | None) -> None:
        """Remember which session the connection is in."""
        if peer is None:
            return
        if tool.name == "audit_session_start":
            peer.session_id = _session_of(answer)
        elif tool.name == "audit_session_end" and peer.session_id == _session_of(answer):
            peer.session_id = None


def _leave_failure(ledger: Ledger, tool: Tool, code: str) -> None:
    """The entry of a refused call; a store that fails has refused it as well."""
    if tool.silent:
        return
    try:
        leave_entry(ledger, code, reads=tool.reads)
    except AffidavitError as error:
        _log.warning("no entry of a failed call of %s: %s", tool.name, error.code)


def _session_of(answer: envelope.Answer) -> str:
    session_id: str = answer.structure["data"]["session_id"]
    return session_id


def _digest(given: Mapping[str, Any]) -> str | None:
    """The digest of the arguments as they came; None where their JSON has no canonical form."""
    try:
        return sha256(canonicalize_value(dict(given), "arguments").encode()).hexdigest()
    except (InputError, UnicodeEncodeError):
        return None


def client_name(client: tuple[str, str] | None) -> str | None:
    """A client's name and version as the ledger keeps them, or None where they are no name."""
    if client is None:
        return None
    name = "/".join(part for part in client if part)
    return name if is_name(name) else None
