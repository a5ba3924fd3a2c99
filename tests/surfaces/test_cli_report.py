"""`affidavit export --session S --html`: the page of a recorded session, opened in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

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
