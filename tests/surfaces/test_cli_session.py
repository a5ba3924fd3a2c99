"""Sessions on the command line: started, shown, sealed, ended."""

from __future__ import annotations

import time

import pytest

import affidavit


def test_a_session_lives_from_start_to_end(cli):
    started = cli(
        "session", "start", "--intent", "ship it", "--session", "s1", "--caller", "me", "--json"
    ).data
    assert (started["intent"], started["state"]) == ("ship it", "open")
    cli.record("why", "--session", "s1", type="reflection")
    sealed = cli("session", "seal", "s1", "--json").data
    assert (sealed["record_count"], sealed["already_finalized"]) == (1, False)
    assert cli("session", "root", "s1", "--json").data["root"] == sealed["root"]
    ended = cli("session", "end", "s1", "--reason", "failed", "--json").data
    assert (ended["sealed"], ended["reason"]) == (True, "failed")
    shown = cli("session", "show", "s1", "--json").data
    assert (shown["state"], shown["root"]) == ("ended", sealed["root"])
    again = cli("session", "seal", "s1")
    assert "as it was before" in again.out


def test_plain_text_tells_the_same(cli):
    ran = cli(
        "session", "start", "--intent", "a\x1b[1mb\nc", "--session", "s1", "--task", "t1",
        "--project", "p", "--model", "m", "--proof-grade",
    )  # fmt: skip
    assert "Started session s1" in ran.out
    assert "a\\x1b[1mb\\nc" in ran.out
    for name in ("task", "project", "model", "proof grade", "genesis"):
        assert f"  {name}" in ran.out
    listed = cli("session", "list").out.splitlines()
    assert listed[0].split() == ["SESSION", "STATE", "RECORDS", "STARTED", "CALLER", "INTENT"]
    assert listed[1].split()[:3] == ["s1", "open", "0"]
    assert "Session s1 is open" in cli("session", "show", "s1").out
    ended = cli("session", "end", "s1")
    assert "can still be sealed" in ended.out


def test_a_seal_without_a_reflection_carries_a_note(cli):
    cli("session", "start", "--intent", "x", "--session", "s1")
    cli.record("why", "--session", "s1")
    assert "note: the newest record is not a reflection" in cli("session", "seal", "s1").out
    assert "note:" in cli("session", "root", "s1").out


def test_sessions_are_listed_newest_first_filtered_and_paged(cli):
    for number in range(3):
        cli(
            "session",
            "start",
            "--intent",
            f"n{number}",
            "--session",
            f"s{number}",
            "--task",
            f"t{number % 2}",
        )
    cli("session", "end", "s0")

    def shown(*words):
        listed = cli("session", "list", *words, "--json").data["sessions"]
        return [one["session_id"] for one in listed]

    assert shown() == ["s2", "s1", "s0"]
    assert shown("--task", "t0") == ["s2", "s0"]
    assert shown("--state", "open") == ["s2", "s1"]
    assert shown("--limit", "2") == ["s2", "s1"]
    assert shown("--limit", "2", "--after", "s1") == ["s0"]
    assert "--after s1" in cli("session", "list", "--limit", "2").out
    assert cli("session", "list", "--task", "none").out == "No sessions.\n"


def test_a_session_goes_on_from_an_ended_one(cli):
    cli("session", "start", "--intent", "one", "--session", "s1")
    still_open = cli("session", "start", "--intent", "two", "--continues", "s1", "--json")
    assert (still_open.code, still_open.error["code"]) == (2, "ERR_SESSION_OPEN")
    cli("session", "end", "s1")
    assert (
        cli("session", "start", "--intent", "two", "--continues", "s1", "--json").data["continues"]
        == "s1"
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("session", "show", "s9"), "ERR_SESSION_NOT_FOUND"),
        (("session", "seal", "s9"), "ERR_SESSION_NOT_FOUND"),
        (("session", "root", "s9"), "ERR_SESSION_NOT_FOUND"),
        (("session", "end", "s9"), "ERR_SESSION_NOT_FOUND"),
        (("session", "seal", "s1"), "ERR_NO_RECORDS"),
        (("session", "root", "s1"), "ERR_NOT_FINALIZED"),
        (("session", "start", "--intent", "x", "--session", "s1"), "ERR_SESSION_EXISTS"),
        (("session", "start", "--intent", ""), "INVALID_PARAMS"),
        (("session", "list", "--limit", "0"), "INVALID_PARAMS"),
    ],
)
def test_what_cannot_be_is_refused_with_its_code(cli, words, code):
    cli("session", "start", "--intent", "x", "--session", "s1")
    ran = cli(*words, "--json")
    assert (ran.code, ran.error["code"]) == (2, code)
    assert cli(*words).err.startswith("affidavit: ")


@pytest.mark.parametrize(
    "words",
    [(), ("s1", "--idle", "1h"), ("--idle", "soon"), ("--idle", "1h", "--idempotency-key", "k")],
)
def test_seal_wants_one_session_or_an_age(cli, words):
    cli("session", "start", "--intent", "x", "--session", "s1")
    assert cli("session", "seal", *words).code == 2


def test_seal_idle_seals_what_nobody_touched_and_has_records(cli, path):
    hours_ago = 30

    def clock():
        return time.time_ns() // 1000 - hours_ago * 3_600_000_000

    with affidavit.open(path, clock=clock) as ledger:
        for name in ("old", "empty", "touched", "sealed", "strict"):
            ledger.start_session(intent=name, session_id=name, proof_grade=name == "strict")
        for name in ("old", "touched", "sealed", "strict"):
            ledger.record_thought(
                type="plan", task_id="t", agent_id="a", content=name, session_id=name
            )
        ledger.seal_session("sealed")
        hours_ago = 1
        ledger.record_thought(
            type="plan", task_id="t", agent_id="a", content="new", session_id="touched"
        )
    ran = cli("session", "seal", "--idle", "24h", "--json")
    assert ran.code == 0
    assert [one["session_id"] for one in ran.data["sealed"]] == ["old"]
    [left] = ran.data["left"]
    assert left["session_id"] == "strict"
    assert left["error"]["code"] == "ERR_CLOSING_REFLECTION_REQUIRED"
    assert cli("session", "show", "touched", "--json").data["root"] is None
    # Opening for writing has ended what was idle for a day; that does not keep it from its seal.
    assert cli("session", "show", "old", "--json").data["end_reason"] == "lost"
    shown = cli("session", "seal", "--idle", "30m").out
    assert "Sealed 1 session" in shown
    assert "strict  left: " in shown


def test_seal_idle_looks_at_every_page(cli, monkeypatch):
    from affidavit.apps.cli import session

    monkeypatch.setattr(session, "_PAGE", 2)
    for number in range(5):
        cli("session", "start", "--intent", "x", "--session", f"s{number}")
        cli.record("why", "--session", f"s{number}")
    time.sleep(0.002)
    assert len(cli("session", "seal", "--idle", "0s", "--json").data["sealed"]) == 5


def test_seal_idle_of_a_broken_chain_is_a_violation(cli, tamper):
    for name in ("s1", "s2"):
        cli("session", "start", "--intent", "x", "--session", name)
        cli.record(name, "--session", name)
    tamper("UPDATE thought_records SET content = 'forged' WHERE session_id = 's1'")
    ran = cli("session", "seal", "--idle", "0s", "--json")
    assert ran.code == 1
    assert [one["session_id"] for one in ran.data["sealed"]] == ["s2"]
    assert ran.data["left"][0]["error"]["code"] == "ERR_CHAIN_BROKEN"
