"""Finding what was written by its words."""

from __future__ import annotations

from affidavit.core.tokens import query_tokens
from affidavit.core.views.payload import NO_PAYLOAD
from affidavit.errors import invalid
from affidavit.ledger.context import Context
from affidavit.ledger.inputs import Search
from affidavit.ledger.ports import WordQuery
from affidavit.ledger.results import Found, SearchHit

_EXCERPT = 160


def search(context: Context, wanted: Search) -> Found:
    """The texts that hold all the words, the best first; read from the ledger itself."""
    tokens = query_tokens(wanted.query)
    if not tokens:
        raise invalid("query", f"{wanted.query!r:.60} has no word in it")
    query = WordQuery(
        tuple(tokens),
        wanted.kind,
        wanted.session_id,
        wanted.task_id,
        0 if wanted.since_us is None else wanted.since_us,
        2**62 if wanted.until_us is None else wanted.until_us,
        wanted.limit,
    )
    hits = []
    with context.store.search(query) as (reader, found):
        for one in found:
            text = reader.payloads(one.log_index, one.log_index + 1).get(one.log_index, {})
            shown = text.get(one.field, NO_PAYLOAD).text
            if shown is None:
                continue  # erased meanwhile
            entry = reader.entry(one.log_index)
            hits.append(
                SearchHit(
                    index=one.log_index,
                    kind=entry.kind,
                    field=one.field,
                    excerpt=_excerpt(shown, tokens),
                    session_id=entry.body.get("session_id"),
                    task_id=entry.body.get("task_id"),
                    id=entry.body.get("id") or entry.body.get("request_id"),
                    at=entry.at,
                    score=round(-one.rank, 4),
                )
            )
    return Found(tuple(hits))


def _excerpt(text: str, tokens: list[str]) -> str:
    """The text around the first word that was asked for."""
    lower = text.lower()
    places = [at for token in tokens if (at := lower.find(token.rstrip("*"))) >= 0]
    start = max(0, min(places, default=0) - _EXCERPT // 3)
    cut = text[start : start + _EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + _EXCERPT < len(text) else ''}"
