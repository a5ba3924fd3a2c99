"""Signed notes of Go's sumdb and of the specifications, and the text of its tree heads."""

import base64
import json
from pathlib import Path

import pytest

from affidavit.core.checkpoint import TreeHead, decode_tree_head, encode_tree_head
from affidavit.core.merkle import check_consistency, leaf_hash
from affidavit.core.note import (
    check_note,
    parse_note,
    parse_signing_key,
    parse_verifier_key,
    sign_note,
)
from affidavit.errors import AffidavitError, CannotVerify, InputError, IntegrityViolation

DATA = Path(__file__).parent / "data"
NOTES = json.loads((DATA / "signed-note-golang" / "note.json").read_text(encoding="utf-8"))
TREES = json.loads((DATA / "signed-note-golang" / "tlog.json").read_text(encoding="utf-8"))
SPECS = json.loads((DATA / "c2sp-specs" / "examples.json").read_text(encoding="utf-8"))


def keys(texts):
    return [parse_verifier_key(text) for text in texts]


def bad_message(case):
    if "msg" in case:
        return case["msg"].encode()
    if "msg_latin1_first_byte" in case:
        return bytes.fromhex(case["msg_latin1_first_byte"]) + case["msg_rest"].encode()
    text, _, line = NOTES["sign"]["want"].rpartition("\n\n")
    return f"{text}\n\n{101 * (line)}".encode()


def test_the_published_key_signs_the_published_note():
    key = parse_signing_key(NOTES["published_test_signing_key"])
    assert sign_note(NOTES["sign"]["text"], [key]).decode() == NOTES["sign"]["want"]
    assert key.encode() == NOTES["published_test_signing_key"]
    assert str(key.verifier) == NOTES["vkeys"]["PeterNeumann"]
    assert base64.b64encode(key.secret).decode() not in repr(key)


@pytest.mark.parametrize("text", NOTES["vkeys"].values())
def test_verifier_keys_are_read_and_written_back(text):
    assert str(parse_verifier_key(text)) == text


@pytest.mark.parametrize("text", NOTES["bad_vkeys"])
def test_bad_verifier_keys_are_refused(text):
    with pytest.raises(InputError):
        parse_verifier_key(text)


@pytest.mark.parametrize("case", NOTES["open_ok"])
def test_notes_are_believed(case):
    note = check_note(parse_note(case["msg"].encode()), keys(case["verifiers"]))
    assert [signature.key.name for signature in note.signatures] == case["verified"]
    assert [line.name for line in note.others] == case["unverified"]
    assert note.text == NOTES["sign"]["text"]


ERRORS = {
    "note has no verifiable signatures": CannotVerify,
    "ambiguous key EnochRoot+af0cfe78": InputError,
    "malformed note": InputError,
    "invalid signature for key PeterNeumann+c74f20a3": IntegrityViolation,
}


@pytest.mark.parametrize("case", NOTES["open_bad"])
def test_bad_notes_are_refused_each_for_its_reason(case):
    with pytest.raises(AffidavitError) as caught:
        check_note(parse_note(bad_message(case)), keys(case["verifiers"]))
    assert type(caught.value) is ERRORS[case["want_error"]]


def test_the_specification_example_is_believed():
    example = SPECS["signed_note"]
    note = parse_note(example["note"].encode())
    assert check_note(note, keys([example["vkey"]])).text == "This is an example message.\n"
    other = parse_note(example["other_note"].encode())
    assert other.encode().decode() == example["other_note"]
    assert other.text.count("\n\n") == 1
    with pytest.raises(CannotVerify):
        check_note(other, keys([example["vkey"]]))


def test_tree_heads_are_written_as_go_writes_them():
    tree = TREES["format_tree"]
    # Go's test takes the hash of a record as the root.
    head = TreeHead("go.sum database tree", tree["n"], leaf_hash(tree["record"].encode()))
    assert encode_tree_head(head) == tree["want"]
    assert decode_tree_head(tree["want"]) == head


@pytest.mark.parametrize("text", TREES["parse_tree_bad"][1:])
def test_bad_tree_heads_are_refused(text):
    with pytest.raises(InputError):
        decode_tree_head(text)


def test_another_origin_is_another_log():
    assert decode_tree_head(TREES["parse_tree_bad"][0]).origin == "not-go.sum database tree"


def test_a_split_view_is_two_notes_of_one_key_and_no_common_tree():
    split = TREES["split_view"]
    old, new = (
        decode_tree_head(check_note(parse_note(split[one].encode()), keys([split["vkey"]])).text)
        for one in ("old", "new")
    )
    assert (old.origin, old.size, new.size) == (new.origin, 5, 6)
    # First the root that the new tree has at the old size, then the proof that it does.
    contradicting, *proof = [base64.b64decode(one) for one in split["proof_of_misbehavior"]]
    check_consistency(old.size, new.size, contradicting, new.root, proof)
    assert contradicting != old.root
    with pytest.raises(IntegrityViolation):
        check_consistency(old.size, new.size, old.root, new.root, proof)


def test_a_checkpoint_of_the_specification_is_read():
    head = decode_tree_head(parse_note(SPECS["checkpoint"].encode()).text)
    assert (head.origin, head.size) == ("example.com/behind-the-sofa", 20852163)
    note = parse_note(SPECS["cosigned_checkpoint"].encode())
    assert [line.name for line in note.signatures] == [
        "example.com/behind-the-sofa",
        "witness.example.com/w1",
    ]
    time_s = int.from_bytes(note.signatures[1].value[:8], "big")
    assert SPECS["cosigned_message"] == f"cosignature/v1\ntime {time_s}\n{note.text}"
