"""Tasks: the gate, transitions, attempts, nulls, pages, soft deletion."""

import pytest

from contract.calls import Ids, record, reflect, refused, start
from contract.oracle import log, select, snapshot

STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")
ALLOWED = {
    "INIT": ["GATHER", "CANCELLED"],
    "GATHER": ["ANALYZE", "CANCELLED"],
    "ANALYZE": ["PLAN", "CANCELLED"],
    "PLAN": ["APPLY", "CANCELLED"],
    "APPLY": ["VERIFY", "CANCELLED"],
    "VERIFY": ["DONE", "GATHER", "CANCELLED"],
    "DONE": [],
    "CANCELLED": [],
}


def task_in(ledger, status):
    """A task with a record of its own, in a state."""
    task = ledger.create_task(title="x")
    reflect(ledger, task_id=task.id)
    return task if status == "INIT" else ledger.update_task(task.id, status=status)


def test_a_task_starts_at_init_in_its_first_attempt(ledger):
    task = ledger.create_task(title="x")
    assert (task.status, task.attempt) == ("INIT", 1)
    assert (task.project_id, task.description, task.priority, task.assignee) == (None,) * 4


def test_every_change_of_a_task_is_an_entry(ledger, path):
    task = ledger.create_task(title="x", description="d", project_id="p")
    ledger.update_task(task.id, title="y", priority="high", description=None)
    ledger.transition_task(task.id, to="CANCELLED", reason="because")
    ledger.delete_task(task.id)
    created, updated, moved, deleted = (entry.body for entry in log(path)[1:])
    assert created["title"].keys() == created["description"].keys() == {"bytes", "commit"}
    assert (created["status"], created["project_id"], created["assignee"]) == ("INIT", "p", None)
    assert updated["changed"] == {"priority": "high", "description": None}
    assert (updated["title"]["bytes"], updated["description"], updated["reason"]) == (1, None, None)
    assert moved["changed"] == {"status": "CANCELLED"}
    assert (moved["reason"]["bytes"], moved["attempt"]) == (7, 1)
    assert deleted == {"task_id": task.id, "reason": None}


# The gate


def test_by_default_any_record_of_the_task_opens_the_gate(ledger):
    for kind in ("plan", "analysis", "decision", "reflection"):
        task = ledger.create_task(title="x")
        record(ledger, type=kind, task_id=task.id)
        assert ledger.update_task(task.id, status="DONE").status == "DONE"


def test_a_record_of_another_task_does_not_open_the_gate(ledger):
    task, other = ledger.create_task(title="x"), ledger.create_task(title="y")
    reflect(ledger, task_id=other.id)
    reflect(ledger, session_id=start(ledger, task_id=task.id), task_id="another")
    with refused("ERR_WRITEBACK_REQUIRED"):
        ledger.update_task(task.id, status="DONE")


def test_the_strict_gate_wants_a_reflection_as_the_newest_record(open_ledger):
    ledger = open_ledger(settings={"writeback": "reflection"})
    task = ledger.create_task(title="x")
    with refused("ERR_WRITEBACK_REQUIRED") as caught:
        ledger.update_task(task.id, status="DONE")
    assert caught.value.details["missing_fields"]
    for kind, opens in (("plan", False), ("reflection", True), ("decision", False)):
        record(ledger, type=kind, task_id=task.id)
        if opens:
            continue
        with refused("ERR_WRITEBACK_REQUIRED") as caught:
            ledger.update_task(task.id, status="DONE")
        assert caught.value.details["missing_fields"] == ["reflection"]
    reflect(ledger, task_id=task.id)
    assert ledger.update_task(task.id, status="DONE").status == "DONE"


@pytest.mark.parametrize("writeback", ["any", "reflection"])
def test_the_gate_stands_at_creation_too(open_ledger, path, writeback):
    ledger = open_ledger(id_fn=Ids(), settings={"writeback": writeback})
    before = snapshot(path)
    with refused("ERR_WRITEBACK_REQUIRED"):
        ledger.create_task(title="x", status="DONE")
    assert snapshot(path) == before
    reflect(ledger, task_id="i4", id_fn=lambda: "r1")
    task = ledger.create_task(title="x")
    assert task.id == "i3"
    done = ledger.create_task(title="x", status="DONE")
    assert (done.id, done.status) == ("i4", "DONE")


@pytest.mark.parametrize("writeback", ["any", "reflection"])
def test_the_gate_stands_in_transitions_too(open_ledger, path, writeback):
    ledger = open_ledger(settings={"writeback": writeback})
    task = ledger.create_task(title="x", status="VERIFY")
    before = snapshot(path)
    with refused("ERR_WRITEBACK_REQUIRED"):
        ledger.transition_task(task.id, to="DONE")
    assert snapshot(path) == before
    reflect(ledger, task_id=task.id)
    assert ledger.transition_task(task.id, to="DONE").status == "DONE"


def test_a_refused_done_changes_nothing_else_of_the_patch(ledger):
    task = ledger.create_task(title="x")
    with refused("ERR_WRITEBACK_REQUIRED"):
        ledger.update_task(task.id, title="y", status="DONE", priority="high")
    assert ledger.get_task(task.id) == task


def test_other_states_need_no_record(ledger):
    task = ledger.create_task(title="x")
    for status in STATES:
        if status != "DONE":
            assert ledger.update_task(task.id, status=status).status == status


# Transitions


@pytest.mark.parametrize("status", STATES)
def test_transitions_follow_the_lifecycle_and_nothing_else(ledger, status):
    for to in STATES:
        task = task_in(ledger, status)
        if to in ALLOWED[status]:
            assert ledger.transition_task(task.id, to=to, reason="because").status == to
            continue
        with refused("ERR_INVALID_TRANSITION") as caught:
            ledger.transition_task(task.id, to=to, reason="because")
        assert caught.value.details["allowed"] == ALLOWED[status]
        assert status in str(caught.value)
        assert to in str(caught.value)
        assert all(name in caught.value.hint for name in ALLOWED[status])
        assert ledger.get_task(task.id) == task


def test_cancelling_needs_a_reason(ledger):
    task = ledger.create_task(title="x")
    with refused("INVALID_PARAMS", "reason"):
        ledger.transition_task(task.id, to="CANCELLED")
    assert ledger.get_task(task.id) == task


def test_a_failed_verification_is_a_new_attempt(ledger):
    task = ledger.create_task(title="x")
    for attempt in (1, 2, 3):
        for to in ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"):
            task = ledger.transition_task(task.id, to=to)
            assert task.attempt == attempt
    assert ledger.update_task(task.id, title="y").attempt == 3
    assert ledger.update_task(task.id, status="GATHER").attempt == 4


def test_open_transitions_let_an_update_go_anywhere(ledger):
    task = task_in(ledger, "DONE")
    for status in ("INIT", "VERIFY", "CANCELLED", "PLAN", "DONE"):
        assert ledger.update_task(task.id, status=status).status == status


@pytest.mark.parametrize("status", STATES)
def test_strict_transitions_bind_updates_too(ledger, status):
    tasks = [task_in(ledger, status) for _ in STATES]
    ledger.set(transitions="strict")
    for task, to in zip(tasks, STATES, strict=True):
        if to == status or (to in ALLOWED[status] and to != "CANCELLED"):
            assert ledger.update_task(task.id, status=to, title="y").status == to
            continue
        with refused("ERR_INVALID_TRANSITION") as caught:
            ledger.update_task(task.id, status=to, title="y")
        assert caught.value.details["allowed"] == ALLOWED[status]
        assert ledger.get_task(task.id) == task


def test_strict_transitions_bind_creation_to_init(open_ledger):
    ledger = open_ledger(settings={"transitions": "strict"})
    for status in STATES[1:]:
        with refused("ERR_INVALID_TRANSITION") as caught:
            ledger.create_task(title="x", status=status)
        assert caught.value.details["allowed"] == ["INIT"]
    assert ledger.list_tasks().total_count == 0
    assert ledger.create_task(title="x", status="INIT").status == "INIT"


# Patches


def test_in_a_patch_null_clears_and_omitted_leaves(ledger):
    given = {"project_id": "p", "description": "d", "priority": "high", "assignee": "a"}
    task = ledger.create_task(title="x", **given)
    for name in given:
        task = ledger.update_task(task.id, **{name: None})
        given[name] = None
        assert {key: getattr(task, key) for key in given} == given
        assert ledger.get_task(task.id) == task
    assert task.title == "x"


def test_a_cleared_value_can_be_set_again(ledger):
    task = ledger.create_task(title="x", description="d")
    ledger.update_task(task.id, description=None)
    assert ledger.update_task(task.id, description="again").description == "again"
    assert ledger.update_task(task.id, title="y").description == "again"


@pytest.mark.parametrize("title", [None, ""])
def test_a_title_is_never_empty(ledger, title):
    task = ledger.create_task(title="x")
    with refused("INVALID_PARAMS", "title"):
        ledger.update_task(task.id, title=title)
    with refused("INVALID_PARAMS", "title"):
        ledger.create_task(title=title)
    assert ledger.get_task(task.id).title == "x"


def test_a_status_cannot_be_cleared(ledger):
    task = ledger.create_task(title="x")
    with refused("INVALID_PARAMS", "status"):
        ledger.update_task(task.id, status=None)


# Lists


def test_a_page_has_a_hundred_tasks_by_default_and_five_hundred_at_most(ledger):
    tasks = tuple(ledger.create_task(title=f"{n}") for n in range(503))
    page = ledger.list_tasks()
    assert (page.tasks, page.total_count) == (tasks[:100], 503)
    assert ledger.list_tasks(limit=500).tasks == tasks[:500]
    assert ledger.list_tasks(limit=500, offset=500).tasks == tasks[500:]
    assert ledger.list_tasks(limit=7, offset=10).tasks == tasks[10:17]
    with refused("INVALID_PARAMS", "limit") as caught:
        ledger.list_tasks(limit=501)
    assert "500" in str(caught.value)
    assert ledger.next_actions().tasks == tasks


def test_the_count_is_taken_before_paging(ledger):
    for n in range(6):
        ledger.create_task(title=f"{n}", project_id="p" if n % 2 else None)
    page = ledger.list_tasks(project_id="p", limit=1, offset=1)
    assert ([task.title for task in page.tasks], page.total_count) == (["3"], 3)
    beyond = ledger.list_tasks(project_id="p", offset=99)
    assert (beyond.tasks, beyond.total_count) == ((), 3)


def test_in_a_list_a_null_project_means_none_and_an_omitted_one_means_all(ledger):
    loose = ledger.create_task(title="x")
    placed = ledger.create_task(title="y", project_id="p")
    assert ledger.list_tasks().tasks == (loose, placed)
    assert ledger.list_tasks(project_id=None).tasks == (loose,)
    assert ledger.list_tasks(project_id="p").tasks == (placed,)
    assert ledger.list_tasks(project_id="q").tasks == ()


def test_tasks_stay_in_the_order_of_their_creation(ledger):
    tasks = [ledger.create_task(title=f"{n}") for n in range(4)]
    ledger.update_task(tasks[0].id, status="PLAN")
    ledger.update_task(tasks[2].id, title="later")
    assert [one.id for one in ledger.list_tasks().tasks] == [one.id for one in tasks]
    assert [one.id for one in ledger.next_actions().tasks] == [one.id for one in tasks]


# Deletion


def test_a_deleted_task_exists_only_for_who_asks_for_deleted_ones(ledger):
    task, other = ledger.create_task(title="x"), ledger.create_task(title="y")
    deleted = ledger.delete_task(task.id, reason="because")
    assert deleted.deleted_at is not None
    assert ledger.get_task(task.id) is None
    assert ledger.list_tasks().tasks == ledger.next_actions().tasks == (other,)
    assert ledger.list_tasks().total_count == 1
    page = ledger.list_tasks(include_deleted=True)
    assert (page.tasks, page.total_count) == ((deleted, other), 2)


def test_a_deleted_task_takes_no_further_change(ledger, path):
    task = ledger.create_task(title="x")
    ledger.delete_task(task.id)
    before = snapshot(path)
    for change in (
        lambda: ledger.update_task(task.id, title="y"),
        lambda: ledger.transition_task(task.id, to="GATHER"),
        lambda: ledger.delete_task(task.id),
    ):
        with refused("ERR_NOT_FOUND"):
            change()
    assert snapshot(path) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda ledger: ledger.update_task("no-such-task", title="y"),
        lambda ledger: ledger.transition_task("no-such-task", to="GATHER"),
        lambda ledger: ledger.delete_task("no-such-task"),
    ],
)
def test_changing_a_task_that_does_not_exist_is_refused(ledger, change):
    with refused("ERR_NOT_FOUND") as caught:
        change(ledger)
    assert "no-such-task" in str(caught.value)
    assert len(ledger) == 1


def test_the_id_of_a_deleted_task_is_not_given_again(open_ledger):
    ids = iter(["ledger", "k1", "k1"])
    ledger = open_ledger(id_fn=lambda: next(ids))
    ledger.create_task(title="x")
    ledger.delete_task("k1")
    with refused("ERR_DUPLICATE_RECORD"):
        ledger.create_task(title="y")


def test_the_past_of_a_task_stays_in_the_file(ledger, path):
    task = ledger.create_task(title="first", description="d")
    ledger.update_task(task.id, title="second", description=None)
    ledger.delete_task(task.id)
    rows = select(path, "SELECT title, description FROM task_versions ORDER BY log_index")
    assert rows == [("first", "d"), ("second", None), (None, None)]
    now = select(path, "SELECT id, title, description, deleted_at IS NULL FROM tasks")
    assert now == [(task.id, "second", None, 0)]


def test_an_update_that_changes_nothing_writes_nothing(ledger):
    task = ledger.create_task(title="x")
    assert ledger.update_task(task.id) == task
    assert len(ledger) == 2
