"""The task chain against the pinned hash and a session from another implementation."""

import json
from pathlib import Path

import pytest

from affidavit.core.canonical import encode_restricted, encode_string, hex_digest
from affidavit.core.thought import ZERO_HASH, task_hash

DATA = Path(__file__).parent / "data" / "affidavit-v1"
PINNED = json.loads((DATA / "pinned.json").read_text(encoding="utf-8"))
THOUGHTS = json.loads((DATA / "session.json").read_text(encoding="utf-8"))["thoughts"]
HASHED_KEYS = ("content", "id", "prev_hash", "task_id", "timestamp", "type")


def hash_of(thought):
    quoted = {key: encode_string(thought[key]) for key in HASHED_KEYS}
    return task_hash(
        quoted["content"],
        quoted["id"],
        thought["prev_hash"],
        quoted["task_id"],
        quoted["timestamp"],
        thought["type"],
    )


def test_the_pinned_record_has_the_pinned_hash():
    assert PINNED["input"]["prev_hash"] == ZERO_HASH
    assert hash_of(PINNED["input"]) == PINNED["hash"]
    assert PINNED["hash"].startswith("6a2f9597")


@pytest.mark.parametrize("thought", THOUGHTS, ids=lambda thought: thought["id"])
def test_every_recorded_hash_is_reproduced(thought):
    assert hash_of(thought) == thought["hash"]


@pytest.mark.parametrize("thought", THOUGHTS, ids=lambda thought: thought["id"])
def test_the_hash_is_that_of_the_canonical_object(thought):
    value = {key: thought[key] for key in HASHED_KEYS}
    assert hex_digest(encode_restricted(value)) == thought["hash"]


def test_each_record_links_to_the_one_before_it_in_its_task():
    heads = {}
    for thought in THOUGHTS:
        assert thought["prev_hash"] == heads.get(thought["task_id"], ZERO_HASH)
        heads[thought["task_id"]] = hash_of(thought)
    assert set(heads) == {"t1", "t2"}


@pytest.mark.parametrize("key", HASHED_KEYS)
def test_a_change_of_any_hashed_key_changes_the_hash(key):
    changed = dict(PINNED["input"])
    changed[key] = {"prev_hash": "1" * 64, "type": "analysis"}.get(key, changed[key] + "x")
    assert hash_of(changed) != PINNED["hash"]
