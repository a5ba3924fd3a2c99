"""RFC 6962 trees against third-party data, mutated proofs included."""

import base64
import json
from pathlib import Path

import pytest

from affidavit.core.merkle import (
    EMPTY_ROOT,
    Frontier,
    check_consistency,
    check_inclusion,
    complete_levels,
    leaf_hash,
    levels_root,
    node_hash,
    tree_root,
)
from affidavit.errors import IntegrityViolation

DATA = Path(__file__).parent / "data" / "rfc6962-merkle"


def load(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def cases(name, *, want_error):
    found = [
        pytest.param(case, id=path)
        for path, case in load(name).items()
        if case["wantErr"] is want_error
    ]
    assert found
    return found


ROOTS = load("roots")
LEAVES = [leaf_hash(bytes.fromhex(text)) for text in ROOTS["leaf_inputs_hex"]]
NODES = [[bytes.fromhex(text) for text in row] for row in ROOTS["node_hashes_hex_by_level"]]


def decode(text):
    return base64.b64decode(text, validate=True)


def inclusion(case):
    proof = [decode(text) for text in case["proof"] or []]
    check_inclusion(
        case["leafIdx"], case["treeSize"], decode(case["leafHash"]), proof, decode(case["root"])
    )


def consistency(case):
    proof = [decode(text) for text in case["proof"] or []]
    check_consistency(
        case["size1"], case["size2"], decode(case["root1"]), decode(case["root2"]), proof
    )


def test_the_empty_root():
    assert EMPTY_ROOT.hex() == ROOTS["empty_root_hex"]
    assert tree_root([]) == Frontier().root() == EMPTY_ROOT


def test_the_leaf_hashes():
    assert NODES[0] == LEAVES


@pytest.mark.parametrize("level", range(1, len(NODES)))
def test_the_node_hashes(level):
    below = NODES[level - 1]
    pairs = zip(below[::2], below[1::2], strict=True)
    assert [node_hash(left, right) for left, right in pairs] == NODES[level]


def test_the_complete_levels_are_every_node():
    assert complete_levels(LEAVES) == NODES


@pytest.mark.parametrize("size", range(1, len(LEAVES) + 1))
def test_the_root_of_every_size(size):
    expected = ROOTS["root_hashes_hex_by_size_1_to_8"][size - 1]
    assert tree_root(LEAVES[:size]).hex() == expected
    assert levels_root(complete_levels(LEAVES[:size])).hex() == expected


@pytest.mark.parametrize("case", cases("inclusion", want_error=False))
def test_a_good_inclusion_proof_is_accepted(case):
    inclusion(case)


@pytest.mark.parametrize("case", cases("inclusion", want_error=True))
def test_a_bad_inclusion_proof_is_refused(case):
    with pytest.raises(IntegrityViolation):
        inclusion(case)


@pytest.mark.parametrize("case", cases("consistency", want_error=False))
def test_a_good_consistency_proof_is_accepted(case):
    consistency(case)


@pytest.mark.parametrize("case", cases("consistency", want_error=True))
def test_a_bad_consistency_proof_is_refused(case):
    with pytest.raises(IntegrityViolation):
        consistency(case)
