"""What the pages show and what they let through: read as a program reads them, tag by tag."""

from __future__ import annotations

import json
import re
import signal
import time
import uuid
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

import affidavit
from affidavit.apps.cards import card_of
from affidavit.apps.web import sample
from affidavit.apps.web.pages import Pages
from affidavit.apps.web.rendering import link
from affidavit.core.entry import Source
from affidavit.ledger.handle import acting_for
from affidavit.ledger.results import LogEntry
from surfaces.serving import serving
from tamper.attack import tampering

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)><!--{{7*7}}&lt;"
UNSAFE = "\x1b[31m\u202edone\u2066"
MOVES_OR_REORDERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
NAME = f"{HOSTILE}/../?#&%41\u202e"


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def links(self, tag: str = "a", name: str = "href") -> list[str]:
        return [attrs[name] or "" for found, attrs in self.tags if found == tag and name in attrs]


def check_harmless(text: str) -> Page:
    """That a page has no script, style, handler or picture but its own."""
    page = Page(text)
    assert page.links("script", "src") == ["/static/page.js"]
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert set(page.links("img", "src")) == {"/static/seal.svg"}
    for tag, attrs in page.tags:
        assert tag not in {"style", "iframe", "object", "embed", "base", "svg"}
        assert not [name for name in attrs if name.startswith("on") or name == "style"], attrs
        for name in ("href", "action", "src"):
            assert (attrs.get(name) or "/").startswith(("/", "#")), attrs
    assert not MOVES_OR_REORDERS.search(text)
    return page


def fill_with_hostile(ledger) -> None:
    """Hostile text in every field there is."""
    task = ledger.create_task(
        title=HOSTILE + UNSAFE, description=HOSTILE + UNSAFE, assignee=HOSTILE, priority=HOSTILE,
        project_id=HOSTILE,
    )  # fmt: skip
    ledger.transition_task(task.id, to="CANCELLED", reason=HOSTILE)
    ledger.delete_task(ledger.create_task(title="gone").id, reason=HOSTILE)
    ledger.start_session(
        session_id=NAME, intent=HOSTILE + UNSAFE, caller=HOSTILE, task_id=NAME, project=HOSTILE,
        model=HOSTILE,
    )  # fmt: skip
    odd = acting_for(ledger, Source(auth=HOSTILE, client=HOSTILE, via=HOSTILE))
    for writer in (ledger, odd):
        writer.record_thought(
            type="reflection", task_id=NAME, agent_id=HOSTILE, session_id=NAME,
            content=HOSTILE + UNSAFE, id_fn=None if writer is ledger else lambda: HOSTILE,
        )  # fmt: skip
    observe_hostile(ledger)
    ledger.seal_session(NAME)
    ledger.end_session(NAME)
    ledger.start_session(intent="next", continues=NAME)
    ledger.set(writeback="reflection", by=HOSTILE)


def observe_hostile(ledger) -> None:
    """The same in what hooks and proxies see."""
    turn, request, proposal = (str(uuid.UUID(int=number, version=4)) for number in (1, 2, 3))
    call = {"request_id": request, "call_id": HOSTILE}
    ledger.upsert_turn(
        id=turn, message_id=turn, kind="user", content=HOSTILE + UNSAFE, session_id=NAME,
        actor=HOSTILE, model=HOSTILE, thread_id=HOSTILE, attributes={HOSTILE: HOSTILE},
    )  # fmt: skip
    ledger.request_tool_call(
        **call, vendor=HOSTILE, tool_name=HOSTILE, arguments={HOSTILE: HOSTILE + UNSAFE},
        session_id=NAME, actor=HOSTILE, model=HOSTILE,
    )  # fmt: skip
    ledger.decide_call(**call, decision="approved", by=HOSTILE, reason=HOSTILE)
    ledger.finish_tool_call(**call, status="failed", error_kind=HOSTILE, error_msg=HOSTILE)
    ledger.create_proposal(
        request_id=proposal, session_id=NAME,
        diffs=[{"file": HOSTILE, "op": "modify", "patch": HOSTILE}],
    )  # fmt: skip
    ledger.decide_proposal(request_id=proposal, decision="denied", by=HOSTILE, reason=HOSTILE)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A server over a ledger full of hostile text, and that ledger."""
    folder = tmp_path_factory.mktemp("page")
    path = str(folder / "trail.db")
    with affidavit.open(path, settings={"payloads": "keep"}) as ledger:
        fill_with_hostile(ledger)
        ledger.start_session(session_id="long", intent="many records")
        ledger.record_thoughts(
            {"type": "plan", "task_id": "t", "agent_id": "a", "session_id": "long",
             "content": f"number {number}"}
            for number in range(150)
        )  # fmt: skip
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content="\u20ac" * 50_000)
    with serving(path, log=folder / "log") as server:
        yield server
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.verify().valid


def pages_of(path: str) -> list[str]:
    with affidavit.open(path, readonly=True) as ledger:
        size = len(ledger)
        tasks = [task.id for task in ledger.list_tasks(include_deleted=True).tasks]
    named = [link("session", id=NAME), *(link("task", id=task) for task in (NAME, *tasks))]
    fixed = ["/", "/sessions", "/tasks", "/connect", "/verify"]
    return [*fixed, *named, *(f"/entry?index={index}" for index in range(min(size, 22)))]


def test_nothing_recorded_can_act_in_a_page(hostile):
    for address in pages_of(hostile.ledger):
        reply = hostile.get(address)
        assert reply.status == 200, address
        page = check_harmless(reply.text)
        if "index=0" not in address and address not in {"/connect", "/verify"}:
            assert "<script>alert(1)</script>" in page.words or "entry" in address
    story = Page(hostile.get(link("session", id=NAME)).text).words
    assert story.count(HOSTILE) >= 5
    assert "\\x1b[31m\\u202edone\\u2066" in story


def test_what_a_request_holds_cannot_act_either(hostile):
    for address in (
        f"/{urlencode({'x': HOSTILE})}", link("session", id=HOSTILE), link("task", id=HOSTILE),
        link("entry", index=HOSTILE), link("session", id=NAME, after=HOSTILE),
        link("sessions", after=HOSTILE), link("verify", back=HOSTILE), link("text", index=HOSTILE),
    ):  # fmt: skip
        check_harmless(hostile.get(address).text)


@pytest.mark.parametrize("address", ["/", "/sessions", "/nowhere", "/verify", "/text?index=1"])
def test_every_page_forbids_what_it_does_not_need(hostile, address):
    headers = hostile.get(address).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_links_lead_to_what_they_name_whatever_it_is_called(hostile):
    for address in pages_of(hostile.ledger):
        for target in Page(hostile.get(address).text).links():
            if target.startswith(("/session?", "/task?")):
                assert hostile.get(target.partition("#")[0]).status == 200, target


def test_a_story_is_told_whole_and_in_order(hostile):
    page = Page(hostile.get(link("session", id=NAME)).text)
    places = [attrs["id"] for tag, attrs in page.tags if tag == "li" and "id" in attrs]
    with affidavit.open(hostile.ledger, readonly=True) as ledger:
        entries = ledger.list_entries(session_id=NAME)
        seal = ledger.merkle_root(NAME)
        [after] = ledger.list_sessions(continues=NAME)
    assert places == [f"entry-{entry.index}" for entry in entries]
    assert seal.root in page.words
    for title in ("Turn: user", "called", "Tool call approved", "Tool call failed", "Edit denied"):
        assert title in page.words
    assert link("session", id=after.session_id) in page.links()
    assert (
        link("session", id=NAME)
        in Page(hostile.get(link("session", id=after.session_id)).text).links()
    )


def test_a_long_story_goes_on_on_another_page(hostile):
    seen = []
    address = link("session", id="long")
    while address:
        page = Page(hostile.get(address).text)
        seen += re.findall(r"number (\d+)", page.words)
        more = [one for one in page.links() if "after=" in one]
        address = more[-1] if more and "Go on behind" in page.words else ""
    assert [int(number) for number in seen] == list(range(150))


def test_a_long_text_is_cut_and_given_whole_as_plain_text(hostile):
    text = "\u20ac" * 50_000
    page = Page(hostile.get("/task?id=t&after=160").text)
    [whole] = [one for one in page.links() if one.startswith("/text")]
    assert 1_000 < page.words.count("\u20ac") < 5_000
    reply = hostile.get(whole)
    assert reply.text == text
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(hostile.get("/").text) < 60_000


def test_a_time_is_readable_and_exact(hostile):
    with affidavit.open(hostile.ledger, readonly=True) as ledger:
        at = ledger.list_entries(limit=1)[0].at
    page = hostile.get("/entry?index=0").text
    seconds, rest = divmod(at, 1_000_000)
    exact = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:06d}Z"
    assert f'<time datetime="{exact}" title="{exact}">' in page


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/nowhere", 404), ("/session", 422), ("/session?id=", 422), ("/session?id=nobody", 404),
        ("/task?id=nobody", 404), ("/entry?index=x", 422), ("/entry?index=-1", 422),
        ("/entry?index=99999999", 404), ("/entry?index=9999999999999999999", 422),
        ("/sessions?after=nobody", 404), ("/tasks?offset=x", 422), ("/text?index=1", 404),
        ("/session?id=" + "x" * 600, 413), ("/session?id=a%00b", 422), ("/session?id=%ff", 404),
        ("/static/../page.css", 404), ("/static/..%2f..%2fpages.py", 404), ("/sample", 404),
    ],
)  # fmt: skip
def test_an_address_that_leads_nowhere_says_so_in_a_page(hostile, address, status):
    reply = hostile.get(address)
    assert (reply.status, reply.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert "This cannot be shown" in check_harmless(reply.text).words


@pytest.mark.parametrize(
    ("back", "leads"),
    [
        ("/session?id=long", "/session?id=long"), ("//example.org", "/verify"),
        ("/\\example.org", "/verify"), ("http://example.org", "/verify"), ("", "/verify"),
        ("/a\r\nX-Y: 1", "/verify"),
    ],
)  # fmt: skip
def test_verifying_leads_back_to_a_page_of_this_server(hostile, back, leads):
    assert hostile.post(link("verify", back=back)).headers["location"] == leads


def test_an_entry_of_a_kind_without_words_of_its_own_is_told_too():
    body = {"session_id": "s", "tool": "Bash", "arguments": {"bytes": 2, "commit": "0" * 64}}
    texts = {"arguments": "ls", "outcome": None}
    entry = LogEntry(7, 1, "something.new", body, "none", None, "hook", texts)
    card = card_of(entry, {})
    assert (card.title, card.said, card.texts) == (entry.kind, "seen", [("arguments", "ls", False)])
    told = {fact.name: fact.value for fact in card.facts}
    assert told == {"session": "s", "tool": "Bash"}


@pytest.mark.parametrize(
    ("via", "said"),
    [("mcp", "said"), ("import", "said"), ("hook", "seen"), ("proxy", "seen"), ("otlp", "seen"),
     ("internal", None), (None, None)],
)  # fmt: skip
def test_what_was_said_and_what_was_seen_are_told_apart(via, said):
    entry = LogEntry(7, 1, "session.ended", {"reason": "done"}, "none", None, via, {})
    assert card_of(entry, {}).said == said


def test_the_overview_says_how_much_is_signed(path, tmp_path):
    with affidavit.open(path) as ledger:
        ledger.create_task(title="x")
        assert "not by this machine" in front_of(ledger)
        size = ledger.checkpoint().size
        assert f"the first {size} entries" in front_of(ledger)


def front_of(ledger) -> str:
    """The overview, without a server."""
    request = Request({
        "type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [],
        "server": ("localhost", 80), "scheme": "http",
    })  # fmt: skip
    return Pages(ledger, "/mcp")._front(request).body.decode()


def test_a_text_that_was_erased_is_said_to_be_gone():
    body = {"intent": {"bytes": 2, "commit": "0" * 64}, "task_id": None}
    entry = LogEntry(7, 1, "session.started", body, "none", None, "cli", {"intent": None})
    assert card_of(entry, {}).texts == [("intent", None, False)]


def test_an_empty_ledger_offers_the_sample_once_and_says_what_it_is(path, tmp_path):
    with serving(path, log=tmp_path / "log") as server:
        assert "Load the sample" in server.get("/").text
        assert Page(server.get("/").text).links("form", "action") == ["/verify?back=%2F", "/sample"]
        with affidavit.open(path, readonly=True) as ledger:
            assert len(ledger) == 1, "looking at an empty ledger wrote to it"
        server.verify()
        assert "There is nothing to verify" in server.get("/verify").text
        for _ in range(2):
            assert server.post("/sample").headers["location"] == link("session", id=sample.SESSION)
        assert "Load the sample" not in server.get("/").text
    with affidavit.open(path) as ledger:
        entries = ledger.list_entries()
        assert [entry.kind for entry in entries].count("thought.recorded") == 4
        recorded = [entry for entry in entries if entry.via == "http"]
        assert len(recorded) == 9
        assert {entry.client.partition("/")[0] for entry in recorded} == {"affidavit-sample"}
        for entry in recorded:
            assert all("sample" in text.lower() for text in entry.texts.values() if text)
        assert ledger.verify().valid


def test_a_ledger_that_is_not_empty_takes_no_sample(hostile):
    reply = hostile.post("/sample")
    assert reply.status == 409
    assert "not empty" in reply.text


def damage(path: str, sql: str) -> None:
    with tampering(path) as connection:
        assert connection.execute(sql).rowcount == 1


def test_an_edited_record_turns_the_page_red_at_its_place(path, tmp_path):
    with affidavit.open(path) as ledger:
        sample.load_sample(ledger)
    story = link("session", id=sample.SESSION)
    with serving(path, log=tmp_path / "log") as server:
        server.verify()
        assert 'class="good"' in server.get(story).text
        damage(path, "UPDATE thought_records SET content = 'A' WHERE log_index = 5")
        assert 'class="good"' in server.get(story).text, "nobody has verified again"
        assert server.verify(link("verify", back=story)).headers["location"] == story
        page = server.get(story).text
        assert 'class="bad"' in page
        assert "payload_mismatch" in page
        assert 'href="/entry?index=5"' in page
        assert re.findall(r'id="entry-(\d+)" class="[^"]* broken"', page) == ["5"]
        damage(path, "UPDATE log SET entry = x'00ff' WHERE log_index = 4")
        server.verify()
        page = check_harmless(server.get(story).text)
        assert "entry 4 of the log is damaged" in page.words
        broken = [attrs["id"] for _, attrs in page.tags if "broken" in (attrs.get("class") or "")]
        assert {"entry-4", "entry-5"} <= set(broken)
        assert "entry_" in check_harmless(server.get("/entry?index=4").text).words
        damage(path, "DELETE FROM log WHERE log_index = 3")
        server.verify()
        assert "entry 3 is missing" in server.get(story).text
        assert server.get("/").status == 200


def test_rows_that_were_edited_to_nonsense_are_shown_as_they_are(path, tmp_path):
    with affidavit.open(path) as ledger:
        sample.load_sample(ledger)
        task = ledger.list_tasks().tasks[0].id
    story, one = link("session", id=sample.SESSION), link("task", id=task)
    with serving(path, log=tmp_path / "log") as server:
        for sql in (
            f"UPDATE sessions SET ended_at = '{HOSTILE.replace(chr(39), '')}', at = {2**62}",
            "UPDATE seals SET finalized_at = 'yesterday', root = 'short', at = -1",
            f"UPDATE task_versions SET at = -{2**62}, status = 'ODD' WHERE superseded_by IS NULL",
        ):
            damage(path, sql)
        for address in ("/", "/sessions", "/tasks", story, one):
            reply = server.get(address)
            assert reply.status == 200, address
            check_harmless(reply.text)
        damage(path, "UPDATE sessions SET intent = CAST(x'ff41' AS TEXT)")
        server.verify()
        for address in ("/", story):
            page = check_harmless(server.get(address).text)
            assert "Violation" in page.words
            assert "This cannot be shown" in page.words


SLOW = (
    "import affidavit.apps.web.verification as v, sys; v.PATIENCE_SECONDS = 0.2; "
    "old = v.Verification.__init__; "
    "v.Verification.__init__ = lambda self, at: (old(self, at), setattr(self, '_words', "
    "[sys.executable, '-c', 'import time; print(flush=True); time.sleep(60)']))[0]"
)


def test_a_long_verification_keeps_nobody_waiting_and_ends_with_the_server(path, tmp_path):
    with serving(path, first=SLOW, log=tmp_path / "log") as server:
        assert server.post("/verify").status == 303
        for _ in range(3):
            began = time.monotonic()
            assert "Verifying\u2026" in server.get("/verify").text
            assert time.monotonic() - began < 5
        assert server.post("/verify").status == 303, "a second click joins the first"
        began = time.monotonic()
        assert server.stop(signal.SIGTERM)[0] == 0
        assert time.monotonic() - began < 15


def test_a_verifier_that_gives_no_answer_is_no_good_verdict(path, tmp_path):
    first = SLOW.replace("time.sleep(60)", "1/0")
    with serving(path, first=first, log=tmp_path / "log") as server:
        server.verify()
        page = server.get("/verify").text
        assert "It could not be verified" in page
        assert 'class="good"' not in page


def test_the_snippets_are_what_a_client_reads(hostile):
    words = re.findall(r"<code>(.*?)</code></pre>", hostile.get("/connect").text, re.DOTALL)
    import html

    shown = [json.loads(html.unescape(word)) for word in words if word.startswith("{")]
    http, stdio = (one["mcpServers"]["affidavit"] for one in shown)
    assert http == {"type": "http", "url": f"{hostile.url}mcp"}
    assert stdio["command"] == "affidavit"
    assert stdio["args"][-2:] == ["--ledger", hostile.ledger]
