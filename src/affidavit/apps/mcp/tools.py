"""What a tool is, and the list of those a server offers; registering a name twice is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from affidavit.errors import invalid
from affidavit.ledger.ledger import Ledger

Mode = Literal["full", "readonly", "minimal"]
MODES: Final[tuple[Mode, ...]] = ("full", "readonly", "minimal")


class Facts(NamedTuple):
    """What a server knows of itself."""

    mode: Mode
    started_s: float


class Request(NamedTuple):
    """What a tool learns of the call besides its arguments."""

    facts: Facts
    caller: str | None = None
    idempotency_key: str | None = None


Run = Callable[[Ledger, Any, Request], Any]


class Tool(NamedTuple):
    """One tool: what a model is told of it, what it takes and answers, and what it does."""

    name: str
    title: str
    description: str
    input: type[Struct]
    answer: type[Struct]
    run: Run
    # It leaves the ledger as it is.
    reads: bool = False
    # It records nothing, but signs the log with this user's key and remembers what was signed.
    signs: bool = False
    # Calling it again with the same arguments changes nothing more.
    repeatable: bool = False
    # It takes something away from what others see.
    destructive: bool = False
    # In the set that is offered when nobody chooses.
    core: bool = True
    # Arguments the server fills in from the connection when it is told to.
    binds: tuple[str, ...] = ()
    # What it records belongs into the session of the client's run, where it names none.
    joins: bool = False
    # The state of a task that forbids the call is told inside the data.
    refuses_inside: bool = False
    # Its calls leave no entry, and it is there in every mode.
    silent: bool = False

    @property
    def only_reads(self) -> bool:
        """Whether a call of it leaves everything as it was."""
        return self.reads and not self.signs


class Registry:
    """The tools of one server, by name, in the order they were registered."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Offer a tool; a name can be given once."""
        if tool.name in self._tools:
            raise ValueError(f"a tool named {tool.name} is registered already")
        self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def find(self, name: str) -> Tool | None:
        """A tool by its name."""
        return self._tools.get(name)

    @property
    def names(self) -> list[str]:
        """What is registered."""
        return list(self._tools)


def choose(tools: Iterable[Tool], mode: Mode, wanted: str) -> Registry:
    """The tools of a mode: `wanted` is core, all, or names with commas between them."""
    known = {tool.name: tool for tool in tools}
    chosen = _wanted(known, wanted)
    chosen |= {name for name, tool in known.items() if tool.silent and mode != "full"}
    return Registry(
        tool for name, tool in known.items() if name in chosen and _is_offered(tool, mode)
    )


def _is_offered(tool: Tool, mode: Mode) -> bool:
    return mode == "full" or tool.silent or (mode == "readonly" and tool.only_reads)


def _wanted(known: dict[str, Tool], wanted: str) -> set[str]:
    if wanted == "all":
        return set(known)
    names: set[str] = set()
    for word in filter(None, (part.strip() for part in wanted.split(","))):
        if word == "core":
            names |= {name for name, tool in known.items() if tool.core}
        elif word in known:
            names.add(word)
        else:
            raise invalid(
                "tools",
                f"there is no tool {word!r:.60}",
                hint=f"core, all, or some of {', '.join(known)}.",
            )
    if not names:
        raise invalid("tools", "names no tool", hint="core, all, or names with commas between.")
    return names


def reading(ledger_call: Callable[..., Any]) -> Run:
    """Runs a tool that is a reading call of the ledger with the same arguments."""

    def run(ledger: Ledger, given: Any, request: Request) -> Any:
        del request
        return ledger_call(ledger, **arguments(given))

    return run


def writing(ledger_call: Callable[..., Any]) -> Run:
    """Runs a tool that is a writing call of the ledger with the same arguments."""

    def run(ledger: Ledger, given: Any, request: Request) -> Any:
        return ledger_call(ledger, **arguments(given), idempotency_key=request.idempotency_key)

    return run


def arguments(given: Struct) -> dict[str, Any]:
    """A checked input as keyword arguments."""
    return {name: getattr(given, name) for name in given.__struct_fields__}
