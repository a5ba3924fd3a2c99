"""The session chain, the seal and its two trees against a session from another implementation."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from affidavit.core.canonical import encode_string
from affidavit.core.entry import decode_entry
from affidavit.core.merkle import (
    check_inclusion,
    complete_levels,
    leaf_hash,
    prove_inclusion,
    tree_root,
)
from affidavit.core.session import Continued, Metadata, chain_hash, content_hash, genesis

DATA = Path(__file__).parent / "data" / "affidavit-v1"
SESSION = json.loads((DATA / "session.json").read_text(encoding="utf-8"))
LOG = json.loads((DATA / "log.json").read_text(encoding="utf-8"))
THOUGHTS = SESSION["thoughts"]
SEAL = SESSION["seal"]
ENTRIES = [text.encode() for text in LOG["entries"]]
BODIES = [decode_entry(entry).body for entry in ENTRIES]
CONTENT_KEYS = ("agent_id", "content", "id", "session_id", "task_id", "timestamp")
RECORD_LEAVES = [leaf_hash(ENTRIES[thought["index"]]) for thought in THOUGHTS]


def content_hash_of(thought):
    return content_hash(*(encode_string(thought[key]) for key in CONTENT_KEYS), thought["type"])


def reader_of(leaves):
    levels = complete_levels(leaves)
    return SimpleNamespace(read_hashes=lambda nodes: [levels[n.level][n.position] for n in nodes])


def test_the_genesis_is_the_hash_of_the_metadata():
    assert genesis(SESSION["metadata"]) == SESSION["genesis_hex"]


def test_metadata_writes_the_seven_keys_that_the_genesis_is_taken_over():
    metadata = Metadata(**SESSION["metadata"])
    assert metadata.to_body() == SESSION["metadata"]
    assert genesis(metadata.to_body()) == SESSION["genesis_hex"]


def test_a_continued_session_stands_in_the_metadata_as_an_object():
    earlier = Continued("s0", "a" * 64)
    body = Metadata(**{**SESSION["metadata"], "continues": earlier}).to_body()
    assert body["continues"] == {"chain_hash": "a" * 64, "session_id": "s0"}
    assert genesis(body) != SESSION["genesis_hex"]


def test_the_started_entry_holds_the_metadata_and_the_genesis():
    body = BODIES[SESSION["entry_indices"][0]]
    assert {key: body[key] for key in SESSION["metadata"]} == SESSION["metadata"]
    assert body["genesis"] == SESSION["genesis_hex"]


@pytest.mark.parametrize("thought", THOUGHTS, ids=lambda thought: thought["id"])
def test_every_content_hash_is_reproduced(thought):
    assert content_hash_of(thought) == thought["content_hash"]


@pytest.mark.parametrize("key", [*CONTENT_KEYS, "type"])
def test_a_change_of_any_said_key_changes_the_content_hash(key):
    changed = {**THOUGHTS[0], key: "analysis" if key == "type" else "other"}
    assert content_hash_of(changed) != THOUGHTS[0]["content_hash"]


def test_the_chain_runs_from_the_genesis_to_the_seal():
    parent = SESSION["genesis_hex"]
    for position, thought in enumerate(THOUGHTS):
        assert thought["parent_chain_hash"] == parent
        assert thought["session_seq"] == position
        parent = chain_hash(content_hash_of(thought), parent)
        assert thought["chain_hash"] == parent
    assert parent == SEAL["chain_hash"]


@pytest.mark.parametrize("thought", THOUGHTS, ids=lambda thought: thought["id"])
def test_the_entry_of_a_thought_holds_both_chains(thought):
    body = BODIES[thought["index"]]
    assert body == {key: thought[key] for key in thought if key not in ("content", "index")}


def test_the_sealed_root_covers_the_records_of_the_session():
    assert tree_root(RECORD_LEAVES).hex() == SEAL["root"]
    assert len(THOUGHTS) == SEAL["record_count"]
    assert (THOUGHTS[0]["index"], THOUGHTS[-1]["index"]) == (
        SEAL["first_index"],
        SEAL["last_index"],
    )


def test_the_entries_root_covers_every_entry_that_names_the_session_before_its_seal():
    seal_index = SESSION["seal_index"]
    indices = [i for i in range(seal_index) if BODIES[i].get("session_id") == SEAL["session_id"]]
    assert indices == SESSION["entry_indices"]
    leaves = [leaf_hash(ENTRIES[index]) for index in indices]
    assert tree_root(leaves).hex() == SEAL["entries_root"]
    assert len(leaves) == SEAL["entry_count"]


def test_the_seal_entry_holds_exactly_the_seal():
    assert BODIES[SESSION["seal_index"]] == SEAL
    assert (THOUGHTS[-1]["type"] == "reflection") is SEAL["closing_reflection"]


@pytest.mark.parametrize("position", range(len(THOUGHTS)))
def test_the_inclusion_path_of_every_record_is_reproduced_and_checks(position):
    proof = prove_inclusion(position, len(RECORD_LEAVES), reader_of(RECORD_LEAVES))
    assert [digest.hex() for digest in proof] == SESSION["inclusion_paths_hex"][position]
    root = bytes.fromhex(SEAL["root"])
    check_inclusion(position, len(RECORD_LEAVES), RECORD_LEAVES[position], proof, root)
