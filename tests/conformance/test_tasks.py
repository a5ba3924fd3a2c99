"""Tasks: created, read, updated through the gate, listed, and what is to be done next."""

import pytest

from contract.calls import record, refused


def test_a_task_is_created(ledger):
    task = ledger.create_task(
        title="Write it down",
        status="PLAN",
        project_id="p1",
        description="all of it",
        priority="high",
        assignee="a1",
    )
    assert task.id
    assert (task.title, task.status, task.project_id) == ("Write it down", "PLAN", "p1")
    assert (task.description, task.priority, task.assignee) == ("all of it", "high", "a1")
    assert task.created_at == task.updated_at
    assert task.deleted_at is None


def test_a_task_needs_a_title(ledger):
    with refused("INVALID_PARAMS", "title"):
        ledger.create_task()
    assert ledger.list_tasks().total_count == 0


def test_a_task_is_found_by_its_id(ledger):
    task = ledger.create_task(title="x")
    assert ledger.get_task(task.id) == task


def test_a_task_that_does_not_exist_is_none(ledger):
    assert ledger.get_task("no-such-task") is None


def test_reading_a_task_needs_an_id(ledger):
    with refused("INVALID_PARAMS", "id"):
        ledger.get_task("")
    with refused("INVALID_PARAMS", "id"):
        ledger.get_task()


def test_a_task_is_updated(ledger):
    task = ledger.create_task(title="x", assignee="a1")
    updated = ledger.update_task(task.id, title="y", status="GATHER", priority="low")
    assert (updated.title, updated.status, updated.priority) == ("y", "GATHER", "low")
    assert updated.assignee == "a1"
    assert ledger.get_task(task.id) == updated


def test_updating_a_task_that_does_not_exist_is_refused(ledger):
    with refused("ERR_NOT_FOUND") as caught:
        ledger.update_task("no-such-task", title="y")
    assert "no-such-task" in str(caught.value)
    assert caught.value.details["task_id"] == "no-such-task"


def test_done_without_a_record_is_refused(ledger):
    task = ledger.create_task(title="x")
    with refused("ERR_WRITEBACK_REQUIRED") as caught:
        ledger.update_task(task.id, status="DONE")
    assert caught.value.details["missing_fields"] == ["thought_record"]
    assert caught.value.details["task_id"] == task.id
    assert ledger.get_task(task.id) == task


def test_done_with_a_record_is_accepted(ledger):
    task = ledger.create_task(title="x")
    record(ledger, task_id=task.id)
    assert ledger.update_task(task.id, status="DONE").status == "DONE"


def test_a_status_that_does_not_exist_is_refused(ledger):
    task = ledger.create_task(title="x")
    with refused("INVALID_PARAMS", "status"):
        ledger.update_task(task.id, status="FINISHED")
    assert ledger.get_task(task.id) == task


def test_tasks_are_listed_with_their_count(ledger):
    tasks = tuple(ledger.create_task(title=title) for title in "abc")
    page = ledger.list_tasks()
    assert (page.tasks, page.total_count) == (tasks, 3)


def test_tasks_are_listed_by_status(ledger):
    ledger.create_task(title="a")
    wanted = ledger.create_task(title="b", status="PLAN")
    page = ledger.list_tasks(status="PLAN")
    assert (page.tasks, page.total_count) == ((wanted,), 1)


def test_the_next_actions_are_the_unfinished_tasks_in_order(ledger):
    states = ("VERIFY", "INIT", "APPLY", "GATHER", "PLAN", "ANALYZE")
    tasks = tuple(ledger.create_task(title=state, status=state) for state in states)
    found = ledger.next_actions()
    assert (found.tasks, found.total_count) == (tasks, 6)


@pytest.mark.parametrize("finished", ["DONE", "CANCELLED"])
def test_finished_tasks_are_no_next_actions(ledger, finished):
    task, other = ledger.create_task(title="x"), ledger.create_task(title="y")
    record(ledger, task_id=task.id)
    ledger.update_task(task.id, status=finished)
    assert ledger.next_actions().tasks == (other,)
