"""What the conformance suite asks a server to have, added to a server that our factory made.

Names and texts are the suite's. Everything of ours stays and is asked first to last as before: a
fixture answers only to its own names.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
COMPLETE = {"resultType": "complete"}
KEY = b"a key of this test alone"

Context = Any
Answer = dict[str, Any]


def text(words: str) -> Answer:
    return {"type": "text", "text": words}


def image() -> Answer:
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def embedded(uri: str, mime: str, words: str) -> Answer:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


def content(*parts: Answer, is_error: bool = False) -> Answer:
    return {**COMPLETE, "content": list(parts), "isError": is_error}


PLAIN = {
    "test_simple_text": content(text("This is a simple text response for testing.")),
    "test_image_content": content(image()),
    "test_audio_content": content({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    "test_embedded_resource": content(
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": content(
        text("Multiple content types test:"),
        image(),
        embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ),
    "test_error_handling": content(
        text("This tool intentionally returns an error for testing"), is_error=True
    ),
    "test_streaming_elicitation": content(text("done")),
}


async def log_thrice(ctx: Context, _: Any) -> Answer:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message(
            level="info", data=words, related_request_id=ctx.request_id
        )
        await anyio.sleep(0.05)
    return content(text("done"))


async def progress(ctx: Context, _: Any) -> Answer:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(0.05)
    return content(text("done"))


async def sample(ctx: Context, params: Any) -> Answer:
    said = types.SamplingMessage(
        role="user", content=types.TextContent(type="text", text=params.arguments["prompt"])
    )
    answer = await ctx.session.create_message(
        [said], max_tokens=100, related_request_id=ctx.request_id
    )
    return content(text(f"LLM response: {answer.content.text}"))


def eliciting(properties: Answer) -> Callable[[Context, Any], Awaitable[Answer]]:
    async def elicit(ctx: Context, params: Any) -> Answer:
        message = (params.arguments or {}).get("message", "Please say")
        schema = {"type": "object", "properties": properties}
        answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        said = json.dumps(answer.content)
        return content(text(f"Elicitation completed: action={answer.action}, content={said}"))

    return elicit


def string(**more: Any) -> Answer:
    return {"type": "string", **more}


def several(**items: Any) -> Answer:
    return {"type": "array", "items": items}


THREE = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
DEFAULTS = {
    "name": string(default="John Doe"),
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": string(enum=["active", "inactive", "pending"], default="active"),
    "verified": {"type": "boolean", "default": True},
}
ENUMS = {
    "untitledSingle": string(enum=THREE),
    "titledSingle": string(oneOf=TITLED),
    "legacyEnum": string(
        enum=["opt1", "opt2", "opt3"], enumNames=["Option One", "Option Two", "Option Three"]
    ),
    "untitledMulti": several(type="string", enum=THREE),
    "titledMulti": several(anyOf=TITLED),
}


def asks(message: str, field: str, type_: str = "string") -> Answer:
    schema = {"type": "object", "properties": {field: {"type": type_}}, "required": [field]}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def sampling(words: str, tokens: int = 100) -> Answer:
    said = {"role": "user", "content": text(words)}
    return {"method": "sampling/createMessage", "params": {"messages": [said], "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}
GREETING = sampling("Generate a greeting", 50)
CONTEXT = {"user_context": asks("What context should the prompt use?", "context")}
NAME = asks("What is your name?", "name")
# Of each tool: what it asks for, round by round; `state` is carried along where it is True.
ROUNDS: dict[str, tuple[list[Answer], bool]] = {
    "test_input_required_result_elicitation": ([{"user_name": NAME}], False),
    "test_input_required_result_sampling": (
        [{"capital_question": sampling("What is the capital of France?")}],
        False,
    ),
    "test_input_required_result_list_roots": ([{"client_roots": ROOTS}], False),
    "test_input_required_result_request_state": (
        [{"confirm": asks("Please confirm", "ok", "boolean")}],
        True,
    ),
    "test_input_required_result_multiple_inputs": (
        [
            {
                "user_name": NAME,
                "greeting": GREETING,
                "client_roots": ROOTS,
            }
        ],
        True,
    ),
    "test_input_required_result_multi_round": (
        [
            {"step1": asks("Step 1: What is your name?", "name")},
            {"step2": asks("Step 2: What is your favorite color?", "color")},
        ],
        True,
    ),
    "test_input_required_result_tampered_state": (
        [{"confirm": asks("Please confirm", "ok", "boolean")}],
        True,
    ),
    "test_input_required_result_capabilities": (
        [{"user_name": NAME, "greeting": GREETING}],
        False,
    ),
}
NEEDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def sign(step: int) -> str:
    return f"{step}.{hmac.new(KEY, str(step).encode(), hashlib.sha256).hexdigest()}"


def read_state(state: str | None) -> int:
    if state is None:
        return 0
    step = state.partition(".")[0]
    if not step.isdecimal() or not hmac.compare_digest(sign(int(step)), state):
        raise MCPError(types.INVALID_PARAMS, "requestState was changed")
    return int(step)


def in_rounds(name: str, ctx: Context, params: Any) -> Answer:
    """Ask, and ask again, until everything is answered."""
    rounds, keeps_state = ROUNDS[name]
    step = read_state(params.request_state)
    answers = dict(params.input_responses or {})
    known = ctx.session.client_capabilities
    wanted = {
        key: ask
        for key, ask in rounds[min(step, len(rounds) - 1)].items()
        if known is None or getattr(known, NEEDS[ask["method"]], None) is not None
    }
    if any(not is_answer(ask, answers.get(key)) for key, ask in wanted.items()):
        return ask_for(wanted, sign(step) if keeps_state else None)
    if step + 1 < len(rounds):
        return ask_for(rounds[step + 1], sign(step + 1))
    said = json.dumps({key: plain(answers[key]) for key in wanted})
    return content(text(f"Hello, state-ok: {said}"))


def plain(answer: Any) -> Any:
    return (
        answer.model_dump(by_alias=True, mode="json") if hasattr(answer, "model_dump") else answer
    )


def is_answer(ask: Answer, answer: Any) -> bool:
    found = plain(answer)
    key = {"elicitation/create": "action", "roots/list": "roots"}.get(ask["method"], "content")
    return isinstance(found, dict) and key in found


def ask_for(requests: Answer, state: str | None) -> Answer:
    asked: Answer = {"resultType": "input_required", "inputRequests": requests}
    return asked if state is None else {**asked, "requestState": state}


async def refuse_without_sampling(ctx: Context, _: Any) -> Answer:
    known = ctx.session.client_capabilities
    if known is None or known.sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "sampling is needed",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return content(text("done"))


TOOLS: dict[str, Callable[[Context, Any], Awaitable[Answer]]] = {
    "test_tool_with_logging": log_thrice,
    "test_logging_tool": log_thrice,
    "test_tool_with_progress": progress,
    "test_sampling": sample,
    "test_elicitation": eliciting({"username": string(), "email": string()}),
    "test_elicitation_sep1034_defaults": eliciting(DEFAULTS),
    "test_elicitation_sep1330_enums": eliciting(ENUMS),
    "test_missing_capability": refuse_without_sampling,
}
PROMPTS: dict[str, tuple[list[str], Callable[[Any], list[Answer]]]] = {
    "test_simple_prompt": ([], lambda _: [text("This is a simple prompt for testing.")]),
    "test_prompt_with_arguments": (
        ["arg1", "arg2"],
        lambda given: [
            text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
        ],
    ),
    "test_prompt_with_embedded_resource": (
        ["resourceUri"],
        lambda given: [
            embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
    ),
    "test_prompt_with_image": ([], lambda _: [image(), text("Please analyze the image above.")]),
    "test_input_required_result_prompt": ([], lambda _: [text("With your context.")]),
}


def resource(uri: str) -> Answer | None:
    if uri == "test://static-text":
        words = "This is the content of the static text resource."
        return {"uri": uri, "mimeType": "text/plain", "text": words}
    if uri == "test://static-binary":
        return {"uri": uri, "mimeType": "image/png", "blob": PNG}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        name = uri.split("/")[3]
        said = {"id": name, "templateTest": True, "data": f"Data for ID: {name}"}
        return {"uri": uri, "mimeType": "application/json", "text": json.dumps(said)}
    return None


def add_fixtures(server: Server[Any]) -> Server[Any]:
    """Put the fixtures beside what the server has."""

    async def call(ctx: Context, params: Any) -> Any:
        if params.name in PLAIN:
            return PLAIN[params.name]
        if params.name in ROUNDS:
            return in_rounds(params.name, ctx, params)
        does = TOOLS.get(params.name)
        return await (own["tools/call"](ctx, params) if does is None else does(ctx, params))

    async def list_tools(ctx: Context, params: Any) -> Any:
        shape = {"type": "object"}
        more = [
            {"name": name, "description": "A fixture.", "inputSchema": shape}
            for name in (*PLAIN, *TOOLS, *ROUNDS)
        ]
        listed = await own["tools/list"](ctx, params)
        return {**listed, "tools": [*listed["tools"], *more]}

    async def list_prompts(ctx: Context, params: Any) -> Any:
        more = [
            {
                "name": name,
                "description": "A fixture.",
                "arguments": [{"name": one, "required": True} for one in takes],
            }
            for name, (takes, _) in PROMPTS.items()
        ]
        listed = await own["prompts/list"](ctx, params)
        return {**listed, "prompts": [*listed["prompts"], *more]}

    async def get_prompt(ctx: Context, params: Any) -> Any:
        if params.name not in PROMPTS:
            return await own["prompts/get"](ctx, params)
        if params.name == "test_input_required_result_prompt" and not params.input_responses:
            return ask_for(CONTEXT, None)
        parts = PROMPTS[params.name][1](params.arguments or {})
        return {**COMPLETE, "messages": [{"role": "user", "content": part} for part in parts]}

    async def list_resources(ctx: Context, params: Any) -> Any:
        more = [
            {"uri": f"test://{name}", "name": name, "description": "A fixture."}
            for name in ("static-text", "static-binary", "watched-resource")
        ]
        listed = await own["resources/list"](ctx, params)
        return {**listed, "resources": [*listed["resources"], *more]}

    async def read_resource(ctx: Context, params: Any) -> Any:
        found = resource(str(params.uri))
        if found is None:
            return await own["resources/read"](ctx, params)
        return {**COMPLETE, "contents": [found]}

    async def nothing(ctx: Context, params: Any) -> Any:
        return {}

    async def complete(ctx: Context, params: Any) -> Any:
        return {**COMPLETE, "completion": {"values": [], "total": 0, "hasMore": False}}

    replaced = {
        "tools/call": (types.CallToolRequestParams, call),
        "tools/list": (types.PaginatedRequestParams, list_tools),
        "prompts/list": (types.PaginatedRequestParams, list_prompts),
        "prompts/get": (types.GetPromptRequestParams, get_prompt),
        "resources/list": (types.PaginatedRequestParams, list_resources),
        "resources/read": (types.ReadResourceRequestParams, read_resource),
    }
    added = {
        "resources/subscribe": (types.SubscribeRequestParams, nothing),
        "resources/unsubscribe": (types.UnsubscribeRequestParams, nothing),
        "logging/setLevel": (types.SetLevelRequestParams, nothing),
        "completion/complete": (types.CompleteRequestParams, complete),
    }
    own = {name: server.get_request_handler(name).handler for name in replaced}
    for name, (shape, handler) in {**replaced, **added}.items():
        server.add_request_handler(name, shape, handler)
    return server
