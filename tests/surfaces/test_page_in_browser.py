"""The page in a real browser: how it looks, that nothing complains, that anybody can use it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import affidavit
from affidavit.apps.web import sample
from affidavit.apps.web.rendering import link
from surfaces.serving import serving
from tamper.attack import tampering

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "tools/npm/node_modules/axe-core/axe.min.js"
STORY = link("session", id=sample.SESSION)
LONG = "a-name-without-any-place-to-break-it-" * 8


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server over the sample and over what is hard to lay out."""
    folder = tmp_path_factory.mktemp("browser")
    path = str(folder / "trail.db")
    with affidavit.open(path) as ledger:
        sample.load_sample(ledger)
        ledger.create_task(title=LONG, assignee=LONG, priority=LONG, project_id=LONG)
        ledger.start_session(
            session_id=LONG, intent=LONG * 3, caller=LONG, task_id=LONG, continues=sample.SESSION,
            project=LONG, model=LONG,
        )  # fmt: skip
        for content in (LONG * 20, "\u05d0\u05d1 \u0645\u0631\u062d\u0628\u0627 " * 40, "x\n" * 60):
            ledger.record_thought(
                type="decision", task_id=LONG, agent_id=LONG, content=content, session_id=LONG
            )
    with serving(path, log=folder / "log") as running:
        yield running


class Looker:
    """One window; whatever the browser complains about is kept."""

    def __init__(self, browser, server, *, width=1280, scheme="light"):
        self.width = width
        self.server = server
        viewport = {"width": width, "height": 800}
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", self._note_failed)

    def __enter__(self):
        return self

    def _note_failed(self, request):
        # A page that is left takes its question for news with it.
        if not (request.url.endswith("/pulse") and request.failure == "net::ERR_ABORTED"):
            self.complaints.append(request.url)

    def __exit__(self, *_):
        self.context.close()
        assert self.complaints == []

    def open(self, address):
        self.page.goto(self.server.url.rstrip("/") + address)

    def press(self, name):
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=name).click()

    def check(self):
        """Nothing to scroll sideways, and nothing that axe finds."""
        wide = self.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= self.width, f"{self.page.url} is {wide} wide"
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run()")["violations"]
        shown = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found]
        assert shown == [], self.page.url

    def shoot(self, name, folder):
        """A screenshot that holds the whole page; kept where AFFIDAVIT_SCREENSHOTS says."""
        target = Path(os.environ.get("AFFIDAVIT_SCREENSHOTS", folder)) / f"{name}.png"
        self.page.screenshot(path=target, full_page=True)
        assert target.stat().st_size > 5_000


PAGES = {
    "overview": "/",
    "session": STORY,
    "long session": link("session", id=LONG),
    "task": link("task", id=LONG),
    "entry": "/entry?index=5",
    "tasks": "/tasks",
    "sessions": "/sessions",
    "connect": "/connect",
    "nowhere": "/sessions?after=nobody",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_well_made(browser, server, tmp_path, width, scheme):
    with Looker(browser, server, width=width, scheme=scheme) as looker:
        for name, address in PAGES.items():
            looker.open(address)
            looker.shoot(f"{name}-{width}-{scheme}", tmp_path)
            looker.check()
        dark = "rgb(20, 22, 26)"
        shade = looker.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (shade == dark) == (scheme == "dark")
        # A refused address is one line in the browser's own console, and no fault of the page.
        looker.complaints = [said for said in looker.complaints if "404" not in said]


def test_from_an_empty_ledger_to_a_found_forgery(browser, path, tmp_path):
    with serving(path, log=tmp_path / "log") as server, Looker(browser, server) as looker:
        page = looker.page
        looker.open("/")
        looker.shoot("empty", tmp_path)
        looker.check()
        looker.press("Load the sample")
        assert page.url.endswith(STORY)
        assert page.locator(".story > li").count() == 7
        looker.press("Verify")
        page.get_by_role("button", name="Holds").wait_for()
        assert page.url.endswith(STORY)
        looker.shoot("holds", tmp_path)
        looker.check()
        with tampering(path) as connection:
            connection.execute(
                "UPDATE thought_records SET content = replace(content, 'fits', 'fitted') "
                "WHERE log_index = 5"
            )
        looker.press("Holds")
        button = page.get_by_role("button", name="Violation: 1 found")
        assert button.evaluate("it => getComputedStyle(it).backgroundColor") == "rgb(163, 40, 31)"
        alarm = page.get_by_role("complementary", name="Verdict").inner_text()
        assert "payload_mismatch at entry 5, thought_records.content" in alarm
        marked = page.locator(".broken")
        assert marked.count() == 1
        assert marked.get_attribute("id") == "entry-5"
        assert "fitted" in marked.inner_text()
        looker.shoot("violation", tmp_path)
        looker.check()
        page.get_by_role("link", name="entry 5", exact=True).click()
        page.get_by_role("link", name="In its session").click()
        assert page.url.endswith("#entry-5")
        page.get_by_role("link", name="The whole verdict").click()
        assert page.locator(".findings > li").count() == 1
        looker.shoot("verdict", tmp_path)
        looker.check()


def test_a_hash_opens_and_a_snippet_is_copied(browser, server):
    with Looker(browser, server) as looker:
        looker.open(STORY)
        first = looker.page.locator(".story .hash").first
        assert not first.locator(".full").is_visible()
        first.locator("summary").click()
        assert len(first.locator(".full").inner_text()) == 64
        looker.open("/connect")
        looker.context.grant_permissions(["clipboard-read", "clipboard-write"])
        looker.page.get_by_role("button", name="Copy: Claude Code, stdio").click()
        looker.page.get_by_text("Copied").wait_for()
        copied = looker.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("claude mcp add affidavit -- affidavit mcp")


def test_without_scripts_it_does_the_same(browser, server):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.url + STORY.lstrip("/"))
    page.get_by_role("button", name="Verify").click()
    while page.get_by_role("button", name="Verifying").count():
        page.goto(server.url + STORY.lstrip("/"))
    page.get_by_role("button", name="Holds").wait_for()
    context.close()
