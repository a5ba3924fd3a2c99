"""What came from where: links to other programs' sessions, channels on and off, what was lost."""

from __future__ import annotations

import pytest

from contract.calls import record, refused, start

SOURCE = "claude-code"
RUN = "0b0e8c1a-0000-4000-8000-000000000001"


def enter(ledger, external_id=RUN, **given):
    return ledger.enter_session(SOURCE, external_id, **{"intent": "work", **given})


def test_a_link_is_written_once_and_finds_its_session(ledger):
    session = start(ledger)
    assert ledger.find_linked(SOURCE, RUN) is None
    first = ledger.link_session(session, SOURCE, RUN)
    assert ledger.link_session(session, SOURCE, RUN) == first
    assert (first.session_id, first.source, first.external_id) == (session, SOURCE, RUN)
    assert ledger.find_linked(SOURCE, RUN).session_id == session
    assert ledger.find_linked("other", RUN) is None
    assert ledger.list_links(session) == [first]


def test_the_link_made_last_is_the_one_that_is_found(ledger):
    first, second = start(ledger), start(ledger)
    ledger.link_session(second, SOURCE, RUN)
    ledger.link_session(first, SOURCE, RUN)
    assert ledger.find_linked(SOURCE, RUN).session_id == first


def test_one_run_is_one_session_however_often_it_is_entered(ledger):
    first = enter(ledger, caller="agent", project="p", model="m")
    assert (first.caller, first.project, first.model, first.continues) == ("agent", "p", "m", None)
    before = len(ledger)
    assert enter(ledger).session_id == first.session_id
    assert len(ledger) == before
    assert enter(ledger, "another").session_id != first.session_id


@pytest.mark.parametrize("how", ["sealed", "ended"])
def test_what_comes_after_the_end_goes_into_a_session_that_continues_it(ledger, how):
    first = enter(ledger)
    record(ledger, session_id=first.session_id)
    if how == "sealed":
        ledger.seal_session(first.session_id)
    else:
        ledger.end_session(first.session_id)
    second = enter(ledger)
    assert second.session_id != first.session_id
    assert second.continues == first.session_id
    assert ledger.find_linked(SOURCE, RUN).session_id == second.session_id
    assert [one.external_id for one in ledger.list_links(second.session_id)] == [RUN]
    assert enter(ledger).session_id == second.session_id


def test_a_link_to_a_session_that_takes_no_facts_is_refused(ledger):
    with refused("ERR_SESSION_NOT_FOUND"):
        ledger.link_session("nobody", SOURCE, RUN)
    session = start(ledger)
    ledger.end_session(session)
    with refused("ERR_SESSION_ENDED"):
        ledger.link_session(session, SOURCE, RUN)
    with refused("ERR_SESSION_ENDED"):
        ledger.start_capture("hook", SOURCE, session_id=session)


def test_secrets_are_taken_out_of_the_intent_of_a_run(ledger):
    token = "ghp_" + "a1B2" * 9
    assert token not in enter(ledger, intent=f"use {token}").intent


def test_a_channel_is_switched_on_and_off_once(ledger):
    session = start(ledger)
    on = ledger.start_capture("hook", SOURCE, version="2.1", session_id=session)
    assert ledger.start_capture("hook", SOURCE, version="2.1", session_id=session) == on
    newer = ledger.start_capture("hook", SOURCE, version="2.2", session_id=session)
    off = ledger.stop_capture("hook", SOURCE, session_id=session, count=7)
    assert ledger.stop_capture("hook", SOURCE, session_id=session) == off
    again = ledger.start_capture("hook", SOURCE, version="2.2", session_id=session)
    assert ledger.list_captures(session) == [on, newer, off, again]
    assert [one.state for one in ledger.list_captures(session)] == [
        "started", "started", "stopped", "started",
    ]  # fmt: skip
    assert off.count == 7
    assert ledger.list_captures() == []


def test_a_channel_of_everything_belongs_to_no_session(ledger):
    everywhere = ledger.start_capture("proxy", "server", settings_sha256="ab" * 32)
    assert ledger.list_captures() == [everywhere]
    assert everywhere.session_id is None
    with refused("INVALID_PARAMS"):
        ledger.start_capture("proxy", "server", settings_sha256="no digest")
    with refused("ERR_SESSION_NOT_FOUND"):
        ledger.start_capture("proxy", "server", session_id="nobody")


@pytest.mark.parametrize("how", ["sealed", "ended"])
def test_a_channel_may_be_switched_off_after_the_end(ledger, how):
    session = start(ledger)
    record(ledger, session_id=session)
    ledger.start_capture("hook", SOURCE, session_id=session)
    if how == "sealed":
        ledger.seal_session(session)
    else:
        ledger.end_session(session)
    assert ledger.stop_capture("hook", SOURCE, session_id=session).state == "stopped"


def test_what_was_lost_is_on_the_record(ledger):
    lost = ledger.note_dropped("hook", 3, 1_000, 2_000)
    assert ledger.list_dropped() == [lost]
    assert (lost.channel, lost.count, lost.from_ms, lost.to_ms) == ("hook", 3, 1_000, 2_000)
    with refused("INVALID_PARAMS"):
        ledger.note_dropped("hook", 1, 2, 1)
    with refused("INVALID_PARAMS"):
        ledger.note_dropped("hook", -1, 1, 2)
