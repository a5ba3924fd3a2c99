"""What a transcript of Claude Code says, line by line. Pure: lines in, facts out.

A transcript is a file of JSON lines. Its client calls the format internal and changes it between
releases, so nothing is taken for granted: a line that is no JSON object is `Broken`, a line of
another type than those below is `Other`, and both are counted, never fatal.

    user, assistant     a message of text, tool_use and tool_result blocks; also of a subagent
                        (`isSidechain`), of the client itself (`isMeta`), or what was left of a
                        conversation when it was compacted (`isCompactSummary`)
    system              what the client says of itself
    attachment          of type `queued_command`: what a user typed while the agent worked
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from affidavit.capture.claude_names import turn_id_of
from affidavit.core.names import NAME_BYTES_MAX

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
_ZULU: Final = re.compile(r"Z\Z")
_COUNTS: Final = re.compile(r"[a-z0-9_]{1,64}\Z")
# Texts beyond this, in characters, are kept as their beginning, size and digest.
_CHARS_MAX: Final = 4_000_000
_HEAD_CHARS: Final = 100_000
_INTEGER_MAX: Final = 2**53 - 1


class Said(NamedTuple):
    """A text somebody said."""

    turn_id: str
    message_id: str
    kind: str
    text: str
    thread: str | None
    model: str | None
    usage: dict[str, int] | None
    attributes: dict[str, Any]


class Asked(NamedTuple):
    """A tool was called."""

    call_id: str
    tool: str
    arguments: Any
    thread: str | None
    model: str | None


class Answered(NamedTuple):
    """A tool answered."""

    call_id: str
    outcome: Any
    error: str | None


class Origin(NamedTuple):
    """What a line says of where it belongs."""

    session: str | None
    at_ms: int | None
    cwd: str | None
    version: str | None


class Told(NamedTuple):
    """A fact, and where its line belongs."""

    origin: Origin
    fact: Said | Asked | Answered


class Broken(NamedTuple):
    """A line that is no JSON object."""


class Other(NamedTuple):
    """A line of a type that holds nothing to record."""

    type: str


def read_line(line: bytes) -> Iterator[Told | Broken | Other]:
    """What one line says."""
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        yield Broken()
        return
    if not isinstance(value, dict):
        yield Broken()
        return
    facts = list(_facts(value))
    if not facts:
        yield Other(name_of(value.get("type")) or "without a type")
    origin = _origin(value)
    for fact in facts:
        yield Told(origin, fact)


def _origin(value: Mapping[str, Any]) -> Origin:
    cwd = value.get("cwd")
    return Origin(
        name_of(value.get("sessionId")),
        time_of(value.get("timestamp")),
        cwd if isinstance(cwd, str) and cwd and not _CONTROL.search(cwd) else None,
        name_of(value.get("version")),
    )


def _facts(value: Mapping[str, Any]) -> Iterator[Said | Asked | Answered]:
    kind = value.get("type")
    if kind in ("user", "assistant"):
        yield from _facts_of_message(value, str(kind))
    elif kind == "system" and isinstance(value.get("content"), str) and value["content"]:
        yield _said(value, "system", value["content"], {"subtype": value.get("subtype")})
    elif kind == "attachment":
        told = value.get("attachment")
        if isinstance(told, dict) and told.get("type") == "queued_command":
            for place, (text, more) in enumerate(_texts(told.get("prompt"))):
                yield _said(value, "user", text, {**more, "queued": True}, place)


def _facts_of_message(value: Mapping[str, Any], kind: str) -> Iterator[Said | Asked | Answered]:
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else value.get("content")
    blocks = content if isinstance(content, list) else [content]
    place = 0
    for block in blocks:
        if isinstance(block, dict) and str(block.get("type")).endswith("tool_use"):
            yield from _asked(value, block)
        elif isinstance(block, dict) and str(block.get("type")).endswith("tool_result"):
            yield from _answered(value, block)
        else:
            for text, more in _texts([block]):
                yield _said(value, kind, text, more, place)
                place += 1


def _texts(content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Texts in a prompt or in blocks, with what is to be said about each."""
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            if block:
                yield block, {}
            continue
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        text = block.get("thinking" if kind == "thinking" else "text")
        if isinstance(text, str) and text:
            yield text, {} if kind == "text" else {"block": kind}
        elif kind in ("image", "document"):
            yield _describe_data(str(kind), block.get("source"))


def _describe_data(kind: str, source: Any) -> tuple[str, dict[str, Any]]:
    """A picture is named by its type, size and digest; its bytes are not text."""
    told = source if isinstance(source, dict) else {}
    media, data = name_of(told.get("media_type")) or "unknown", told.get("data")
    about: dict[str, Any] = {"block": kind, "media_type": media}
    if isinstance(data, str):
        raw = data.encode("utf-8", "replace")
        about |= {"base64_bytes": len(raw), "base64_sha256": hashlib.sha256(raw).hexdigest()}
    return f"[{kind}: {media}]", about


def _said(
    value: Mapping[str, Any], kind: str, text: str, more: dict[str, Any], place: int = 0
) -> Said:
    message = value.get("message") if isinstance(value.get("message"), dict) else {}
    about = dict(more)
    for name, word in (("isMeta", "meta"), ("isCompactSummary", "compact_summary")):
        if value.get(name) is True:
            kind, about[word] = "system", True
    if value.get("isSidechain") is True:
        about["sidechain"] = True
    uuid = value.get("uuid")
    if not (isinstance(uuid, str) and uuid):
        # The same line is the same turn: what it says names it.
        told = json.dumps([value.get("sessionId"), value.get("timestamp"), kind, text])
        uuid = hashlib.sha256(told.encode()).hexdigest()
    assert isinstance(message, dict)  # noqa: S101 - for the type checker
    return Said(
        turn_id=turn_id_of(uuid, place),
        message_id=turn_id_of(uuid),
        kind=kind,
        text=_fit_text(text),
        thread=name_of(value.get("agentId")),
        model=_model(message),
        usage=_usage(message.get("usage")) if place == 0 else None,
        attributes={name: item for name, item in about.items() if item is not None},
    )


def _asked(value: Mapping[str, Any], block: Mapping[str, Any]) -> Iterator[Asked]:
    call_id, tool = name_of(block.get("id")), name_of(block.get("name"))
    if call_id is not None:
        message = value.get("message")
        model = _model(message) if isinstance(message, dict) else None
        thread = name_of(value.get("agentId"))
        yield Asked(call_id, tool or "unknown", _fit(block.get("input")), thread, model)


def _answered(value: Mapping[str, Any], block: Mapping[str, Any]) -> Iterator[Answered]:
    call_id = name_of(block.get("tool_use_id"))
    if call_id is None:
        return
    content, told = block.get("content"), value.get("toolUseResult")
    if block.get("is_error") is True:
        yield Answered(call_id, None, _fit_text(_plain(content)) or "(no message)")
        return
    outcome = told if isinstance(told, dict) else {"content": _without_data(content)}
    yield Answered(call_id, _fit(outcome), None)


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for text, _ in _texts(content))


def _without_data(content: Any) -> Any:
    """Pictures in an answer as their sizes and digests."""
    if not isinstance(content, list):
        return content
    return [
        dict(
            zip(
                ("text", "about"),
                _describe_data(str(block["type"]), block.get("source")),
                strict=True,
            )
        )
        if isinstance(block, dict) and block.get("type") in ("image", "document")
        else block
        for block in content
    ]


def _model(message: Mapping[str, Any]) -> str | None:
    return name_of(message.get("model"))


def _usage(usage: Any) -> dict[str, int] | None:
    if not isinstance(usage, dict):
        return None
    counts = {
        name: count
        for name, count in usage.items()
        if isinstance(count, int)
        and not isinstance(count, bool)
        and 0 <= count <= _INTEGER_MAX
        and _COUNTS.match(name)
    }
    return counts or None


def _fit_text(text: str) -> str:
    """A text as a ledger takes it: no halves of characters, and not without end."""
    plain = _NOT_TEXT.sub("\ufffd", text)
    if len(plain) <= _CHARS_MAX:
        return plain
    digest = hashlib.sha256(plain.encode()).hexdigest()
    return f"{plain[:_HEAD_CHARS]}\n[cut: {len(plain):,} characters in all, sha256 {digest}]"


def _fit(value: Any) -> Any:
    """A JSON value as the text a ledger takes; of what is huge, its head, size and digest."""
    text = json.dumps(value)
    if len(text) > _CHARS_MAX:
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"cut": True, "chars": len(text), "sha256": digest, "head": text[:_HEAD_CHARS]}
    return {} if value is None else text


def name_of(value: Any) -> str | None:
    """A name as a ledger takes it, from whatever stood there."""
    if not isinstance(value, str):
        return None
    plain = _CONTROL.sub("\ufffd", value).encode()[:NAME_BYTES_MAX]
    return plain.decode("utf-8", "ignore") or None


def time_of(value: Any) -> int | None:
    """Milliseconds since 1970 of an ISO time, or of a number that is one."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _INTEGER_MAX:
        return value
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(_ZULU.sub("+00:00", value))
        at = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(at.timestamp() * 1_000)
    except (ValueError, OverflowError):
        return None
