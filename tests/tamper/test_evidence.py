"""Attacks on an evidence file, each told with its code at its place; the attacker mends all hashes.

An attacker here has the file and may put any bytes into it, but has not the log's key. Those who
have it are in `test_evidence_of_bad_logs.py`, and what nobody can tell in `test_not_caught.py`.
"""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from affidavit.core.archive import encode_archive
from affidavit.core.bundle import Scope
from affidavit.core.canonical import canonicalize_value
from affidavit.core.note import UnverifiedNote, encode_base64, parse_note
from tamper.evidence_kit import (
    ENTRIES,
    KEY,
    SEAL,
    STRANGER,
    ForgedLog,
    Opened,
    change_entry,
    judge,
    payloads_of,
    range_file,
    session_file,
    task_file,
    told,
)

LOG = ForgedLog(ENTRIES)
SESSION, TASK, RANGE = session_file(LOG), task_file(LOG), range_file(LOG)
ERASED = session_file(LOG, erased=True)
MANIFEST, CHECKPOINT, POLICY = "manifest.json", "checkpoint", "policy.txt"
LINES, TEXTS, PART = "entries.jsonl", "payloads.jsonl", "sessions/1.json"


@pytest.mark.parametrize("data", [SESSION, TASK, RANGE, ERASED, task_file(LOG, "t2")])
def test_what_nobody_touched_is_verified(data):
    report = judge(data)
    assert (report.verdict, told(report), report.missing) == ("verified", [], ())
    assert judge(Opened(data).sealed()).verdict == "verified"


def attack(data, tamper):
    opened = Opened(data)
    tamper(opened)
    return judge(opened.sealed())


def change(name, **values):
    """Set keys of a JSON file."""
    return lambda opened: opened.change_json(name, lambda value: value.update(values))


def edit(index, **values):
    """Set keys of the body of an entry."""

    def do(opened):
        def rewrite(line):
            entry = change_entry(line["entry"].encode(), lambda value: value["body"].update(values))
            line["entry"] = entry.decode()

        opened.change_line(LINES, index, rewrite)

    return do


def text(index, name, **shown):
    """Put something else where a payload stands."""
    return lambda opened: opened.change_line(
        TEXTS, index, lambda line: line["fields"].__setitem__(name, shown)
    )


def swap(name, key, first, second):
    def do(opened):
        values = opened.lines(name)
        values[first][key], values[second][key] = values[second][key], values[first][key]
        opened.put_lines(name, values.values())

    return do


def replace(name, old, new):
    """Change bytes of a file, as they are."""

    def do(opened):
        assert old in opened.files[name]
        opened.files[name] = opened.files[name].replace(old, new, 1)

    return do


def back_date(opened):
    def rewrite(line):
        line["entry"] = change_entry(
            line["entry"].encode(), lambda value: value.update(at=value["at"] - 3_600_000_000)
        ).decode()

    opened.change_line(LINES, 4, rewrite)


def move_entry(opened):
    """An entry of the log, put where it does not stand."""
    lines = opened.lines(LINES)
    lines[12] = {"entry": lines[10]["entry"], "index": 12}
    opened.put_lines(LINES, lines.values())
    proof = opened.files["proofs/10.tlog-proof"]
    opened.files["proofs/12.tlog-proof"] = proof.replace(b"index 10", b"index 12")


def edit_proof(opened):
    name = "proofs/4.tlog-proof"
    lines = opened.files[name].split(b"\n")
    lines[2] = encode_base64(b"\x07" * 32).encode()
    opened.files[name] = b"\n".join(lines)


def drop(name, index):
    return lambda opened: opened.drop_line(name, index)


def leave_out(index, **options):
    return lambda opened: opened.drop_entry(index, **options)


def remove(name):
    return lambda opened: opened.files.pop(name)


def first_record(**values):
    return lambda opened: opened.change_json(PART, lambda part: part["records"][0].update(values))


ATTACKS = {
    "edit who said it": (SESSION, edit(4, agent_id="agent-9"), ("entry_changed", 4, LINES)),
    "edit which tool ran": (SESSION, edit(5, tool_name="Read"), ("entry_changed", 5, LINES)),
    "edit a seal": (SESSION, edit(9, record_count=4), ("entry_changed", 9, LINES)),
    "back-date": (SESSION, back_date, ("entry_changed", 4, LINES)),
    "delete an entry": (SESSION, drop(LINES, 5), ("entry_missing", 5, LINES)),
    "insert an entry": (SESSION, move_entry, ("entry_changed", 12, LINES)),
    "reorder": (SESSION, swap(LINES, "entry", 2, 3), ("entry_changed", 2, LINES)),
    "truncate": (SESSION, drop(LINES, 10), ("entry_missing", 10, LINES)),
    "leave out a record": (
        SESSION, leave_out(4), ("seal_mismatch", 9, f"{LINES} seals.root"),
    ),
    "leave out a record and break its chain": (
        SESSION, leave_out(4), ("chain_broken", 6, f"{LINES} thought_records.parent_chain_hash"),
    ),
    "leave out a tool call": (
        SESSION, leave_out(5), ("seal_mismatch", 9, f"{LINES} seals.entries_root"),
    ),
    "leave out the start": (SESSION, leave_out(1), ("entry_missing", 1, LINES)),
    "leave out a record, still listed": (
        SESSION, leave_out(4, listed=True), ("view_differs", 1, f"{PART} records"),
    ),
    "leave out a record of a task": (
        TASK, leave_out(3), ("chain_broken", 6, f"{LINES} thought_records.prev_hash"),
    ),
    "leave out the first record of a task": (
        TASK, leave_out(2), ("chain_broken", 3, f"{LINES} thought_records.prev_hash"),
    ),
    "leave out an entry of a range": (RANGE, leave_out(5), ("index_gap", 5, LINES)),
    "leave out the end of a range": (RANGE, leave_out(11), ("index_gap", 11, LINES)),
    "edit a content": (
        SESSION, text(4, "content", text="A"), ("payload_mismatch", 4, f"{TEXTS} content"),
    ),
    "edit an intent": (
        SESSION, replace(TEXTS, b"choose", b"refuse"), ("payload_mismatch", 1, f"{TEXTS} intent"),
    ),
    "edit what a tool was asked": (
        SESSION, replace(TEXTS, b"ls -la", b"ls -lb"),
        ("payload_mismatch", 5, f"{TEXTS} arguments"),
    ),
    "edit a salt": (
        SESSION,
        lambda o: o.change_line(
            TEXTS, 1, lambda v: v["fields"]["intent"].update(salt=encode_base64(b"\0" * 32))
        ),
        ("payload_mismatch", 1, f"{TEXTS} intent"),
    ),
    "take a salt away": (
        SESSION, text(1, "intent", text="choose an index"),
        ("payload_mismatch", 1, f"{TEXTS} intent"),
    ),
    "salt a content": (
        SESSION, text(2, "content", text="hello", salt=encode_base64(b"\0" * 32)),
        ("payload_mismatch", 2, f"{TEXTS} content"),
    ),
    "swap two contents": (
        SESSION, swap(TEXTS, "fields", 3, 4), ("payload_mismatch", 3, f"{TEXTS} content"),
    ),
    "drop a payload": (SESSION, drop(TEXTS, 4), ("payload_lost", 4, f"{TEXTS} content")),
    "drop one of two payloads": (
        SESSION, lambda o: o.change_line(TEXTS, 5, lambda v: v["fields"].pop("arguments")),
        ("payload_lost", 5, f"{TEXTS} arguments"),
    ),
    "add a payload": (
        SESSION, text(4, "reason", text="because"), ("view_extra", 4, f"{TEXTS} reason"),
    ),
    "add payloads of no entry": (
        SESSION,
        lambda o: o.put_lines(
            TEXTS,
            [*o.lines(TEXTS).values(), {"fields": {"reason": {"withheld": True}}, "index": 40}],
        ),
        ("view_extra", 40, TEXTS),
    ),
    "add a line without payloads": (
        RANGE,
        lambda o: o.put_lines(TEXTS, [{"fields": {}, "index": 0}, *o.lines(TEXTS).values()]),
        ("evidence_malformed", None, TEXTS),
    ),
    "mark erased": (
        SESSION, text(4, "content", erased=9), ("erasure_unexplained", 4, f"{TEXTS} content"),
    ),
    "mark erased by an erasure of another": (
        ERASED, text(4, "content", erased=11), ("erasure_unexplained", 4, f"{TEXTS} content"),
    ),
    "mark erased by nothing": (
        SESSION, text(4, "content", erased=77), ("erasure_unexplained", 4, f"{TEXTS} content"),
    ),
    "drop the erasure": (ERASED, leave_out(11), ("erasure_unexplained", 1, f"{TEXTS} intent")),
    "edit a proof": (SESSION, edit_proof, ("entry_changed", 4, LINES)),
    "drop a proof": (
        SESSION, remove("proofs/4.tlog-proof"), ("evidence_malformed", 4, "proofs/4.tlog-proof"),
    ),
    "a proof of another entry": (
        SESSION,
        lambda o: o.files.update({"proofs/4.tlog-proof": o.files["proofs/5.tlog-proof"]}),
        ("evidence_malformed", 4, "proofs/4.tlog-proof"),
    ),
    "a proof that says more": (
        SESSION, replace("proofs/4.tlog-proof", b"index", b"extra AAAA\nindex"),
        ("evidence_malformed", 4, "proofs/4.tlog-proof"),
    ),
    "odd base64 in a proof": (
        SESSION, replace("proofs/4.tlog-proof", b"=\n", b"\n"),
        ("evidence_malformed", 4, "proofs/4.tlog-proof"),
    ),
    "odd base64 in a salt": (
        SESSION, replace(TEXTS, b'rU="', b'rV="'), ("evidence_malformed", None, TEXTS),
    ),
    "odd base64 in the checkpoint": (
        SESSION, replace(CHECKPOINT, b"=\n", b"\n"), ("evidence_malformed", None, CHECKPOINT),
    ),
    "claim another size": (
        SESSION, change(MANIFEST, size=11), ("view_differs", None, f"{MANIFEST} size"),
    ),
    "claim another root": (
        SESSION, change(MANIFEST, root="0" * 64), ("view_differs", None, f"{MANIFEST} root"),
    ),
    "claim another origin": (
        SESSION, change(MANIFEST, origin="other.example"),
        ("view_differs", None, f"{MANIFEST} origin"),
    ),
    "claim another session": (
        SESSION, change(MANIFEST, scope={"id": "s2", "kind": "session"}),
        ("view_differs", None, f"{MANIFEST} scope"),
    ),
    "claim a task": (
        SESSION, change(MANIFEST, scope={"id": "t1", "kind": "task"}), ("view_extra", 4, LINES),
    ),
    "claim a longer range": (
        RANGE, change(MANIFEST, scope={"id": "0:13", "kind": "range"}), ("index_gap", 12, LINES),
    ),
    "claim a shorter range": (
        RANGE, change(MANIFEST, scope={"id": "0:11", "kind": "range"}), ("view_extra", 11, LINES),
    ),
    "replay as another session": (
        SESSION, change(PART, session_id="s2"), ("entry_missing", 1, LINES),
    ),
    "claim another caller": (
        SESSION,
        lambda o: o.change_json(PART, lambda p: p["metadata"].update(caller="agent-2")),
        ("view_differs", 1, f"{PART} metadata"),
    ),
    "claim a number where a session says yes or no": (
        SESSION,
        lambda o: o.change_json(PART, lambda p: p["metadata"].update(proof_grade=0)),
        ("evidence_malformed", None, PART),
    ),
    "claim more about a session than it says": (
        SESSION,
        lambda o: o.change_json(PART, lambda p: p["metadata"].update(approved=True)),
        ("evidence_malformed", None, PART),
    ),
    "claim another genesis": (
        SESSION, change(PART, genesis="0" * 64), ("view_differs", 1, f"{PART} genesis"),
    ),
    "claim another seal": (
        SESSION, change(PART, seal_index=10), ("view_differs", 1, f"{PART} seal_index"),
    ),
    "claim no seal": (
        SESSION, change(PART, seal_index=None), ("view_differs", 1, f"{PART} seal_index"),
    ),
    "claim another session root": (
        SESSION, change(PART, root="0" * 64), ("view_differs", 1, f"{PART} root"),
    ),
    "claim another entries root": (
        SESSION, change(PART, entries_root="0" * 64), ("view_differs", 1, f"{PART} entries_root"),
    ),
    "claim fewer records": (
        SESSION, change(PART, record_count=4), ("view_differs", 1, f"{PART} record_count"),
    ),
    "claim fewer entries": (
        SESSION, change(PART, entry_count=6), ("view_differs", 1, f"{PART} entry_count"),
    ),
    "claim a part is the whole": (
        TASK, change(PART, whole=True), ("seal_mismatch", 9, f"{LINES} seals.root"),
    ),
    "claim the whole is a part": (SESSION, change(PART, whole=False), ("view_extra", 1, PART)),
    "a path to another root": (
        TASK, first_record(path=["0" * 64] * 3), ("seal_mismatch", 2, f"{PART} records"),
    ),
    "no path": (TASK, first_record(path=[]), ("seal_mismatch", 2, f"{PART} records")),
    "list another record": (TASK, first_record(index=1), ("view_differs", 1, f"{PART} records")),
    "drop the description of a session": (SESSION, remove(PART), ("view_missing", 1, "sessions")),
    "describe a session of a range": (
        RANGE, lambda o: o.files.update({PART: Opened(SESSION).files[PART]}),
        ("view_extra", 1, PART),
    ),
    "claim another key": (
        SESSION,
        lambda o: o.files.update({POLICY: f"log {STRANGER.verifier}\nquorum none\n".encode()}),
        ("view_differs", None, f"{POLICY} log"),
    ),
    "no policy in the policy": (
        SESSION, lambda o: o.files.update({POLICY: b"hello\n"}),
        ("evidence_malformed", None, POLICY),
    ),
    "drop a file": (SESSION, remove(TEXTS), ("evidence_malformed", None, TEXTS)),
    "add a file": (
        SESSION, lambda o: o.files.update({"notes.txt": b"x"}),
        ("evidence_malformed", None, "notes.txt"),
    ),
    "a file of another name": (
        SESSION, lambda o: o.files.update({"proofs/04.tlog-proof": b"x"}),
        ("evidence_malformed", None, "proofs/04.tlog-proof"),
    ),
    "repeat a key of a payload": (
        SESSION, replace(TEXTS, b'{"text":"hello"}', b'{"text":"hello","text":"hello"}'),
        ("evidence_malformed", None, TEXTS),
    ),
    "repeat a key of a line": (
        SESSION, replace(LINES, b',"index":4}', b',"index":4,"index":4}'),
        ("evidence_malformed", None, LINES),
    ),
    "repeat a key inside an entry": (
        SESSION, replace(LINES, b'\\"v\\":1}', b'\\"v\\":1,\\"v\\":1}'),
        ("entry_changed", 1, LINES),
    ),
    "repeat a line": (
        SESSION, lambda o: o.put_lines(LINES, [*o.lines(LINES).values(), o.lines(LINES)[10]]),
        ("evidence_malformed", None, LINES),
    ),
    "lines out of order": (
        SESSION, lambda o: o.put_lines(LINES, reversed(o.lines(LINES).values())),
        ("evidence_malformed", None, LINES),
    ),
    "JSON in another form": (
        SESSION, lambda o: o.files.update({PART: json.dumps(o.json(PART)).encode()}),
        ("evidence_malformed", None, PART),
    ),
    "no newline at the end": (
        SESSION, lambda o: o.files.update({LINES: o.files[LINES][:-1]}),
        ("evidence_malformed", None, LINES),
    ),
    "something behind a value": (
        SESSION, lambda o: o.files.update({PART: o.files[PART] + b"\n"}),
        ("evidence_malformed", None, PART),
    ),
    "a number as a fraction": (
        SESSION, replace(PART, b'"seal_index":9', b'"seal_index":9.5'),
        ("evidence_malformed", None, PART),
    ),
    "no UTF-8": (
        SESSION, replace(TEXTS, b"hello", b"h\xffllo"), ("evidence_malformed", None, TEXTS),
    ),
    "a checkpoint with a line more": (
        SESSION, replace(CHECKPOINT, b"\n\n", b"\nmore\n\n"),
        ("evidence_malformed", None, CHECKPOINT),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_told_at_its_place(name):
    data, tamper, wanted = ATTACKS[name]
    report = attack(data, tamper)
    assert report.verdict == "violation"
    assert wanted in told(report)
    # One change is not told in a dozen ways.
    assert report.finding_count <= 4, told(report)


@pytest.mark.parametrize("scope", [Scope("record", "r77"), Scope("task", "t77")])
def test_start_and_seal_of_a_session_are_nothing_of_a_record_or_task_that_is_not_there(scope):
    indices = [1, SEAL]
    part = LOG.part(1, seal=SEAL, present=[])
    report = judge(LOG.evidence(scope, indices, payloads_of(indices), {1: part}))
    assert (report.verdict, told(report)) == (
        "violation", [("view_differs", None, f"{MANIFEST} scope")],
    )  # fmt: skip


def test_a_session_that_no_record_of_the_file_is_of_does_not_belong_there():
    """An unbound record leads to no session, so none may lend it its seal."""
    assert b'"session_id":null' in ENTRIES[8]
    indices = [1, 8, SEAL]
    part = LOG.part(1, seal=SEAL, present=[])
    record = Scope("record", json.loads(ENTRIES[8])["body"]["id"])
    report = judge(LOG.evidence(record, indices, payloads_of(indices), {1: part}))
    assert told(report) == [("view_extra", 1, PART)]
    alone = judge(LOG.evidence(record, [8], payloads_of([8])))
    assert (alone.verdict, told(alone)) == ("verified", [])


def test_a_file_that_is_not_the_one_listed_is_told_by_its_name():
    opened = Opened(SESSION)
    opened.files[POLICY] += b"# from a friend\n"
    assert told(judge(encode_archive(opened.files))) == [
        ("view_differs", None, f"{MANIFEST} files {POLICY}")
    ]


def test_a_manifest_that_lists_too_much_or_too_little():
    for change_files in (
        lambda files: files.pop(TEXTS),
        lambda files: files.update({"more.txt": "0" * 64}),
    ):
        opened = Opened(SESSION)
        manifest = opened.json(MANIFEST)
        change_files(manifest["files"])
        opened.files[MANIFEST] = canonicalize_value(manifest).encode()
        report = judge(encode_archive(opened.files))
        assert told(report) == [("evidence_malformed", None, MANIFEST)]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../b", "a\\b"])
def test_a_path_that_leads_out_of_the_file_is_refused(name):
    opened, target = Opened(SESSION), io.BytesIO()
    with zipfile.ZipFile(target, "w") as container:
        for file, data in sorted({**opened.files, name: b"x"}.items()):
            container.writestr(zipfile.ZipInfo(file), data)
    assert told(judge(target.getvalue())) == [("evidence_malformed", None, "archive")]


def test_a_truncated_file_is_refused():
    for end in (30, len(SESSION) // 2, len(SESSION) - 1):
        assert told(judge(SESSION[:end])) == [("evidence_malformed", None, "archive")]


def test_another_checkpoint_of_the_same_log_does_not_fit_the_proofs():
    shorter = Opened(range_file(ForgedLog(ENTRIES[:-1]), 0, 11))
    report = attack(
        RANGE, lambda opened: opened.files.update({CHECKPOINT: shorter.files[CHECKPOINT]})
    )
    assert {code for code, *_ in told(report)} == {"evidence_malformed", "view_differs"}
    assert [index for code, index, _ in told(report) if code == "evidence_malformed"] == [
        *range(12)
    ]


def test_entries_of_one_ledger_do_not_stand_in_another():
    """Replayed with the other log's own checkpoint in every proof."""
    other = ForgedLog([ENTRIES[0], *ENTRIES[2:], ENTRIES[1]])

    def replay(opened):
        for name in [name for name in opened.files if name.startswith("proofs/")]:
            head, _, _ = opened.files[name].partition(b"\n\n")
            opened.files[name] = head + b"\n\n" + other.note
        opened.files[CHECKPOINT] = other.note
        opened.change_json(MANIFEST, lambda value: value.update(root=other.head.root.hex()))

    report = attack(RANGE, replay)
    assert told(report) == [("entry_changed", index, LINES) for index in range(12)]


def test_a_signature_that_does_not_fit_is_told():
    note = LOG.note.replace(LOG.note[-12:-8], b"AAAA")
    report = attack(SESSION, lambda opened: opened.files.update({CHECKPOINT: note}))
    assert ("signature_bad", None, CHECKPOINT) in told(report)


def test_a_whole_file_under_a_strangers_key_is_never_verified():
    """The same name, and all that follows made right; but the auditor knows the log's key."""
    forged = range_file(ForgedLog(ENTRIES, STRANGER))
    report = judge(forged)
    assert (report.verdict, told(report)) == ("could not be verified", [])
    assert "none of the known keys signed" in report.missing[0]
    assert judge(forged, STRANGER.verifier).verdict == "verified"


def test_a_key_id_that_was_made_to_collide_does_not_help():
    """It has four bytes only, so a stranger may find a key that has the same."""
    forged = ForgedLog(ENTRIES, STRANGER)
    [line] = parse_note(forged.note).signatures
    note = UnverifiedNote(
        parse_note(forged.note).text, (line._replace(key_id=KEY.verifier.id),)
    ).encode()

    def replace_note(opened):
        opened.files[CHECKPOINT] = note
        for name in [name for name in opened.files if name.startswith("proofs/")]:
            head, _, _ = opened.files[name].partition(b"\n\n")
            opened.files[name] = head + b"\n\n" + note

    assert told(attack(range_file(forged), replace_note)) == [("signature_bad", None, CHECKPOINT)]
