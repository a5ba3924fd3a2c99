"""A whole log made by another implementation: entries, commitments, leaves and roots."""

import base64
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from affidavit.core.canonical import encode_string
from affidavit.core.entry import (
    commitment,
    decode_entry,
    encode_entry,
    encode_thought,
    is_commitment_to,
    read_at,
)
from affidavit.core.kinds import PAYLOAD_FIELDS
from affidavit.core.merkle import (
    EMPTY_ROOT,
    Frontier,
    check_consistency,
    check_inclusion,
    complete_levels,
    leaf_hash,
    prove_consistency,
    prove_inclusion,
    read_root,
    tree_root,
)
from affidavit.core.thought import task_hash

DATA = Path(__file__).parent / "data" / "affidavit-v1"
LOG = json.loads((DATA / "log.json").read_text(encoding="utf-8"))
ENTRIES = [text.encode() for text in LOG["entries"]]
LEAVES = [bytes.fromhex(text) for text in LOG["leaf_hashes_hex"]]
ROOTS = [bytes.fromhex(text) for text in LOG["roots_hex_by_size"]]
INDICES = range(len(ENTRIES))
PAYLOADS = [
    (line["index"], name, field)
    for line in LOG["payloads"]
    for name, field in line["fields"].items()
]
SALTED = [payload for payload in PAYLOADS if "salt" in payload[2]]
CONTENTS = [payload for payload in PAYLOADS if payload[1] == "content"]
THOUGHT_INDICES = [index for index, _, _ in CONTENTS]


def reader():
    levels = complete_levels(LEAVES)
    return SimpleNamespace(read_hashes=lambda nodes: [levels[n.level][n.position] for n in nodes])


def quote(value):
    return "null" if value is None else encode_string(value)


@pytest.mark.parametrize("index", INDICES)
def test_every_entry_is_read_and_written_back_byte_for_byte(index):
    entry = decode_entry(ENTRIES[index])
    assert encode_entry(entry.at, entry.kind, entry.body, entry.src) == ENTRIES[index]


@pytest.mark.parametrize("index", INDICES)
def test_the_time_is_read_without_reading_the_entry(index):
    assert read_at(ENTRIES[index]) == json.loads(ENTRIES[index])["at"]


@pytest.mark.parametrize("index", THOUGHT_INDICES)
def test_a_thought_built_from_its_parts_has_the_same_bytes(index):
    at, _, body, src = decode_entry(ENTRIES[index])
    found = encode_thought(
        at=at,
        agent=quote(body["agent_id"]),
        chain=quote(body["chain_hash"]),
        content_hash=quote(body["content_hash"]),
        hash_=body["hash"],
        id_=quote(body["id"]),
        parent=quote(body["parent_chain_hash"]),
        prev_hash=body["prev_hash"],
        session=quote(body["session_id"]),
        seq=json.dumps(body["session_seq"]),
        task=quote(body["task_id"]),
        timestamp=quote(body["timestamp"]),
        type_=body["type"],
        src=src,
    )
    assert found == ENTRIES[index]


def test_the_first_entry_creates_the_ledger():
    entry = decode_entry(ENTRIES[0])
    assert entry.kind == "ledger.created"
    assert (entry.body["ledger_id"], entry.body["origin"]) == (LOG["ledger_id"], LOG["origin"])


def test_times_never_go_backwards():
    times = [read_at(entry) for entry in ENTRIES]
    assert times == sorted(times)


@pytest.mark.parametrize(("index", "name", "field"), SALTED)
def test_every_salted_payload_is_the_one_committed_to(index, name, field):
    body = decode_entry(ENTRIES[index]).body
    salt = base64.b64decode(field["salt"], validate=True)
    assert commitment(salt, field["text"]) == body[name]
    assert is_commitment_to(body[name], salt, field["text"])


@pytest.mark.parametrize(("index", "name", "field"), SALTED)
def test_another_text_or_salt_is_not_the_one_committed_to(index, name, field):
    committed = decode_entry(ENTRIES[index]).body[name]
    salt = base64.b64decode(field["salt"], validate=True)
    assert not is_commitment_to(committed, salt, field["text"] + "x")
    assert not is_commitment_to(committed, bytes(32), field["text"])


def test_every_payload_field_of_a_known_kind_has_its_payload():
    expected = set()
    for index, data in enumerate(ENTRIES):
        entry = decode_entry(data)
        names = [n for n in PAYLOAD_FIELDS.get(entry.kind, ()) if entry.body[n] is not None]
        expected.update((index, name) for name in names)
    assert expected
    assert expected <= {(index, name) for index, name, _ in SALTED}


@pytest.mark.parametrize(("index", "name", "field"), CONTENTS)
def test_the_content_of_every_thought_leads_to_its_hash(index, name, field):
    body = decode_entry(ENTRIES[index]).body
    found = task_hash(
        quote(field["text"]),
        quote(body["id"]),
        body["prev_hash"],
        quote(body["task_id"]),
        quote(body["timestamp"]),
        body["type"],
    )
    assert (name, found) == ("content", body["hash"])


@pytest.mark.parametrize("index", INDICES)
def test_every_leaf_hash_is_that_of_the_exact_bytes(index):
    assert leaf_hash(ENTRIES[index]) == LEAVES[index]


def test_the_root_is_right_at_every_size():
    assert len(ROOTS) == len(LEAVES) + 1
    assert ROOTS[0] == EMPTY_ROOT
    frontier = Frontier()
    for size, root in enumerate(ROOTS):
        assert frontier.root() == tree_root(LEAVES[:size]) == read_root(size, reader()) == root
        if size < len(LEAVES):
            frontier.add(LEAVES[size])


@pytest.mark.parametrize("index", INDICES)
def test_every_entry_is_proved_under_every_later_root(index):
    for size in range(index + 1, len(LEAVES) + 1):
        proof = prove_inclusion(index, size, reader())
        check_inclusion(index, size, LEAVES[index], proof, ROOTS[size])


@pytest.mark.parametrize("old_size", range(1, len(LEAVES) + 1))
def test_every_root_is_proved_a_prefix_of_every_later_root(old_size):
    for new_size in range(old_size, len(LEAVES) + 1):
        proof = prove_consistency(old_size, new_size, reader())
        check_consistency(old_size, new_size, ROOTS[old_size], ROOTS[new_size], proof)
