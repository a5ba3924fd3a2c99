"""The page of a session whose log was signed with its true key: red where the program is, too."""

from __future__ import annotations

import pytest

from affidavit.apps.report.page_file import render_page
from affidavit.core.archive import decode_archive
from affidavit.core.bundle import RecordPath, Scope
from affidavit.core.merkle import Digest
from surfaces.browsing import Visit
from tamper.evidence_kit import (
    ENDED,
    ENTRIES,
    SEAL,
    ForgedLog,
    Opened,
    change_entry,
    entry,
    judge,
    payloads_of,
    session_file,
)

WHOLE, OPEN = ForgedLog(ENTRIES), ForgedLog(ENTRIES[:8])
ERASURE = {"by": "owner", "field_count": 1, "fields": [[1, "intent"]], "reason": None}


def with_more(more):
    """Session s1, and behind it one more entry that is said to be of it."""
    log = ForgedLog([*ENTRIES, more])
    indices = [*range(1, 8), SEAL, ENDED, len(ENTRIES)]
    parts = {1: log.part(1, seal=SEAL)}
    return log.evidence(Scope("session", "s1"), indices, payloads_of(indices), parts)


def unsealed(**claims):
    part = OPEN.part(1)._replace(**claims)
    indices = range(1, 8)
    return OPEN.evidence(Scope("session", "s1"), indices, payloads_of(indices), {1: part})


def before_its_start():
    early = entry(1, "session.linked", session_id="s1", source="x", external_id="y")
    log = ForgedLog([ENTRIES[0], early, *ENTRIES[1:8]])
    payloads = {index + 1: shown for index, shown in payloads_of(range(1, 8)).items()}
    return log.evidence(Scope("session", "s1"), range(1, 9), payloads, {2: log.part(2)})


def after_its_end():
    linked = entry(11, "session.linked", session_id="s1", source="x", external_id="y")
    log = ForgedLog([*ENTRIES[:8], ENTRIES[ENDED], linked])
    indices = range(1, 10)
    parts = {1: log.part(1)}
    return log.evidence(Scope("session", "s1"), indices, payloads_of(indices), parts)


def edited(change):
    opened = Opened(session_file(WHOLE))
    change(opened)
    return opened.sealed()


def say_more_in_a_proof(opened):
    name = "proofs/4.tlog-proof"
    opened.files[name] = opened.files[name].replace(b"\nindex", b"\nextra AAAA\nindex", 1)


def add_an_empty_line(opened):
    values = {**opened.lines("payloads.jsonl"), ENDED: {"fields": {}, "index": ENDED}}
    opened.put_lines("payloads.jsonl", values.values())


PATHS = tuple(
    RecordPath(one.log_index, (Digest(bytes(32)),)) for one in OPEN.part(1).records
)  # fmt: skip
BROKEN = {
    "an entry of no session": with_more(
        entry(12, "setting.changed", name="x", old=None, new=1, by=None)
    ),
    "an erasure that nothing needs": with_more(entry(12, "payload.erased", **ERASURE)),
    "a second end": with_more(
        change_entry(ENTRIES[ENDED], lambda value: value.update(at=1_776_384_000_000_012))
    ),
    "an entry before the start": before_its_start(),
    "an entry behind the end": after_its_end(),
    "more entries claimed than there are": unsealed(entry_count=9),
    "fewer records claimed than there are": unsealed(record_count=1),
    "a root without a seal": unsealed(root="0" * 64),
    "paths without a seal": unsealed(records=PATHS),
    "a proof that says more": edited(say_more_in_a_proof),
    "a line without a text": edited(add_an_empty_line),
}


@pytest.fixture(scope="module")
def show(browser, tmp_path_factory):
    visit = Visit(browser)
    file = tmp_path_factory.mktemp("bad") / "bad.html"

    def open_page(data):
        file.write_text(render_page(decode_archive(data)), encoding="utf-8")
        return visit.open(file)

    yield open_page
    visit.page.close()
    assert visit.said == []


@pytest.mark.parametrize("what", BROKEN)
def test_it_is_red_on_the_page_and_found_by_the_program(show, what):
    assert judge(BROKEN[what]).verdict == "violation"
    assert show(BROKEN[what]) == "broken"


def test_the_same_sessions_untouched_are_not(show):
    late = entry(
        12, "capture.stopped", channel="hooks", source="x", version=None, session_id="s1",
        settings_sha256=None, count=1,
    )  # fmt: skip
    found = [(judge(data).verdict, show(data)) for data in (
        session_file(WHOLE), session_file(WHOLE, erased=True), with_more(late), unsealed(),
    )]  # fmt: skip
    assert found == [
        ("verified", "held"), ("verified", "open"), ("verified", "held"), ("verified", "open"),
    ]  # fmt: skip
