"""`affidavit export --session S --html`: the page of a recorded session, opened in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

import affidavit
from affidavit.apps.report.page_file import checking_script
from affidavit.core.kinds import BODIES
from surfaces.browsing import Visit


@pytest.fixture
def session(cli):
    """A sealed session of two records, and a third that belongs to nobody."""
    cli("session", "start", "--intent", "ship it", "--session", "s/1", "--caller", "ann")
    cli.record("because it is ready", "--session", "s/1")
    cli.record("by itself")
    cli.record("it went well", "--session", "s/1", type="reflection")
    cli("session", "seal", "s/1")
    return "s/1"


@pytest.fixture
def visit(browser):
    found = Visit(browser)
    yield found
    assert found.said == []
    found.page.close()


def test_what_the_page_of_a_recorded_session_saves_is_verified(cli, session, visit, tmp_path):
    file = tmp_path / "story.html"
    ran = cli("export", "--session", session, "--html", "-o", str(file), "--json")
    assert ran.data == {"file": str(file), "bytes": file.stat().st_size}
    assert visit.open(file) == "held"
    assert visit.page.inner_text("#title") == "ship it"
    key = cli("key", "show", "--json").data["vkey"]
    assert key in visit.page.inner_text("#keys")
    with visit.page.expect_download() as download:
        visit.page.click("#save")
    assert download.value.suggested_filename == "s_1.affidavit"
    saved = download.value.path()
    assert cli("verify", str(saved), "--key", key).code == 0
    assert cli("export", "--session", session, "-o", str(tmp_path / "s.affidavit")).code == 0
    assert Path(saved).read_bytes() == (tmp_path / "s.affidavit").read_bytes()


def test_withheld_texts_are_not_in_the_page(cli, session, visit, tmp_path):
    file = tmp_path / "story.html"
    cli("export", "--session", session, "--html", "--withhold", "content", "-o", str(file))
    assert "because it is ready" not in file.read_text(encoding="utf-8")
    assert visit.open(file) == "open"
    assert "2 withheld" in visit.line("Texts")[1]


def uuid(number):
    return f"00000000-0000-4000-8000-{number:012d}"


def observe(ledger):
    """What hooks and people add to a session, in a ledger that keeps it."""
    ledger.start_session(intent="observe", session_id="o")
    ledger.upsert_turn(
        id=uuid(1), message_id=uuid(2), kind="user", content="please", session_id="o", actor="ann"
    )
    for call in ("c1", "c2"):
        ledger.request_tool_call(
            request_id=uuid(3), call_id=call, vendor="v", tool_name="Bash", session_id="o",
            arguments={"command": f"make {call}"},
        )  # fmt: skip
    ledger.decide_call(uuid(3), "c2", "denied", "ann", reason="not now")
    ledger.finish_tool_call(uuid(3), "c2", status="failed", error_msg="denied")
    ledger.finish_tool_call(uuid(3), "c1", status="completed", outcome={"stdout": "a\nb\n"})
    ledger.create_proposal(uuid(4), [{"path": "a.py", "old": "x\n", "new": "y\n"}], session_id="o")
    ledger.decide_proposal(uuid(4), "approved", "ann")
    ledger.apply_proposal(uuid(4), commit_hash="abc")
    ledger.record_thought(
        type="reflection", task_id="t", agent_id="a", content="done", session_id="o"
    )
    ledger.seal_session("o")


def test_what_was_observed_is_told_and_checked(cli, path, visit, tmp_path):
    with affidavit.open(path, settings={"payloads": "keep"}) as ledger:
        observe(ledger)
    file = tmp_path / "story.html"
    assert cli("export", "--session", "o", "--html", "-o", str(file)).code == 0
    assert visit.open(file) == "held"
    titles = visit.page.locator(".entry h3").all_text_contents()
    assert titles == [
        "Session started", "Turn: user", "Tool call: Bash", "Tool call: Bash", "Tool call decided",
        "Tool call failed: Bash", "Tool call finished: Bash", "Edit proposed", "Proposal decided",
        "Proposal applied", "Reflection", "Session sealed",
    ]  # fmt: skip
    cards = visit.page.locator(".entry")
    requests = [cards.nth(number).get_attribute("id") for number in (2, 3)]
    links = [cards.nth(number).locator("dd a").get_attribute("href") for number in (4, 5, 6)]
    assert links == [f"#{requests[1]}", f"#{requests[1]}", f"#{requests[0]}"]
    assert visit.page.locator(".added").all_text_contents() == ["+ y\n"]
    assert "a\nb\n" in cards.nth(6).locator(".text").all_text_contents()


def test_every_kind_that_names_a_session_has_words(browser, tmp_path):
    file = tmp_path / "script.html"
    file.write_text("<!DOCTYPE html><title>x</title>", encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.add_script_tag(content=checking_script())
    words = set(page.evaluate("[...Object.keys(WORDS), THOUGHT]"))
    page.close()
    assert {kind for kind, body in BODIES.items() if "session_id" in body} <= words


def test_a_log_with_two_keys_is_signed_by_both(cli, session, visit, tmp_path):
    cli("key", "add", "--by", "ann")
    file = tmp_path / "story.html"
    cli("export", "--session", session, "--html", "-o", str(file))
    assert visit.open(file) == "held"
    keys = [one["vkey"] for one in cli("key", "show", "--json").data["keys"]]
    shown = visit.page.inner_text("#keys")
    assert len(keys) == 2
    assert all(key in shown for key in keys)
    assert visit.line("Signature") == ("held", "the checkpoint is signed by the 2 keys below")


def test_without_a_place_the_page_goes_to_standard_output(run_cli, cli, session):
    ran = run_cli("export", "--session", session, "--html")
    assert ran.code == 0
    assert ran.out.startswith("<!DOCTYPE html>")
    assert ran.out.endswith("</html>\n")


@pytest.mark.parametrize("part", [("--task", "t1"), ("--range", "0:2"), ("--jsonl",)])
def test_only_a_session_has_a_page(cli, session, part):
    ran = cli("export", *part, "--html", "-o", "x.html", "--json")
    assert (ran.code, ran.error["code"]) == (2, "INVALID_PARAMS")
    assert "--session ID --html" in ran.error["hint"]
