"""The states of a task: where each may go, and when a new attempt begins."""

import itertools

import pytest

from affidavit.core.lifecycle import TASK_STATES, TERMINAL_STATES, find_allowed, next_attempt

ALLOWED = {
    "INIT": {"GATHER", "CANCELLED"},
    "GATHER": {"ANALYZE", "CANCELLED"},
    "ANALYZE": {"PLAN", "CANCELLED"},
    "PLAN": {"APPLY", "CANCELLED"},
    "APPLY": {"VERIFY", "CANCELLED"},
    "VERIFY": {"DONE", "GATHER", "CANCELLED"},
    "DONE": set(),
    "CANCELLED": set(),
}


def test_there_are_eight_states_in_the_order_of_work():
    assert tuple(ALLOWED) == TASK_STATES


def test_done_and_cancelled_are_the_ends():
    assert set(TERMINAL_STATES) == {"DONE", "CANCELLED"}


@pytest.mark.parametrize("status", ALLOWED)
def test_a_task_may_go_exactly_where_its_state_allows(status):
    allowed = find_allowed(status)
    assert set(allowed) == ALLOWED[status]
    assert len(allowed) == len(ALLOWED[status])


def test_the_next_step_of_work_is_named_first():
    steps = [find_allowed(status)[0] for status in TASK_STATES[:6]]
    assert steps == ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]


@pytest.mark.parametrize(("status", "to"), list(itertools.product(TASK_STATES, repeat=2)))
def test_only_going_back_from_verify_to_gather_is_a_new_attempt(status, to):
    expected = 4 if (status, to) == ("VERIFY", "GATHER") else 3
    assert next_attempt(3, status, to) == expected
