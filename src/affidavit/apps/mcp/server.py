"""The server of the official SDK around a service: it speaks the protocol, the service the ledger.

Tools are registered before a transport connects. A call runs in a thread, because the ledger waits
for the disk; the SDK's loop goes on meanwhile.
"""

from __future__ import annotations

from typing import Any, Final

import anyio.to_thread
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import DEFAULT_MAX_SESSIONS
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)

from affidavit import __version__
from affidavit.apps.mcp.envelope import Answer
from affidavit.apps.mcp.resources import HEALTH, TEMPLATES, read_resource
from affidavit.apps.mcp.schemas import input_schema, output_schema
from affidavit.apps.mcp.service import Peer, Service
from affidavit.apps.mcp.texts import (
    INSTRUCTIONS,
    PROMPT,
    PROMPT_SHOWS,
    PROMPT_TITLE,
    proof_grade_task,
)
from affidavit.apps.mcp.tools import Tool
from affidavit.capture.claude_names import TOOL_USE_ID
from affidavit.core.names import is_name
from affidavit.errors import AffidavitError

IDEMPOTENCY_KEY: Final = "affidavit/idempotency-key"

_JSON: Final = "application/json"
# What a result of the stateless era says of itself; the SDK leaves it out for older clients.
_COMPLETE: Final = {"resultType": "complete"}
# What is registered does not change while a server runs.
_KEPT: Final = CacheHint(ttl_ms=3_600_000, scope="public")
_LISTS: Final = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")

_Context = ServerRequestContext[Any, Any]
# A plain dict in the shape of the wire; the SDK checks it against each version it speaks.
_Result = Any


class Handlers:
    """What the server answers to each method of the protocol."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tools = [_describe(tool, bind_auto=service.bind_auto) for tool in service.tools]
        # The peer of a transport without sessions of its own: one process, one client.
        self._only_peer = Peer()
        self._peers: dict[str, Peer] = {}

    async def list_tools(self, ctx: _Context, params: PaginatedRequestParams | None) -> _Result:
        """Every tool of this server, on one page."""
        del ctx, params
        return {**_COMPLETE, "tools": self._tools}

    async def call_tool(self, ctx: _Context, params: CallToolRequestParams) -> _Result:
        """Carry out a call in a thread; a client that gives up does not stop what is written."""
        tool, given = self._service.tools.find(params.name), params.arguments or {}
        if tool is None:
            raise MCPError(
                INVALID_PARAMS,
                await anyio.to_thread.run_sync(
                    self._service.refuse_unknown, params.name, given, _client(ctx)
                ),
            )
        meta: dict[str, Any] = dict(ctx.meta or {})
        call_id = meta.get(TOOL_USE_ID)
        answer = await anyio.to_thread.run_sync(
            lambda: self._service.call(
                tool,
                given,
                client=_client(ctx),
                peer=self._peer(ctx),
                idempotency_key=meta.get(IDEMPOTENCY_KEY),
                call_id=call_id if isinstance(call_id, str) else None,
            )
        )
        return _result(answer)

    def _peer(self, ctx: _Context) -> Peer | None:
        """Who this connection is; a stateless request over HTTP has no connection to remember."""
        if ctx.request is None:
            return self._only_peer
        session = ctx.request.headers.get("mcp-session-id")
        if session is None:
            return None
        # In the order they were last used; the transport forgets idle sessions, and so does this.
        peer = self._peers.pop(session, Peer())
        self._peers[session] = peer
        if len(self._peers) > DEFAULT_MAX_SESSIONS:
            del self._peers[next(iter(self._peers))]
        return peer

    async def list_resources(self, ctx: _Context, params: PaginatedRequestParams | None) -> _Result:
        """The one resource that needs no id."""
        del ctx, params
        health = {
            "uri": HEALTH,
            "name": "health",
            "title": "Health",
            "mimeType": "application/json",
        }
        return {**_COMPLETE, "resources": [health]}

    async def list_templates(self, ctx: _Context, params: PaginatedRequestParams | None) -> _Result:
        """Resources that are named by an id."""
        del ctx, params
        return {
            **_COMPLETE,
            "resourceTemplates": [
                {"uriTemplate": uri, "name": name, "description": shows, "mimeType": _JSON}
                for uri, name, shows in TEMPLATES
            ],
        }

    async def read_resource(self, ctx: _Context, params: ReadResourceRequestParams) -> _Result:
        """A resource as JSON text."""
        del ctx
        uri, service = str(params.uri), self._service
        try:
            text = await anyio.to_thread.run_sync(
                lambda: read_resource(service.ledger, service.facts, uri)
            )
        except AffidavitError as error:
            raise MCPError(INVALID_PARAMS, error.message, {"uri": uri}) from None
        if text is None:
            raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
        return {**_COMPLETE, "contents": [{"uri": uri, "mimeType": _JSON, "text": text}]}

    async def list_prompts(self, ctx: _Context, params: PaginatedRequestParams | None) -> _Result:
        """The one prompt."""
        del ctx, params
        arguments = [
            {"name": "title", "description": "What is to be done", "required": True},
            {"name": "agent_id", "description": "Your name in the record", "required": False},
        ]
        return {
            **_COMPLETE,
            "prompts": [
                {
                    "name": PROMPT,
                    "title": PROMPT_TITLE,
                    "description": PROMPT_SHOWS,
                    "arguments": arguments,
                }
            ],
        }

    async def get_prompt(self, ctx: _Context, params: GetPromptRequestParams) -> _Result:
        """The sequence of a proof-grade task, for one task."""
        if params.name != PROMPT:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name[:100]!r}")
        given = params.arguments or {}
        if not given.get("title"):
            raise MCPError(INVALID_PARAMS, "The argument title is missing")
        client = _client(ctx)
        agent = given.get("agent_id") or (client[0] if client else "")
        text = proof_grade_task(given["title"], agent if is_name(agent) else "<your name>")
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {**_COMPLETE, "description": PROMPT_SHOWS, "messages": [message]}


def make_server(service: Service) -> Server[Any]:
    """The SDK's server with everything registered; both eras of the protocol are served."""
    does = Handlers(service)
    minimal = service.facts.mode == "minimal"
    beyond_tools: dict[str, Any] = {
        "on_list_resources": does.list_resources,
        "on_list_resource_templates": does.list_templates,
        "on_read_resource": does.read_resource,
        "on_list_prompts": does.list_prompts,
        "on_get_prompt": does.get_prompt,
    }
    schemas = {tool.name: input_schema(tool.input) for tool in service.tools}
    return Server(
        "affidavit",
        version=__version__,
        title="Affidavit",
        instructions=INSTRUCTIONS,
        cache_hints={
            **dict.fromkeys(_LISTS, _KEPT),
            "server/discover": _KEPT,
            "resources/read": CacheHint(ttl_ms=0, scope="private"),
        },
        get_tool_input_schema=schemas.get,
        on_list_tools=does.list_tools,
        on_call_tool=does.call_tool,
        **({} if minimal else beyond_tools),
    )


def _describe(tool: Tool, *, bind_auto: bool) -> _Result:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input_schema(tool.input, optional=tool.binds if bind_auto else ()),
        "outputSchema": output_schema(tool.answer, refuses_inside=tool.refuses_inside),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.only_reads,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.repeatable,
            "openWorldHint": False,
        },
    }


def _client(ctx: _Context) -> tuple[str, str] | None:
    """Name and version that the client gave of itself."""
    known = ctx.session.client_params
    return None if known is None else (known.client_info.name, known.client_info.version)


def _result(answer: Answer) -> _Result:
    return {
        **_COMPLETE,
        "content": [{"type": "text", "text": text} for text in answer.texts],
        "structuredContent": answer.structure,
        "isError": answer.is_error,
    }
