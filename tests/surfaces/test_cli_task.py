"""Tasks on the command line: created, listed, changed, moved, finished, deleted."""

from __future__ import annotations

import pytest


@pytest.fixture
def task(cli):
    """The id of a task with every field."""
    return cli(
        "task", "create", "--title", "Fix it", "--project", "p1",
        "--description", "line one\nline two", "--priority", "high", "--assignee", "kim", "--json",
    ).data["id"]  # fmt: skip


def test_a_task_is_created_and_shown(cli, task):
    data = cli("task", "get", task, "--json").data
    assert (data["title"], data["status"], data["project_id"]) == ("Fix it", "INIT", "p1")
    ran = cli("task", "get", task)
    assert f"Task {task}" in ran.out
    for text in ("Fix it", "INIT", "p1", "high", "kim", "    line one\n    line two\n"):
        assert text in ran.out
    assert cli("task", "create", "--title", "Another").out.startswith("Created task ")


def test_update_changes_clears_and_leaves(cli, task):
    data = cli(
        "task", "update", task, "--title", "Fixed", "--clear", "project_id", "--clear",
        "description", "--json",
    ).data  # fmt: skip
    assert (data["title"], data["project_id"], data["description"]) == ("Fixed", None, None)
    assert (data["priority"], data["assignee"]) == ("high", "kim")
    assert cli("task", "update", task, "--project", "p2", "--json").data["project_id"] == "p2"


def test_update_with_nothing_to_do_or_two_wishes_is_refused(cli, task):
    assert "nothing to change" in cli("task", "update", task).err
    ran = cli("task", "update", task, "--priority", "low", "--clear", "priority", "--json")
    assert (ran.code, ran.error["details"]["field"]) == (2, "priority")
    assert cli("task", "update", task, "--clear", "title").code == 2
    assert len(cli("task", "list", "--json").data["tasks"]) == 1


def test_done_needs_a_written_reason(cli, task):
    refused = cli("task", "update", task, "--status", "DONE", "--json")
    assert (refused.code, refused.error["code"]) == (2, "ERR_WRITEBACK_REQUIRED")
    cli("record", "--type", "reflection", "--task", task, "--agent", "kim", "it works now")
    assert cli("task", "update", task, "--status", "DONE", "--json").data["status"] == "DONE"
    assert cli("task", "next").out == "No tasks.\n"


def test_a_task_moves_along_its_lifecycle(cli, task):
    assert cli("task", "transition", task, "GATHER", "--json").data["status"] == "GATHER"
    refused = cli("task", "transition", task, "DONE")
    assert refused.code == 2
    assert "hint: From GATHER it can go to: ANALYZE, CANCELLED." in refused.err
    assert cli("task", "transition", task, "CANCELLED").code == 2
    moved = cli("task", "transition", task, "CANCELLED", "--reason", "not needed")
    assert "CANCELLED" in moved.out
    assert cli("task", "transition", task, "NOWHERE").code == 2


def test_next_shows_what_is_not_finished(cli, task):
    other = cli("task", "create", "--title", "Other", "--json").data["id"]
    cli("task", "transition", task, "CANCELLED", "--reason", "no")
    assert [one["id"] for one in cli("task", "next", "--json").data["tasks"]] == [other]
    assert other in cli("task", "next").out


def test_lists_tell_without_a_project_from_any(cli, task):
    other = cli("task", "create", "--title", "Other", "--json").data["id"]

    def shown(*words):
        return [one["id"] for one in cli("task", "list", *words, "--json").data["tasks"]]

    assert shown() == [task, other]
    assert shown("--project", "p1") == [task]
    assert shown("--no-project") == [other]
    assert shown("--status", "DONE") == []
    assert shown("--limit", "1") == [task]
    assert shown("--offset", "1") == [other]
    assert cli("task", "list", "--project", "p1", "--no-project").code == 2
    assert "1 of 2 tasks; the next: --offset 1" in cli("task", "list", "--limit", "1").out
    assert cli("task", "list", "--offset", "9").out == "No tasks here, of 2 tasks.\n"
    assert cli("task", "list", "--limit", "501").code == 2


def test_a_deleted_task_is_shown_only_when_asked_for(cli, task):
    assert "deleted" in cli("task", "delete", task, "--reason", "a slip").out
    assert cli("task", "list").out == "No tasks.\n"
    listed = cli("task", "list", "--include-deleted", "--json").data
    assert [one["id"] for one in listed["tasks"]] == [task]


@pytest.mark.parametrize(
    "words",
    [
        ("get", "t9"),
        ("update", "t9", "--title", "x"),
        ("transition", "t9", "GATHER"),
        ("delete", "t9"),
    ],
)
def test_a_task_that_is_not_there(cli, words):
    cli("init")
    ran = cli("task", *words, "--json")
    assert (ran.code, ran.error["code"]) == (2, "ERR_NOT_FOUND")


def test_a_retry_creates_one_task(cli):
    words = ("task", "create", "--title", "Once", "--idempotency-key", "k", "--json")
    assert cli(*words).data == cli(*words).data
    assert cli("task", "list", "--json").data["total_count"] == 1


def test_a_title_cannot_draw_on_the_terminal_or_a_second_row(cli):
    cli("task", "create", "--title", "\x1b[2Jone\nt2  DONE")
    lines = cli("task", "list").out.splitlines()
    assert len(lines) == 2
    assert lines[1].endswith("\\x1b[2Jone\\nt2  DONE")
