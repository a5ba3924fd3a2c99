"""Tables for the reference, printed from the code; `make docs` writes them into docs/reference/."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator

from msgspec import UNSET

from affidavit.apps.mcp.schemas import input_schema
from affidavit.apps.mcp.service import TOOLS
from affidavit.errors import CODES
from affidavit.ledger import observed, provenance, results, stories
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.settings import SETTINGS
from affidavit.verify.findings import FINDING_CODES, ChainCount, ChainReport, Finding, Report


def calls() -> Iterator[str]:
    """Every public call of a ledger, with its signature and first sentence."""
    for kind in Ledger.__mro__[1:-1]:
        own = [
            (name, item)
            for name, item in vars(kind).items()
            if not name.startswith("_") and (inspect.isfunction(item) or isinstance(item, property))
        ]
        if not own:
            continue
        yield f"### {(inspect.getdoc(kind) or '').rstrip('.')}\n"
        for name, item in own:
            shown = name if isinstance(item, property) else f"{name}({_parameters(item)})"
            yield f"`{shown}`\n"
            yield f": {' '.join((inspect.getdoc(item) or '').split())}\n"


def _parameters(function: object) -> str:
    shown = []
    signature = inspect.signature(function)  # type: ignore[arg-type]
    keyword_only = False
    for parameter in list(signature.parameters.values())[1:]:
        default = parameter.default
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            shown.append("*")
        if parameter.kind is parameter.VAR_KEYWORD:
            shown.append(f"**{parameter.name}")
        elif default is inspect.Parameter.empty or default is UNSET:
            may_be_left_out = parameter.annotation == "Any"
            shown.append(f"{parameter.name}=..." if may_be_left_out else parameter.name)
        else:
            shown.append(f"{parameter.name}={default!r}")
    return ", ".join(shown)


def answers() -> Iterator[str]:
    """Every answer with its fields."""
    yield "| answer | fields, in this order |"
    yield "|---|---|"
    known = vars(results) | vars(observed) | vars(stories) | vars(provenance)
    for name, kind in known.items():
        if (
            inspect.isclass(kind)
            and issubclass(kind, results.Result)
            and kind is not results.Result
        ):
            yield f"| `{name}` | {_fields(kind.__struct_fields__)} |"
    for told in (Report, Finding, ChainReport, ChainCount):
        yield f"| `{told.__name__}` | {_fields(inspect.signature(told).parameters)} |"


def _fields(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def settings() -> Iterator[str]:
    """Every setting, its default and what it does."""
    yield "| setting | default | may be | what it does |"
    yield "|---|---|---|---|"
    for name, known in SETTINGS.items():
        allowed = known.allowed
        may_be = (
            f"{allowed.start} to {allowed.stop - 1}"
            if isinstance(allowed, range)
            else ", ".join(f"`{value}`" for value in allowed)
        )
        yield f"| `{name}` | `{known.default}` | {may_be} | {known.meaning} |"


def tools() -> Iterator[str]:
    """Every MCP tool: what a model is told of it, its arguments and the fields it answers."""
    for tool in TOOLS:
        schema = input_schema(tool.input)
        required = schema.get("required", ())
        named = [f"`{name}`" if name in required else f"`{name}`?" for name in schema["properties"]]
        marks = [
            word
            for word, holds in (
                ("`core`", tool.core),
                ("reads only", tool.only_reads),
                ("safe to repeat", tool.repeatable),
                ("destructive", tool.destructive),
                ("leaves no entry", tool.silent),
            )
            if holds
        ]
        yield f"### `{tool.name}`\n"
        yield f"{textwrap.fill(tool.description, 118)}\n"
        yield f"- Takes: {', '.join(named) or 'nothing'}"
        yield f"- Answers: {_fields(tool.answer.__struct_fields__)}"
        yield f"- {', '.join(marks) or 'writes'}\n"


def codes() -> Iterator[str]:
    """Every error code, its class, exit code and HTTP status."""
    yield "| code | class | exit | HTTP |"
    yield "|---|---|---|---|"
    for code, known in CODES.items():
        yield f"| `{code}` | `{known.error.__name__}` | {known.exit_code} | {known.http_status} |"


def findings() -> str:
    """Every finding code."""
    return textwrap.fill(", ".join(f"`{code}`" for code in FINDING_CODES), 110)
