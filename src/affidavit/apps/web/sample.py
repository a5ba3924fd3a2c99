"""The sample ledger: a short session, recorded as what it is, for somebody who has none yet."""

from __future__ import annotations

from typing import Final

from affidavit import __version__
from affidavit.core.entry import Source
from affidavit.ledger.handle import acting_for
from affidavit.ledger.ledger import Ledger

SESSION: Final = "sample-session"
_SOURCE: Final = Source(auth="none", client=f"affidavit-sample/{__version__}", via="http")
_AGENT: Final = "sample-agent"
_STORY: Final = (
    (
        "plan",
        (
            "Sample record. Compare two ways to look a word up in one million lines: read the file "
            "through (A), or keep an index in memory (B). Choose the one that answers within 10 ms."
        ),
    ),
    (
        "analysis",
        (
            "Sample record. A reads every line for every question. B needs memory once, and one "
            "look-up for each question."
        ),
    ),
    (
        "decision",
        (
            "Sample record. B, because the index fits in memory. A would need a second pass for "
            "every question."
        ),
    ),
    (
        "reflection",
        (
            "Sample record. What is still open: the index is built again at every start. That is "
            "fine for one file and would not be for a thousand."
        ),
    ),
)


def is_empty(ledger: Ledger) -> bool:
    """Whether nobody has recorded anything yet."""
    return not (
        ledger.newest_thoughts(limit=1, text_bytes_max=1)
        or ledger.list_sessions(limit=1)
        or ledger.list_tasks(limit=1, include_deleted=True).total_count
    )


def load_sample(opened: Ledger) -> None:
    """Record the sample, once: the keys make a second click a repetition of the first."""
    ledger = acting_for(opened, _SOURCE)
    task = ledger.create_task(
        title="Sample task: choose how to look words up",
        description="Part of the sample ledger; nobody is waiting for it.",
        assignee=_AGENT,
        idempotency_key="sample-task",
    )
    ledger.start_session(
        session_id=SESSION,
        intent="Sample session: choose how to look words up",
        caller=_AGENT,
        task_id=task.id,
        idempotency_key="sample-session",
    )
    for number, (kind, content) in enumerate(_STORY):
        ledger.record_thought(
            type=kind,
            task_id=task.id,
            agent_id=_AGENT,
            session_id=SESSION,
            content=content,
            idempotency_key=f"sample-record-{number}",
        )
    ledger.update_task(task.id, status="DONE", idempotency_key="sample-done")
    ledger.seal_session(SESSION, idempotency_key="sample-seal")
    ledger.end_session(SESSION, idempotency_key="sample-end")
