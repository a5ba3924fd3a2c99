"""`affidavit size`, `tail` and `diff` on the command line."""

import json
import subprocess
import sys

import affidavit
from affidavit.apps import wiring

HOUR_US = 3_600_000_000


def session(cli, path, name, *texts):
    with affidavit.open(path) as ledger:
        ledger.start_session(intent="compare", session_id=name)
    for text in texts:
        cli.record(text, "--session", name)


def test_the_size_names_what_takes_it(cli, path):
    now = wiring.now_us()
    with affidavit.open(path, clock=lambda: now - 48 * HOUR_US) as ledger:
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content="x" * 1_000)
    found = cli("size", "--json").data
    [noun] = found["nouns"]
    assert (noun["noun"], noun["entries"], noun["text_bytes"]) == ("thoughts", 1, 1_000)
    total = found["file_bytes"] + found["wal_bytes"]
    assert 0.9 < found["year_bytes"] / (total * 365 / 2) < 1.1
    assert "thoughts" in cli("size").out
    assert "A year like the last 2.0 days takes" in cli("size").out


def test_a_young_ledger_has_no_rate(cli):
    cli.record("now")
    assert "too young" in cli("size").out
    assert cli("size", "--json").data["year_bytes"] is None


def test_the_tail_shows_the_newest_facts(cli):
    for number in range(5):
        cli.record(f"fact {number}")
    shown = cli("tail", "-n", "2").out.splitlines()
    assert [line.rpartition("  ")[2] for line in shown] == ["fact 3", "fact 4"]
    lines = [json.loads(line) for line in cli("tail", "-n", "9", "--jsonl").out.splitlines()]
    assert [line["index"] for line in lines] == [0, 1, 2, 3, 4, 5]
    assert lines[-1]["texts"] == {"content": "fact 4"}


def test_the_tail_follows_what_another_process_writes(cli, path):
    cli.record("before")
    command = [sys.executable, "-m", "affidavit", "--ledger", path, "tail", "-f", "-n", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert "before" in following.stdout.readline()
        cli.record("and after")
        assert "and after" in following.stdout.readline()
        following.terminate()


def test_two_sessions_beside_each_other(cli, path):
    session(cli, path, "one", "alike", "said so", "only here")
    session(cli, path, "two", "alike", "said otherwise")
    done = cli("diff", "one", "two")
    assert done.out.splitlines()[-1] == (
        "2 alike, 1 with other texts, 1 only in the first, 0 only in the second"
    )
    assert "    - said so" in done.out
    assert "    + said otherwise" in done.out
    steps = cli("diff", "one", "two", "--json").data["steps"]
    assert [step["how"] for step in steps] == ["=", "=", "~", "-"]
    assert cli("diff", "one", "nowhere").code == 2
