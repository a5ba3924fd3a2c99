"""The page of a session: what it tells, that it checks itself, and that it stays by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from affidavit.apps.report.page_file import render_page
from affidavit.core.archive import decode_archive, encode_archive
from affidavit.core.checkpoint import TreeHead, sign_checkpoint
from affidavit.core.merkle import Digest
from affidavit.core.note import SigningKey, encode_base64, parse_verifier_key
from surfaces.browsing import Visit
from surfaces.sworn import LOG, SwornSession, add_tool_call, tell_story

AXE = Path(__file__).resolve().parents[2] / "tools/npm/node_modules/axe-core/axe.min.js"
PAGE_BYTES_MAX = 300_000
OPEN_MS_MAX = 3_000
FROZEN_MS_MAX = 1_000
HOSTILE = (
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "<!--<script>",
    "{{ script }}",
    "\u202etxt.exe \u2066\u200f right to left",
    "\x1b[2J\r\x7f\u2028\ufeff",
    "word " * 5_000 + "w" * 30_000,
    "\u0645\u0631\u062d\u0628\u0627 \U0001f600 \u65e5\u672c\u8a9e",
)


def encode(parts):
    return {name: text.encode() for name, text in parts.items()}


@pytest.fixture
def visit(browser):
    """A page that must have nothing to complain of and nothing to ask for."""
    found = Visit(browser, viewport={"width": 1280, "height": 900})
    yield found
    assert found.said == []
    assert [url for url in found.asked if not url.startswith(("file:", "blob:"))] == []
    found.page.close()


@pytest.fixture(scope="module")
def story():
    return tell_story()


@pytest.fixture
def told(visit, story, tmp_path):
    """The page of the small session, opened; and its verdict."""
    file = tmp_path / "story.html"
    file.write_text(render_page(encode(story.parts())), encoding="utf-8")
    return visit, visit.open(file)


def test_a_sound_session_is_green_in_every_line_and_at_every_entry(told, story):
    visit, verdict = told
    assert verdict == "held"
    assert visit.page.inner_text("#said") == "Everything in this file holds."
    lines = visit.page.eval_on_selector_all("#checks li", "all => all.map(i => i.dataset.state)")
    assert lines == ["held"] * 7
    shown = sorted({*story.named, *range(story.seal_index, len(story.entries))})
    assert visit.in_state("held") == shown


def test_the_story_is_told_in_the_order_of_the_log(told):
    visit, _ = told
    assert visit.page.inner_text("#title") == "Stop the double charge before the weekend"
    titles = visit.page.eval_on_selector_all(".entry h3", "all => all.map(h => h.textContent)")
    assert titles == [
        "Session started", "Turn: user", "Analysis", "Tool call: Bash",
        "Tool call finished: Bash", "Decision", "Tool call: Edit", "Tool call finished: Edit",
        "Edit proposed", "Proposal decided", "Plan", "weather.observed", "Reflection",
        "Session sealed", "Session ended",
    ]  # fmt: skip
    said, seen = (visit.page.locator(f"#e{index} .source").inner_text() for index in (3, 4))
    assert (said, seen) == ("said via python", "seen via hook")


def test_diffs_are_shown_as_diffs(told):
    visit, _ = told
    for path, removed, added in (
        ("shop/retry.py", ["- def charge(order):\n", "-     send(new_id(), order)\n"],
         ["+ def charge(order, first):\n", "+     send(first.id, order)\n"]),
        ("shop/alerts.py", ["- limit = 2\n", "- -- a comment\n"],
         ["+ limit = 1\n", "+ ++ another\n"]),
    ):  # fmt: skip
        change = visit.page.locator(".change").filter(has_text=path)
        assert change.locator(".removed").all_text_contents() == removed
        assert change.locator(".added").all_text_contents() == added


def test_what_a_tool_printed_is_shown_line_by_line(told):
    visit, _ = told
    card = visit.page.locator(".entry", has=visit.page.get_by_text("Tool call finished: Bash"))
    assert card.locator(".text").all_text_contents()[:2] == [
        "0", "shop/retry.py:2\nshop/retry.py:9\n",
    ]  # fmt: skip
    assert card.locator("a").first.get_attribute("href") == "#e4"


def test_a_kind_nobody_knows_is_shown_as_it_is_written(told):
    visit, _ = told
    card = visit.page.locator(".entry", has=visit.page.get_by_text("weather.observed"))
    text = card.text_content()
    assert '"sky": "clear"' in text
    assert "no cloud" in text
    assert card.get_attribute("data-state") == "held"


def test_it_says_whose_key_it_is_and_how_far_to_believe_it(told):
    visit, _ = told
    key = parse_verifier_key(LOG["vkey"])
    text = visit.page.inner_text(".trust")
    assert str(key) in text
    assert "edit this file can also edit the check in it" in text
    assert "affidavit verify SESSION.affidavit --key VERIFIER-KEY" in text
    fingerprint = visit.page.locator("#keys dd").nth(1).inner_text()
    assert re.fullmatch(r"([0-9a-f]{8} ){7}[0-9a-f]{8}", fingerprint)


def test_what_it_saves_is_the_evidence_file_byte_for_byte(told, story):
    visit, _ = told
    with visit.page.expect_download() as download:
        visit.page.click("#save")
    assert download.value.suggested_filename == "s1.affidavit"
    saved = Path(download.value.path()).read_bytes()
    assert saved == encode_archive(encode(story.parts()))
    assert decode_archive(saved) == encode(story.parts())


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_anybody_can_read_it(browser, story, tmp_path, scheme, width):
    visit = Visit(browser, color_scheme=scheme, viewport={"width": width, "height": 900})
    parts = story.parts()
    parts["payloads.jsonl"] = parts["payloads.jsonl"].replace("one is enough", "one is too much")
    file = tmp_path / "story.html"
    file.write_text(render_page(encode(parts)), encoding="utf-8")
    assert visit.open(file) == "broken"
    assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    visit.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = visit.page.evaluate("axe.run()")["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    visit.page.close()


def test_on_paper_every_entry_is_there_and_nothing_to_press(told):
    visit, _ = told
    visit.page.emulate_media(media="print")
    style = "all => [...new Set(all.map(one => getComputedStyle(one)[NAME]))]"
    entries = visit.page.eval_on_selector_all
    assert entries(".entry", style.replace("NAME", "'contentVisibility'")) == ["visible"]
    assert entries("button", style.replace("NAME", "'display'")) == ["none"]


def test_nothing_can_leave_the_page(told):
    visit, _ = told
    policy = visit.page.get_attribute("meta[http-equiv]", "content")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    image = (
        "new Promise((y, n) => { const i = new Image(); i.onload = y; i.onerror = n;"
        " i.src = 'https://example.com/x.png' })"
    )
    tries = ("fetch('https://example.com/')", image, "import('https://example.com/x.js')")
    for attempt in tries:
        assert visit.page.evaluate(f"async () => {{ try {{ await {attempt}; return 'out' }} "
                                   "catch { return 'kept' } }") == "kept"  # fmt: skip
    blocked = [text for text in visit.said if "Content Security Policy" in text]
    assert len(blocked) >= len(tries) - 1
    visit.said.clear()
    visit.asked.clear()


def test_the_page_without_its_evidence_is_small():
    assert len(render_page({}).encode()) < PAGE_BYTES_MAX


def hostile_session():
    """Every text, name and value of every kind is one of the hostile ones."""
    story = SwornSession(HOSTILE[0], caller=HOSTILE[1], task_id=HOSTILE[4])
    for number, text in enumerate(HOSTILE):
        name = text[:60].translate(dict.fromkeys((*range(32), 0x7F)))
        story.think(text, task=name, agent=name)
        add_tool_call(story, number, name, {"command": text, name: [text]}, text, ok=False)
        turn = {"id": name, "turn_kind": name, "actor": name, "message_id": name}
        story.named_entry("turn.asserted", {**turn, "usage": None}, content=text)
        diffs = [{"path": name, "old_string": text, "new_string": f"{text}!"}]
        story.named_entry("proposal.created", {"request_id": name}, diffs=json.dumps(diffs))
        story.add(name or "x", {"session_id": "s1", "deep": [[{"text": name}]]}, words=text)
    story.seal()
    return story


def test_hostile_texts_in_every_field_are_only_texts(visit, tmp_path):
    file = tmp_path / "hostile.html"
    story = hostile_session()
    file.write_text(render_page(encode(story.parts())), encoding="utf-8")
    assert visit.open(file) == "held"
    assert visit.page.title() == "Session s1"
    assert visit.page.locator("script").count() == 2
    assert visit.page.locator("img, iframe, object, embed, style + style").count() == 0
    body = visit.page.text_content("#story")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", body)
    assert "<script>document.title='taken'</script>" in body
    card = visit.page.locator(f"#e{story.thoughts[6]}")
    card.get_by_role("button", name="Show all 55,000 characters").click()
    assert len(card.locator(".text").first.inner_text()) >= 55_000
    width = "document.documentElement.scrollWidth"
    assert visit.page.evaluate(width) == 1280
    visit.page.set_viewport_size({"width": 390, "height": 800})
    assert visit.page.evaluate(width) == 390


def test_without_a_seal_it_says_that_nothing_shows_what_was_left_out(visit, tmp_path):
    story = SwornSession()
    story.think("so far")
    file = tmp_path / "open.html"
    file.write_text(render_page(encode(story.parts())), encoding="utf-8")
    assert visit.open(file) == "open"
    assert visit.line("Seal") == (
        "open", "not sealed: that nothing was left out cannot be proved"
    )  # fmt: skip
    assert visit.in_state("broken") == []


def test_a_browser_without_ed25519_leaves_the_signature_unchecked(browser, story, tmp_path):
    visit = Visit(browser)
    visit.page.add_init_script(
        "SubtleCrypto.prototype.importKey = async () => {"
        " throw new DOMException('unknown', 'NotSupportedError') }"
    )
    file = tmp_path / "old.html"
    file.write_text(render_page(encode(story.parts())), encoding="utf-8")
    assert visit.open(file) == "open"
    assert visit.line("Signature") == ("open", "not checked: this browser has no Ed25519")
    visit.page.close()


def test_5000_records_are_open_and_checked_in_under_3_seconds(visit, tmp_path, capsys):
    story = SwornSession("a long day")
    for number in range(5_000):
        story.think(f"{number}: {'because it is so. ' * 10}", task=f"t{number % 7}")
    story.seal()
    file = tmp_path / "long.html"
    file.write_text(render_page(encode(story.parts())), encoding="utf-8")
    visit.page.add_init_script(
        "globalThis.longTasks = []; new PerformanceObserver((list) => longTasks.push("
        "...list.getEntries().map((task) => task.duration))).observe({ type: 'longtask' })"
    )
    before = processor_ms(visit)
    assert visit.open(file) == "held"
    marks = visit.page.evaluate(
        "Object.fromEntries(performance.getEntriesByType('mark').map(m => [m.name, m.startTime]))"
    )
    took_ms = processor_ms(visit) - before
    longest_ms = max(visit.page.evaluate("longTasks"), default=0)
    with capsys.disabled():
        told = ", ".join(f"{name} after {ms / 1000:.2f} s" for name, ms in marks.items())
        print(f"\n5,000 records, {file.stat().st_size:,} bytes: {told}; {took_ms:.0f} ms of work,")
        print(f"never busy for longer than {longest_ms:.0f} ms")
    assert longest_ms < FROZEN_MS_MAX
    # On a machine that is busy with other tests, what counts is the work it took.
    assert min(marks["checked"], took_ms) < OPEN_MS_MAX
    assert len(visit.in_state("held")) == 5_002


def processor_ms(visit):
    """The processor time that pages of this browser have used."""
    session = visit.page.context.browser.new_browser_cdp_session()
    told = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return 1000 * sum(one["cpuTime"] for one in told if one["type"] == "renderer")


def compare(visit, text):
    """What the page says of something that a reader holds against it."""
    answer = visit.page.locator("#compared")
    answer.evaluate("one => { one.dataset.state = 'not yet'; }")
    visit.page.fill("#kept", text)
    visit.page.wait_for_function("document.getElementById('compared').dataset.state !== 'not yet'")
    return answer.get_attribute("data-state"), answer.inner_text()


def test_a_key_or_a_checkpoint_that_was_kept_is_compared(told, story):
    visit, _ = told
    note = story.parts()["checkpoint"]
    origin, size, root = note.split("\n")[:3]
    stranger = SigningKey(origin, b"\x01" * 32)
    other = encode_base64(b"\x07" * 32)
    head = TreeHead(origin, int(size), Digest(b"\x07" * 32))
    assert compare(visit, LOG["vkey"] + "\n") == (
        "held", "This key signed the checkpoint of this file.",
    )  # fmt: skip
    assert compare(visit, str(stranger.verifier))[0] == "broken"
    assert compare(visit, note)[0] == compare(visit, f"\n{note}\r\n")[0] == "held"
    forked = sign_checkpoint(head, [stranger]).decode()
    assert other in forked
    state, said = compare(visit, forked)
    assert (state, said.startswith("A fork:")) == ("broken", True)
    state, said = compare(visit, note.replace(f"\n{size}\n", "\n3\n", 1))
    assert (state, "has 3 entries" in said) == ("open", True)
    state, said = compare(visit, note.replace(origin, "example.org/other"))
    assert (state, "of another log" in said) == ("broken", True)
    for odd in ("x", "a+b+c", "<img src=x onerror=alert(1)>", root, f"{origin}\n{size}\n"):
        assert compare(visit, odd)[0] == "open", odd
    assert compare(visit, "") == ("", "")


def test_a_checkpoint_is_dropped_as_a_file(told, story):
    visit, _ = told
    script = """note => {
        const data = new DataTransfer();
        data.items.add(new File([note], "note"));
        const event = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
        document.querySelector("#kept").dispatchEvent(event);
    }"""
    visit.page.evaluate(script, story.parts()["checkpoint"])
    visit.page.wait_for_selector("#compared[data-state=held]")


def test_a_key_whose_signature_was_changed_is_told(visit, story, tmp_path):
    parts = story.parts()
    note = parts["checkpoint"]
    changed = f"{note[:-12]}{'A' if note[-12] != 'A' else 'B'}{note[-11:]}"
    file = tmp_path / "changed.html"
    file.write_text(render_page(encode({**parts, "checkpoint": changed})), encoding="utf-8")
    assert visit.open(file) == "broken"
    assert compare(visit, LOG["vkey"])[0] == "broken"
