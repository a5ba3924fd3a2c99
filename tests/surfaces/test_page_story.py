"""Stories on the page: calls beside each other in time, folded texts, diffs, marks, news."""

from __future__ import annotations

import json
import time
import uuid

import pytest

import affidavit
from affidavit.apps.web.rendering import link
from affidavit.apps.web.waterfall import waterfall
from affidavit.core.entry import Source
from affidavit.ledger.handle import acting_for
from surfaces.serving import serving
from surfaces.test_page import HOSTILE, MOVES_OR_REORDERS, UNSAFE, Page, check_harmless
from surfaces.test_page_in_browser import Looker

STORY = link("session", id="s1")
LARGE = json.dumps({"stdout": "word " * 200_000 + "the end"})


def hook(ledger):
    return acting_for(ledger, Source(auth="none", client=None, via="hook"))


def call(ledger, number, tool, arguments, *, started, took=None, outcome=None, session="s1"):
    name = {"request_id": str(uuid.UUID(int=number)), "call_id": f"c{number}"}
    hook(ledger).request_tool_call(
        **name, vendor="v", tool_name=tool, arguments=arguments, session_id=session,
        started_at_ms=started,
    )  # fmt: skip
    if took is not None:
        hook(ledger).finish_tool_call(
            **name, status="completed", outcome=outcome, ended_at_ms=started + took, latency_ms=took
        )


def tell(ledger):
    """A day's work: calls long and short, an edit, a claim, a call nobody finished."""
    now = time.time_ns() // 1_000_000 - 10_000_000
    ledger.start_session(session_id="s1", intent="a running session")
    call(ledger, 1, "Bash", {"command": "ls"}, started=now, took=1_000, outcome=LARGE)
    edit = {"file_path": "a.py", "old_string": "one\ntwo", "new_string": f"one\n{HOSTILE}{UNSAFE}"}
    call(ledger, 2, "Edit", edit, started=now + 1_000, took=500)
    call(ledger, 3, HOSTILE, {"x": HOSTILE + UNSAFE}, started=now + 2_000)
    say(ledger, 4, "Done. All tests pass.")


def say(ledger, number, text):
    name = str(uuid.UUID(int=number))
    hook(ledger).upsert_turn(name, name, "assistant", text, session_id="s1")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    path = str(folder / "trail.db")
    with affidavit.open(path, settings={"payloads": "keep"}) as ledger:
        tell(ledger)
    with serving(path, log=folder / "log") as running:
        yield running
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.verify().valid


def test_a_story_on_the_page_says_what_to_doubt_and_folds_what_is_large(server):
    reply = server.get(STORY)
    page = check_harmless(reply.text)
    assert len(reply.text) < 40_000, "a large text is in the page only when somebody unfolds it"
    assert "says tests pass: no run of tests is recorded since the edit" in page.words
    assert "nobody finished this call" in page.words
    folds = [attrs for tag, attrs in page.tags if tag == "details" and attrs["class"] == "fold"]
    assert {one["data-name"] for one in folds} == {"arguments", "outcome"}
    signs = [attrs["class"] for tag, attrs in page.tags if tag == "span" and "class" in attrs]
    assert {"line-new", "line-old", "line-same"} <= set(signs)
    said = [
        attrs.get("class")
        for tag, attrs in page.tags
        if attrs.get("title", "").startswith("came in by hook")
    ]
    assert said.count("badge source-said") == 1


def test_a_text_is_given_in_parts_that_are_safe_to_show(server):
    [index] = [
        attrs["data-index"] for tag, attrs in Page(server.get(STORY).text).tags
        if attrs.get("data-name") == "outcome" and tag == "details"
    ][:1]  # fmt: skip
    text, start = "", 0
    while start is not None:
        part = json.loads(
            server.get(link("part", index=index, name="outcome", **{"from": start})).text
        )
        assert len(part["text"]) <= 50_000
        text, start = text + part["text"], part["next"]
    assert text == json.dumps(json.loads(LARGE), separators=(",", ":"))
    folds = [attrs for tag, attrs in Page(server.get(STORY).text).tags if tag == "details"]
    last = [attrs["data-index"] for attrs in folds if attrs.get("data-name") == "arguments"][-1]
    hostile = json.loads(server.get(link("part", index=last, name="arguments")).text)["text"]
    assert "\\u202e" in hostile
    assert not MOVES_OR_REORDERS.search(hostile)
    assert server.get(link("part", index=1, name="nothing")).status == 404
    assert server.get(link("part", index="x", name="outcome")).status == 422


def test_calls_stand_beside_each_other_in_time(ledger):
    ledger.start_session(session_id="s1", intent="x")
    call(ledger, 1, "a", {}, started=1_000, took=500)
    call(ledger, 2, "b", {}, started=1_500, took=0)
    call(ledger, 3, "c", {}, started=1_800)
    call(ledger, 4, "d", {}, started=1_000, took=10**15)
    rows = waterfall(ledger.tell_story("s1"), 2_000)
    assert [(row.name, row.state) for row in rows][2] == ("c", "dead")
    assert rows[3].length == 1_000
    rows = waterfall(
        [step for step in ledger.tell_story("s1") if step.call and step.call.tool_name != "d"],
        2_000,
    )
    assert [(row.start, row.length) for row in rows] == [(0, 625), (625, 0), (1_000, 0)]
    assert waterfall([], 0) == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_story_is_usable_by_anybody(browser, server, width, scheme):
    with Looker(browser, server, width=width, scheme=scheme) as looker:
        looker.open(STORY)
        looker.check()
        bars = looker.page.evaluate(
            "[...document.querySelectorAll('.span')].map((one) => one.offsetWidth)"
        )
        assert bars[0] > bars[1] >= 3
        looker.page.locator("details.fold").first.locator("summary").click()
        looker.page.locator(".part").first.wait_for()
        looker.check()


def test_a_megabyte_is_unfolded_without_freezing(browser, server):
    with Looker(browser, server) as looker:
        looker.open(STORY)
        longest = """
            () => { window.longest = 0; let last = performance.now();
              const tick = () => { const now = performance.now();
                window.longest = Math.max(window.longest, now - last);
                last = now; requestAnimationFrame(tick); };
              requestAnimationFrame(tick); }"""
        looker.page.evaluate(longest)
        fold = looker.page.locator("details.fold[data-name=outcome]").first
        fold.locator("summary").click()
        fold.locator(".part").first.wait_for()
        assert fold.locator(".part").first.inner_text().startswith('{"stdout":"word word')
        for count in range(2, 5):
            fold.get_by_role("button").click()
            fold.locator(".part").nth(count - 1).wait_for()
        assert looker.page.evaluate("window.longest") < 2_000


def test_what_is_new_appears_and_what_is_unfolded_stays_so(browser, server):
    with Looker(browser, server) as looker:
        looker.open(STORY)
        looker.page.locator("details.fold").first.locator("summary").click()
        looker.page.locator(".part").first.wait_for()
        with affidavit.open(server.ledger) as ledger:
            say(ledger, 50, "something new to see")
        looker.page.get_by_text("something new to see").wait_for(timeout=20_000)
        assert looker.page.locator(".part").count() == 1
        assert looker.page.locator("details.fold[open]").count() == 1
