"""The writing calls that are killed and failed at every point: how each is set up, what it does.

`prepare` runs before anything is armed and gives a call without arguments. `is_there` says whether
the fact is in the ledger: True whole, False not at all; anything between raises.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import pytest

from affidavit.core.entry import Source
from affidavit.errors import ConflictError
from affidavit.ledger.handle import acting_for
from affidavit.ledger.served import ServedCall

TILE = 256
BATCH = 10


class Scenario(NamedTuple):
    """One writing call; `statements` are those it runs, in the order in which each comes first."""

    prepare: Callable
    is_there: Callable
    statements: tuple[str, ...]


def thought(number, **more):
    return {
        "type": "plan", "task_id": "t", "agent_id": "a", "content": f"thought {number}", **more,
    }  # fmt: skip


def contents(ledger):
    return [record.content for record in ledger.list_thoughts()]


def count_is(found, wanted):
    """All of it or none of it."""
    assert found in (0, wanted), f"{found} of {wanted} are there"
    return found == wanted


def of_thought(ledger):
    ledger.record_thought(**thought(0))
    return lambda: ledger.record_thought(**thought(1))


def thought_is_there(ledger):
    return count_is(contents(ledger).count("thought 1"), 1)


def of_served_thought(ledger):
    ledger.record_thought(**thought(0))
    call = ServedCall("thought_record", "client/1", "0" * 64, b"s" * 32, lambda: 7)
    serving = acting_for(ledger, Source("claimed", "client/1", "mcp"), call)
    return lambda: serving.record_thought(**thought(1))


def served_is_there(ledger):
    """The fact and the entry of the call: both or neither."""
    there = thought_is_there(ledger)
    assert ledger.verify().checked["calls"] == there
    return there


def of_bound_thought(ledger):
    ledger.start_session(intent="i", session_id="s")
    ledger.record_thought(**thought(0, session_id="s"))
    return lambda: ledger.record_thought(**thought(1, session_id="s"))


def of_batch(ledger):
    ledger.start_session(intent="i", session_id="s")
    ledger.record_thoughts([thought("before")] * (TILE - 8))
    batch = [thought("batched", session_id="s" if at % 2 else None) for at in range(BATCH)]
    return lambda: ledger.record_thoughts(batch)


def batch_is_there(ledger):
    return count_is(contents(ledger).count("thought batched"), BATCH)


def of_session(ledger):
    return lambda: ledger.start_session(intent="i", session_id="s")


def session_is_there(ledger):
    return ledger.get_session("s") is not None


def of_seal(ledger):
    ledger.start_session(intent="i", session_id="s")
    ledger.record_thoughts([thought(at, session_id="s") for at in range(5)])
    return lambda: ledger.seal_session("s")


def seal_is_there(ledger):
    return ledger.get_session("s").root is not None


def of_end(ledger):
    ledger.start_session(intent="i", session_id="s")
    return lambda: ledger.end_session("s")


def end_is_there(ledger):
    return ledger.get_session("s").ended_at is not None


def of_task(ledger):
    return lambda: ledger.create_task(title="fresh", description="d")


def task_is_there(ledger):
    return count_is([task.title for task in ledger.list_tasks().tasks].count("fresh"), 1)


def of_update(ledger):
    task = ledger.create_task(title="old", priority="low")
    return lambda: ledger.update_task(task.id, title="new", priority="high")


def update_is_there(ledger):
    (task,) = ledger.list_tasks().tasks
    assert (task.title, task.priority) in (("old", "low"), ("new", "high"))
    return task.title == "new"


def of_setting(ledger):
    return lambda: ledger.set(writeback="reflection", transitions="strict")


def setting_is_there(ledger):
    now = ledger.settings["writeback"], ledger.settings["transitions"]
    assert now in (("any", "open"), ("reflection", "strict")), now
    return now == ("reflection", "strict")


def of_keyed(ledger):
    return lambda: ledger.record_thought(**thought(1), idempotency_key="once")


UUID = "00000000-0000-4000-8000-000000000001"


def of_result(ledger):
    ledger.request_tool_call(UUID, "c", vendor="v", tool_name="t", arguments={"a": 1})
    return lambda: ledger.finish_tool_call(UUID, "c", "completed", {"b": 2})


def result_is_there(ledger):
    """The result, and the link to it: both or neither."""
    _, done = ledger.get_tool_call(UUID, "c")
    assert len(ledger.tool_call_history(UUID, "c")) == (1 if done is None else 2)
    return done is not None


def of_transaction(ledger):
    ledger.upsert_turn(UUID, UUID, "user", "before")

    def call():
        with ledger.transaction() as tx:
            tx.upsert_turn(UUID, UUID, "user", "after")
            tx.record_thought(**thought(1))

    return call


def transaction_is_there(ledger):
    there = thought_is_there(ledger)
    assert ledger.get_turn(UUID).content == ("after" if there else "before")
    return there


class Gathered(Exception):
    """A request was taken out of a call."""


class Gatherer:
    """Stands in the place of the commit queue and keeps the requests."""

    def __init__(self):
        self.requests = []

    def submit(self, request):
        self.requests.append(request)
        raise Gathered


def shared_call(ledger, taken=()):
    """Two calls in one commit, as two threads make it; between them one for each id taken."""
    store = ledger._context.store

    def call():
        queue, store._queue = store._queue, Gatherer()
        try:
            for id_fn in (None, *(lambda one=one: one for one in taken), None):
                with suppress(Gathered):
                    ledger.record_thought(**thought("shared"), id_fn=id_fn)
            first, *refused, last = store._queue.requests
        finally:
            store._queue = queue
        store._run_batch([first, *refused, last])
        answers = [first.answer(), last.answer()]
        for request in refused:
            with pytest.raises(ConflictError):
                request.answer()
        return answers

    return call


def of_shared_commit(ledger):
    ledger.record_thought(**thought(0))
    return shared_call(ledger)


def of_shared_commit_and_a_refusal(ledger):
    """The one refused is found only when it is written, so all run again, each by itself."""
    return shared_call(ledger, taken=[ledger.record_thought(**thought(0)).id])


def shared_is_there(ledger):
    return count_is(contents(ledger).count("thought shared"), 2)


_OPEN = ("begin", "head")
_SETTINGS = ("entry", "setting_changes")

SCENARIOS = {
    "thought": Scenario(
        of_thought,
        thought_is_there,
        (*_OPEN, "append", "insert thought_records", "commit"),
    ),
    "bound thought": Scenario(
        of_bound_thought,
        thought_is_there,
        (*_OPEN, "append", "insert thought_records", "commit"),
    ),
    "served thought": Scenario(
        of_served_thought,
        served_is_there,
        (*_OPEN, "append", "insert thought_records", "insert calls", "commit"),
    ),
    "shared commit": Scenario(
        of_shared_commit,
        shared_is_there,
        (*_OPEN, "append", "insert thought_records", "commit"),
    ),
    "shared commit and a refusal": Scenario(
        of_shared_commit_and_a_refusal,
        shared_is_there,
        (*_OPEN, "append", "insert thought_records", "rollback", "savepoint", "task_tip",
         "release", "rollback to", "commit"),
    ),
    "batch over a tile": Scenario(
        of_batch,
        batch_is_there,
        (*_OPEN, "session_head", "session_tip", "append", "insert thought_records", "leaf_hashes",
         "add_node", "commit"),
    ),
    "session": Scenario(
        of_session,
        session_is_there,
        (*_OPEN, "session_head", "append", "insert sessions", "commit"),
    ),
    "seal": Scenario(
        of_seal,
        seal_is_there,
        (*_OPEN, "session_by_id", "seal_of", "entry", "session_entries", "chain_of_session",
         "thoughts_of_session", "thoughts_between", "append", "insert seals", "add_node", "commit"),
    ),
    "end": Scenario(
        of_end,
        end_is_there,
        (*_OPEN, "session_by_id", "append", "end_session", "seal_of", "record_count", "commit"),
    ),
    "task": Scenario(
        of_task,
        task_is_there,
        (*_OPEN, "task_now", *_SETTINGS, "append", "insert task_versions", "commit"),
    ),
    "task update": Scenario(
        of_update,
        update_is_there,
        (*_OPEN, "task_now", "append", "insert task_versions", "supersede", "commit"),
    ),
    "result": Scenario(
        of_result,
        result_is_there,
        (*_OPEN, "version", "append", "insert tool_calls", "supersede", "commit"),
    ),
    "transaction": Scenario(
        of_transaction,
        transaction_is_there,
        (*_OPEN, "version", "entry", "append", "insert conversation_turns", "supersede", "task_tip",
         "insert thought_records", "commit"),
    ),
    "settings": Scenario(
        of_setting,
        setting_is_there,
        (*_OPEN, *_SETTINGS, "append", "insert setting_changes", "commit"),
    ),
    "keyed": Scenario(
        of_keyed,
        thought_is_there,
        (*_OPEN, "find_key", "task_tip", "append", "insert thought_records", "add_key", "commit"),
    ),
}  # fmt: skip
EVERY_STATEMENT = [
    (name, statement) for name, scenario in SCENARIOS.items() for statement in scenario.statements
]
