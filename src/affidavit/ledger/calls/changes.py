"""Being told of what is committed, and asking the views in SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from affidavit.core.kinds import BODIES
from affidavit.core.names import quoted
from affidavit.errors import invalid
from affidavit.ledger.feed import Change, ChangeHandle, Subscription
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import REQUIRED, read_callable, read_id

CAPACITY_MAX: Final = 100_000

_WORDS: Final = frozenset(word for kind in BODIES for word in (kind, kind.partition(".")[0]))


class Changes(Handle):
    """Calls about changes, and raw queries; they are never tools for agents."""

    def subscribe(
        self,
        kinds: Iterable[str] | None = None,
        since: int | None = None,
        capacity: int = 1_000,
    ) -> Subscription:
        """Changes after they are committed, in log order, from the index `since` on.

        By default from now on. `kinds` are kinds (`turn.asserted`) or nouns (`turn`). To go on
        after a stop, subscribe with the last index seen plus one.
        """
        wanted = _read_kinds(kinds)
        for name, value, least in (("since", since, 0), ("capacity", capacity, 1)):
            if value is None and name == "since":
                continue
            if type(value) is not int or not least <= value < 2**62:
                raise invalid(name, f"{quoted(value, 40)} is not a number from {least} on")
        start = len(self) if since is None else since
        return Subscription(self._context, wanted, start, min(capacity, CAPACITY_MAX))

    def on_change(
        self, kind: str = REQUIRED, callback: Callable[[Change], object] = REQUIRED
    ) -> ChangeHandle:
        """Call back with each change of a kind or noun, in a thread of its own, until closed."""
        wanted = frozenset((_read_kind(kind, "kind"),))
        if read_callable(callback, "callback") is None:
            raise invalid("callback", "is missing")
        return ChangeHandle(Subscription(self._context, wanted, len(self), 1_000), callback)

    def query(
        self, sql: str = REQUIRED, params: Sequence[Any] | Mapping[str, Any] = ()
    ) -> list[dict[str, Any]]:
        """Rows of one reading statement over the views, at most 10,000, within 10 seconds.

        Salts read as null. `format_timestamp(at)`, `to_int(x)` and `to_bool(x)` are at hand.
        """
        if not isinstance(sql, str) or not sql.strip():
            raise invalid("sql", "is not a statement")
        if isinstance(params, str | bytes) or not isinstance(params, Sequence | Mapping):
            raise invalid("params", f"is {type(params).__name__}, not a list or a dict")
        return self._context.store.query(sql, params)


def _read_kinds(kinds: Any) -> frozenset[str] | None:
    if kinds is None:
        return None
    if isinstance(kinds, str | bytes) or not isinstance(kinds, Iterable):
        raise invalid("kinds", "is not a list of kinds")
    return frozenset(_read_kind(kind, "kinds") for kind in kinds)


def _read_kind(kind: Any, field: str) -> str:
    """A kind or a noun; any other word would wait for ever for what never comes."""
    word = read_id(kind, field)
    if word not in _WORDS:
        nouns = ", ".join(sorted(_WORDS - BODIES.keys()))
        raise invalid(
            field, f"{word!r:.60} is no kind of entry", hint=f"A noun ({nouns}), or turn.asserted."
        )
    return word
