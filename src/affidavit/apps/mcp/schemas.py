"""JSON Schemas of tools, made from the structs that check inputs and shape answers.

What a model reads must be short: titles and defaults of null go, definitions are folded in.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_NOISE: Final = ("title", "description")
_ERROR: Final = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "hint": {"type": "string"},
        "details": {"type": "object"},
    },
    "required": ["code", "message", "details"],
    "additionalProperties": False,
}
# What a task tool answers inside its data when the state of a task does not allow the call.
_TASK_REFUSAL: Final = {
    "type": "object",
    "properties": {
        "ok": {"const": False},
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "taskId": {"type": "string"},
                "missing_fields": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["code", "message"],
        },
    },
    "required": ["ok", "error"],
    "additionalProperties": False,
}
# What a long answer says about where it stops.
_CUT: Final = {
    "truncated": {"const": True},
    "next_after": {"type": ["string", "integer", "null"]},
    "hint": {"type": "string"},
}


def input_schema(given: type[msgspec.Struct], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema of a tool's arguments; `optional` are those the server can fill in."""
    schema = _plain(given)
    schema["required"] = [name for name in schema["required"] if name not in optional]
    if not schema["required"]:
        del schema["required"]
    return schema


def output_schema(answer: type[msgspec.Struct], *, refuses_inside: bool) -> dict[str, Any]:
    """The schema of a tool's whole result: the envelope with both of its branches."""
    data = _plain(answer)
    data["properties"].update(_CUT)
    return {
        "type": "object",
        "oneOf": [
            _branch(True, "data", {"anyOf": [data, _TASK_REFUSAL]} if refuses_inside else data),
            _branch(False, "error", _ERROR),
        ],
    }


def _branch(ok: bool, key: str, holds: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"ok": {"const": ok}, key: holds},
        "required": ["ok", key],
        "additionalProperties": False,
    }


def _plain(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """A struct's schema in one piece."""
    [whole], parts = msgspec.json.schema_components([struct], ref_template="{name}")
    folded: dict[str, Any] = _fold(whole, parts)
    return folded


def _fold(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_fold(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _fold(parts[node["$ref"]], parts)
    if "properties" in node:
        fields = {name: _fold(field, parts) for name, field in node["properties"].items()}
        rest = {key: item for key, item in node.items() if key not in (*_NOISE, "properties")}
        return {**rest, "properties": fields}
    shown = {key: _fold(item, parts) for key, item in node.items()}
    if shown.get("default", "") is None:
        del shown["default"]
    return _fold_null(shown)


def _fold_null(node: dict[str, Any]) -> dict[str, Any]:
    """`anyOf` a typed value and null, said in one word where there is one."""
    options = node.get("anyOf", [])
    plain = [option for option in options if option != {"type": "null"}]
    if len(plain) != 1 or len(options) != 2:
        return node
    [value] = plain
    rest = {key: item for key, item in node.items() if key != "anyOf"}
    if "enum" in value:
        return {**rest, **value, "enum": [*value["enum"], None]}
    if isinstance(value.get("type"), str):
        return {**rest, **value, "type": [value["type"], "null"]}
    return node
