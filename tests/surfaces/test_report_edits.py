"""Edits of a page's evidence, each by somebody who also corrects the list of files where it helps.

Each is red at exactly the entries that were edited, or at those where the gap shows; no other entry
is called broken for it, and none that was not checked is called sound.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from affidavit.apps.report.page_file import checking_script, render_page
from affidavit.core.archive import encode_archive
from affidavit.core.canonical import canonicalize_value
from affidavit.verify.evidence import VERIFIED, VIOLATION, verify_evidence
from affidavit.verify.trust import Trust
from surfaces.browsing import Visit
from surfaces.sworn import KEY, SwornSession, add_tool_call, tell_story

STORY = tell_story()
FIRST, SECOND, LAST = STORY.thoughts[0], STORY.thoughts[1], STORY.thoughts[-1]
SEAL = STORY.seal_index
TURN = STORY.named[1]
SESSION_FILE = f"sessions/{STORY.start_index}.json"


def lines(parts, place):
    return {line["index"]: line for line in map(json.loads, parts[place].splitlines())}


def put_lines(parts, place, found):
    parts[place] = "".join(f"{canonicalize_value(line)}\n" for line in found)


def edit_line(place, index, change):
    def edit(parts):
        found = lines(parts, place)
        change(found[index])
        put_lines(parts, place, found.values())

    return edit


def edit_entry(index, change):
    """Change the body of an entry, and write it as canonically as it was."""

    def rewrite(line):
        entry = json.loads(line["entry"])
        change(entry["body"])
        line["entry"] = canonicalize_value(entry)

    return edit_line("entries.jsonl", index, rewrite)


def edit_text(index, field, **change):
    return edit_line("payloads.jsonl", index, lambda line: line["fields"][field].update(change))


def replace_text(index, field, shown):
    return edit_line("payloads.jsonl", index, lambda line: line["fields"].update({field: shown}))


def edit_session(change):
    def edit(parts):
        session = json.loads(parts[SESSION_FILE])
        change(session)
        parts[SESSION_FILE] = canonicalize_value(session)

    return edit


def other(digest):
    return ("0" if digest[0] != "0" else "1") + digest[1:]


def flip(key):
    return lambda body: body.update({key: other(body[key])})


def leave_out(index):
    def edit(parts):
        for place in ("entries.jsonl", "payloads.jsonl"):
            found = lines(parts, place)
            found.pop(index, None)
            put_lines(parts, place, found.values())
        del parts[f"proofs/{index}.tlog-proof"]

    return edit


def leave_out_record(index):
    def edit(parts):
        leave_out(index)(parts)
        edit_session(
            lambda session: session.update(
                records=[one for one in session["records"] if one["index"] != index],
            )
        )(parts)

    return edit


def swap_entries(one, two):
    def edit(parts):
        found = lines(parts, "entries.jsonl")
        found[one]["entry"], found[two]["entry"] = found[two]["entry"], found[one]["entry"]
        put_lines(parts, "entries.jsonl", found.values())

    return edit


def reverse_lines(parts):
    found = list(lines(parts, "entries.jsonl").values())
    found[-1], found[-2] = found[-2], found[-1]
    put_lines(parts, "entries.jsonl", found)


def edit_proof(parts):
    name = f"proofs/{SECOND}.tlog-proof"
    head, path, *rest = parts[name].split("\n")[0:2], parts[name].split("\n")[2], parts[name]
    parts[name] = rest[0].replace(path, b64encode(sha256(b"x").digest()).decode())
    assert head[1] == f"index {SECOND}"


def drop_proof(parts):
    del parts[f"proofs/{SECOND}.tlog-proof"]


def in_every_note(change):
    """Edit the checkpoint, and every copy of it that the proofs end in."""

    def edit(parts):
        old, new = parts["checkpoint"], change(parts["checkpoint"])
        assert old != new
        for name in parts:
            if name == "checkpoint" or name.startswith("proofs/"):
                parts[name] = parts[name].replace(old, new)

    return edit


def other_root(note):
    origin, size, _, *rest = note.split("\n")
    return "\n".join([origin, size, b64encode(bytes(32)).decode(), *rest])


def other_signature(note):
    return re.sub(r"(\u2014 \S+ \S{20})(.)", lambda m: m[1] + ("A" if m[2] != "A" else "B"), note)


def list_files_again(parts):
    manifest = json.loads(parts["manifest.json"])
    manifest["files"] = {
        name: sha256(text.encode()).hexdigest()
        for name, text in parts.items()
        if name != "manifest.json"
    }
    parts["manifest.json"] = canonicalize_value(manifest)


def edit_manifest(key, value):
    def edit(parts):
        manifest = json.loads(parts["manifest.json"])
        manifest[key] = value
        parts["manifest.json"] = canonicalize_value(manifest)

    return edit


# What is edited: how, which entries are red, what the page says of it.
EDITS = {
    "content": (edit_text(SECOND, "content", text="Let it be."), [SECOND], "payload_mismatch"),
    "text of a turn": (edit_text(TURN, "content", text="All is well."), [TURN], "payload_mismatch"),
    "salt": (edit_text(TURN, "content", salt=b64encode(bytes(32)).decode()), [TURN],
             "payload_mismatch"),
    "author": (edit_entry(SECOND, lambda body: body.update(agent_id="somebody")), [SECOND],
               "entry_changed"),
    "hash": (edit_entry(SECOND, flip("hash")), [SECOND], "payload_mismatch"),
    "content hash": (edit_entry(SECOND, flip("content_hash")), [SECOND], "chain_broken"),
    "chain hash": (edit_entry(SECOND, flip("chain_hash")), [SECOND], "chain_broken"),
    "link": (edit_entry(SECOND, flip("prev_hash")), [SECOND], "entry_changed"),
    "parent": (edit_entry(SECOND, flip("parent_chain_hash")), [SECOND], "chain_broken"),
    "genesis": (edit_entry(STORY.start_index, flip("genesis")), [STORY.start_index],
                "chain_broken"),
    "time": (edit_entry(LAST, lambda body: body.update(timestamp="2020-01-01T00:00:00Z")), [LAST],
             "entry_changed"),
    "tool call": (edit_entry(TURN + 2, lambda body: body.update(tool_name="Read")), [TURN + 2],
                  "entry_changed"),
    "kind nobody knows": (edit_entry(LAST - 1, lambda body: body.update(sky="dark")), [LAST - 1],
                          "entry_changed"),
    "two entries swapped": (swap_entries(FIRST, SECOND), [FIRST, SECOND], "entry_changed"),
    "order of lines": (reverse_lines, [SEAL], "index_gap"),
    "a record left out": (leave_out_record(SECOND), [STORY.thoughts[2], SEAL], "entry_missing"),
    "the last record left out": (leave_out_record(LAST), [SEAL], "seal_mismatch"),
    "a tool call left out": (leave_out(TURN + 2), [SEAL], "seal_mismatch"),
    "the seal left out": (leave_out(SEAL), [], "entry_missing"),
    "root of the seal": (edit_entry(SEAL, flip("root")), [SEAL], "entry_changed"),
    "count of the seal": (edit_entry(SEAL, lambda body: body.update(entry_count=3)), [SEAL],
                          "seal_mismatch"),
    "root in the description": (edit_session(flip("root")), [SEAL], "seal_mismatch"),
    "caller in the description": (
        edit_session(lambda session: session["metadata"].update(caller="somebody")),
        [STORY.start_index], "seal_mismatch"),
    "path in the seal": (
        edit_session(lambda session: session["records"][1].update(
            path=[other(one) for one in session["records"][1]["path"]])),
        [SECOND], "seal_mismatch"),
    "proof": (edit_proof, [SECOND], "entry_changed"),
    "proof left out": (drop_proof, [SECOND], "entry_changed"),
    "checkpoint": (in_every_note(other_root), [], "signature_bad"),
    "signature": (in_every_note(other_signature), [], "signature_bad"),
    "checkpoint of one file": (lambda parts: parts.update(checkpoint=other_root(
        parts["checkpoint"])), [], "signature_bad"),
    "marked erased": (replace_text(SECOND, "content", {"erased": FIRST}), [SECOND],
                      "erasure_unexplained"),
    "text left out": (replace_text(TURN, "content", None), [TURN], "payload_lost"),
    "text too many": (replace_text(SEAL - 1, "reason", {"text": "because"}), [SEAL - 1],
                      "payload_mismatch"),
    "not an entry": (edit_line("entries.jsonl", SECOND, lambda line: line.update(entry="{}")),
                     [SECOND], "entry_not_canonical"),
    "a space in an entry": (
        edit_line("entries.jsonl", SECOND, lambda line: line.update(entry=line["entry"] + " ")),
        [SECOND], "entry_not_canonical"),
    "a part too many in the list": (lambda parts: parts.update(extra="x"), [], "entry_changed"),
    "a proof too many": (
        lambda parts: parts.update({"proofs/99.tlog-proof": parts[f"proofs/{SECOND}.tlog-proof"]}),
        [], "entry_missing"),
    "a line of texts too many": (
        lambda parts: parts.update({"payloads.jsonl": parts["payloads.jsonl"]
            + '{"fields":{"content":{"text":"x"}},"index":99}\n'}), [], "entry_missing"),
    "withheld, and yet there": (
        replace_text(SECOND, "content", {"text": "x", "withheld": True}), [SECOND],
        "payload_lost"),
    "the policy left out": (lambda parts: parts.pop("policy.txt"), [], "entry_missing"),
    "a policy without a quorum": (
        lambda parts: parts.update({"policy.txt": parts["policy.txt"].split("quorum")[0]}), [],
        "signature_bad"),
    "a policy that means nothing": (
        lambda parts: parts.update({"policy.txt": parts["policy.txt"].replace("log", "lag")}), [],
        "signature_bad"),
    "more said of the session": (
        edit_session(lambda session: session.update(approved=True)), [], "entry_not_canonical"),
    "more said of the scope": (
        edit_manifest("scope", {"id": "s1", "kind": "session", "note": "x"}), [],
        "entry_not_canonical"),
    "another session in the scope": (
        edit_manifest("scope", {"id": "s2", "kind": "session"}), [], "seal_mismatch"),
    "origin in the manifest": (edit_manifest("origin", "elsewhere"), [], "entry_changed"),
    "size in the manifest": (edit_manifest("size", 7), [], "entry_changed"),
    "a part too many": (lambda parts: parts.update(extra="x"), [], None),
}  # fmt: skip

UNLISTED = ("a part too many", "checkpoint of one file")


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """Shows evidence; one page after the other in one tab."""
    visit = Visit(browser)
    file = tmp_path_factory.mktemp("edits") / "edited.html"

    def show(parts):
        text = render_page({name: text.encode() for name, text in parts.items()})
        file.write_text(text, encoding="utf-8")
        return visit, visit.open(file)

    yield show
    visit.page.close()
    assert visit.said == []


def findings(visit):
    told = visit.page.text_content("#wrong") + visit.page.text_content("#story")
    return set(re.findall(r"\(([a-z]+_[a-z_]+), ", told))


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_is_red_where_it_was_made(page, what):
    edit, places, code = EDITS[what]
    parts = STORY.parts()
    edit(parts)
    if what not in UNLISTED:
        list_files_again(parts)
    visit, verdict = page(parts)
    assert verdict == "broken"
    assert visit.in_state("broken") == places
    assert code is None or code in findings(visit)
    assert visit.in_state("waiting") == []


@pytest.mark.parametrize("what", EDITS)
def test_the_program_and_the_page_agree_on_every_edit(what):
    """So that no edit is red on the page alone, or green there and found by the program."""
    parts = STORY.parts()
    EDITS[what][0](parts)
    if what not in UNLISTED:
        list_files_again(parts)
    data = encode_archive({name: text.encode() for name, text in parts.items()})
    trust = Trust(keys=(KEY.verifier,))
    assert verify_evidence(data, trust).verdict == VIOLATION


def test_the_program_verifies_the_story_that_is_edited_here():
    data = encode_archive({name: text.encode() for name, text in STORY.parts().items()})
    assert verify_evidence(data, Trust(keys=(KEY.verifier,))).verdict == VERIFIED


def test_an_edit_of_a_careless_forger_names_the_part_too(page):
    parts = STORY.parts()
    edit_text(SECOND, "content", text="Let it be.")(parts)
    visit, _ = page(parts)
    assert visit.in_state("broken") == [SECOND]
    assert visit.line("Parts")[0] == "broken"
    said = "is not the part that the manifest lists (entry_changed, payloads.jsonl)"
    assert said in visit.page.inner_text("#wrong")


def test_under_a_checkpoint_that_was_not_signed_nothing_is_green(page):
    parts = STORY.parts()
    in_every_note(other_signature)(parts)
    visit, _ = page(parts)
    assert visit.in_state("held") == []
    assert visit.line("Signature")[0] == "broken"
    assert visit.line("Log")[0] == "open"


def test_a_withheld_text_is_told_and_its_record_is_not_called_checked(page):
    parts = STORY.parts()
    for index in (SECOND, TURN):
        replace_text(index, "content", {"withheld": True})(parts)
    list_files_again(parts)
    visit, verdict = page(parts)
    assert verdict == "open"
    assert visit.in_state("open") == [TURN, SECOND]
    assert visit.line("Texts")[0] == "open"
    assert "2 withheld by whoever made this file" in visit.line("Texts")[1]
    assert "withheld" in visit.page.text_content(f"#e{SECOND}")


def test_an_erased_text_is_told_with_the_entry_that_says_so(page):
    story = tell_story()
    body = {"fields": [[SECOND, "content"]], "field_count": 1, "by": "ann"}
    erased = story.add("payload.erased", body, reason="a name was in it")
    parts = story.parts()
    replace_text(SECOND, "content", {"erased": erased})(parts)
    list_files_again(parts)
    visit, verdict = page(parts)
    assert verdict == "open"
    assert visit.in_state("open") == [SECOND]
    assert f"erased, as entry {erased} says" in visit.page.text_content(f"#e{SECOND}")


def test_a_record_signed_after_its_seal_is_red(page):
    story = SwornSession()
    story.think("so it is", "reflection")
    story.seal()
    late = story.think("and one more", "reflection")
    visit, verdict = page(story.parts())
    assert verdict == "broken"
    assert late in visit.in_state("broken")


def test_a_part_that_cannot_be_read_at_all_is_red_and_breaks_nothing_else(page):
    proof = f"proofs/{SECOND}.tlog-proof"
    for place in [proof, *(name for name in STORY.parts() if not name.startswith("proofs/"))]:
        for text in ("", '{"a":1,"a":2}\n'):
            parts = STORY.parts()
            parts[place] = text
            assert page(parts)[1] == "broken", (place, text)


FLIP = """async ([parts, step]) => {
  const missed = [];
  let count = 0;
  for (const name of Object.keys(parts)) {
    for (let at = count % step; at < parts[name].length; at += step) {
      const text = parts[name];
      const flipped = String.fromCharCode(text.charCodeAt(at) ^ 1);
      const edited = { ...parts, [name]: text.slice(0, at) + flipped + text.slice(at + 1) };
      const report = new Report();
      await checkEvidence(await readEvidence(edited, report), report, () => {});
      if (report.findings.length === 0) missed.push([name, at]);
      count++;
    }
  }
  return [count, missed];
}"""


def test_no_character_can_be_changed_unseen(browser, tmp_path):
    """Of every part, each ninth character; the steps of parts begin at different places."""
    story = SwornSession()
    story.think("so it is")
    add_tool_call(story, 1, "Bash", {"command": "ls"}, "x")
    story.think("and so it was", "reflection")
    story.seal()
    file = tmp_path / "script.html"
    file.write_text("<!DOCTYPE html><title>x</title>", encoding="utf-8")
    tab = browser.new_page()
    tab.goto(file.as_uri())
    tab.add_script_tag(content=checking_script())
    count, missed = tab.evaluate(FLIP, [story.parts(), 9])
    tab.close()
    assert count > 800
    assert missed == []


def test_an_edited_check_says_what_its_editor_wants_and_the_evidence_does_not(browser, tmp_path):
    """What the page itself says of its limits: the program still finds what was edited."""
    parts = STORY.parts()
    edit_text(SECOND, "content", text="Let it be.")(parts)
    list_files_again(parts)
    files = {name: text.encode() for name, text in parts.items()}
    silent = render_page(files).replace("find(code, index, place, message) {", "find() { return;")
    script = silent.split("<script>")[1].split("</script>")[0]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    file = tmp_path / "silent.html"
    file.write_text(re.sub(r"script-src '[^']+'", f"script-src 'sha256-{digest}'", silent), "utf-8")
    visit = Visit(browser)
    assert visit.open(file) == "held"
    visit.page.close()
    data = encode_archive(files)
    assert verify_evidence(data, Trust(keys=(KEY.verifier,))).verdict == VIOLATION
