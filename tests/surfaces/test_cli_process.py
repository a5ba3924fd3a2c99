"""The command line as a process: exit codes, pipes, encodings, signals, and how fast it starts."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CALL = [sys.executable, "-m", "affidavit"]
HELP_S_MAX = 0.18
TRIES = 12


def test_a_story_told_in_the_shell(run_cli, path):
    assert run_cli().code == 0
    assert run_cli("init").code == 0
    assert run_cli("verify").code == 3
    words = ("record", "--type", "decision", "--task", "t1", "--agent", "me")
    assert run_cli(*words, "what, and why").code == 0
    assert run_cli(*words, "-", stdin=b"from a pipe").code == 0
    assert run_cli("verify").code == 0
    assert run_cli("frobnicate").code == 2
    assert run_cli("session", "show", "s9").code == 2
    assert run_cli("thoughts", "--ledger", path + ".not").code == 4
    assert run_cli("doctor").code == 0


def test_a_changed_record_ends_in_exit_code_1(run_cli, cli, tamper):
    cli.record()
    tamper("UPDATE thought_records SET content = 'something else'")
    assert run_cli("verify").code == 1
    ran = run_cli("verify", "--json")
    assert ran.code == 1
    assert ran.data["verdict"] == "violation"


def test_the_installed_command_is_the_same():
    [entry] = importlib.metadata.entry_points(group="console_scripts", name="affidavit")
    assert entry.value == "affidavit.apps.cli.main:run"


def test_a_reader_who_leaves_is_met_with_silence(cli):
    for number in range(200):
        cli.record(f"record {number} " + "x" * 1_000)
    process = subprocess.Popen(
        [*CALL, "thoughts"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(30), said) == (141, b"")


def test_a_full_disk_under_the_output_is_said(cli):
    if not Path("/dev/full").exists():
        return
    cli("init")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*CALL, "settings"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 4
    assert done.stderr.startswith("affidavit: the answer cannot be printed")
    assert "Traceback" not in done.stderr


def test_a_closed_standard_output_is_no_crash(cli):
    cli("init")
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *CALL, "settings"],
        stderr=subprocess.PIPE,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0


def test_an_interrupted_command_leaves_130_and_no_traceback():
    process = subprocess.Popen(
        [*CALL, "record", "--type", "plan", "--task", "t", "--agent", "a", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    # More than a pipe holds: once it is written, the command is reading, and waits for the end.
    process.stdin.write(b"x" * 1_000_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_an_output_that_is_not_utf8_shows_codes_instead_of_failing(run_cli, cli):
    cli.record("漢 ä")
    ran = run_cli("thoughts", env={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 0
    assert "\\u6f22 \\xe4" in ran.out
    as_json = run_cli("thoughts", "--json", env={"PYTHONIOENCODING": "ascii"})
    assert json.loads(as_json.out)["data"]["thoughts"][0]["content"] == "漢 ä"


def test_words_that_are_not_utf8_are_refused(cli):
    cli("init")
    done = subprocess.run(
        [*CALL, "record", "--type", "plan", "--task", "t", "--agent", "a", b"\xff\xfe"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_many_processes_record_into_one_ledger(cli):
    cli("init")
    words = [*CALL, "record", "--type", "plan", "--task", "t1", "--agent"]
    running = [
        subprocess.Popen([*words, f"a{number}", "x"], stdout=subprocess.DEVNULL)
        for number in range(6)
    ]
    assert [one.wait(60) for one in running] == [0] * 6
    assert cli("verify", "--task", "t1", "--json").data["record_count"] == 6


def best_of(words: list[str]) -> float:
    """The best of several starts: what the program costs, without what else the machine does."""
    times = []
    for _ in range(TRIES):
        start = time.perf_counter()
        subprocess.run([*CALL, *words], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def test_help_and_version_start_fast():
    for words in (["--help"], ["version"], []):
        took = best_of(words)
        assert took < HELP_S_MAX, f"affidavit {' '.join(words)} took {took:.3f} s"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from affidavit.apps.cli.main import main; main(['record', '--help']); "
        "print(sorted({'sqlite3', 'msgspec', 'affidavit.apps.wiring'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")


def test_a_proxy_loads_nothing_heavy_before_its_server_starts():
    code = (
        "import sys; from affidavit.apps import proxy; from affidavit.apps.cli.main import main; "
        "proxy.leave = sys.exit; proxy.run = lambda *_: "
        "print(sorted({'sqlite3', 'msgspec', 'affidavit.apps.wiring'} & sys.modules.keys())); "
        "main(['proxy', '--', 'x'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize(
    ("call", "code"), [(("verify", "/nowhere/x"), 4), (("verify", "--nonsense"), 2)]
)
def test_an_error_that_cannot_be_said_is_not_taken_for_a_verdict(call, code, more):
    """Exit code 1 means a violation, and is what Python ends with when it cannot print."""
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "affidavit", *call, *more],
            stdout=full, stderr=full, check=False,
        )  # fmt: skip
    assert ran.returncode == code
