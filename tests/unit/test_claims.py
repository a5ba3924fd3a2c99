"""Claims that tests pass, and commands that run tests, as agents write them."""

from __future__ import annotations

import time

import pytest

from affidavit.ledger.claims import command_of, is_edit, is_shell, runs_tests, says_tests_pass


@pytest.mark.parametrize(
    "text",
    [
        "All tests pass.",
        "The tests now pass!",
        "Done.\nAll 42 tests are passing",
        "tests are green",
        "The test suite passes",
        "42 passed in 1.2 s",
        "It passes all the unit tests",
        "TESTS PASSED",
        "I fixed it; all tests pass again.",
        "The tests all pass",
    ],
)
def test_a_claim_is_recognised(text):
    assert says_tests_pass(text)


@pytest.mark.parametrize(
    "text",
    [
        "Let me check that the tests pass.",
        "If all tests pass, I will commit.",
        "Do the tests pass?",
        "The tests do not pass.",
        "Not all tests pass",
        "I will run until all tests pass",
        "",
        "Make sure tests pass",
        "The contest passed",
        "tests should pass",
        "I wrote tests.",
    ],
)
def test_a_wish_a_condition_and_its_opposite_are_none(text):
    assert not says_tests_pass(text)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "cd x && python -m pytest tests",
        ".venv/bin/python -m pytest",
        "npm test",
        "uv run pytest",
        "FOO=1 timeout 60 make test",
        "cargo test --all",
        "go test ./...",
        "npx jest",
        "./gradlew clean test",
        "ls; yarn run test | tail -5",
        "python3.11 -m unittest",
        "make -j2 check",
        "python manage.py test",
        "(cd a; tox)",
        "./run-tests.sh",
        "bash run_tests.sh",
        "npm run test:unit",
    ],
)
def test_a_run_of_tests_is_recognised(command):
    assert runs_tests(command)


@pytest.mark.parametrize(
    "command",
    [
        "pip install pytest",
        "cat pytest.ini",
        "echo 'pytest'",
        "grep -r pytest .",
        "git commit -m test",
        "npm install",
        "make",
        "ls tests",
        "",
        "python x.py",
        "vim pytest",
    ],
)
def test_a_command_about_tests_is_not_a_run(command):
    assert not runs_tests(command)


def test_the_command_is_found_also_where_it_is_cut():
    assert command_of('{"command": "pytest -q", "x": 1}') == "pytest -q"
    assert command_of('{"x": 1, "command": "pytest \\"a\\"\\nls and mo') == 'pytest "a"\nls and mo'
    assert command_of('["go", "test"]') == "go test"
    assert command_of("{") == command_of("7") == command_of('{"a": {}}') == ""
    assert is_shell("Bash")
    assert is_shell("mcp__x__run_command")
    assert is_edit("MultiEdit")
    assert not is_edit("Read")


def test_hostile_text_costs_no_time():
    start = time.monotonic()
    for text in (
        "tests " + "now " * 100_000,
        "a=b " * 50_000 + "x",
        "-m " * 100_000,
        "pass all " * 50_000,
    ):
        says_tests_pass(text)
        runs_tests(text)
    assert time.monotonic() - start < 5
