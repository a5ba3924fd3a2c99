"""Proof that a log signed two histories: for notes of any two sizes, and never for honest ones."""

from __future__ import annotations

import json

import pytest

from affidavit.core.canonical import canonicalize_value
from affidavit.core.checkpoint import TreeHead, parse_checkpoint, sign_checkpoint
from affidavit.core.merkle import (
    Digest,
    LeafTree,
    leaf_hash,
    prove_consistency,
    read_root,
    tree_root,
)
from affidavit.core.misbehaviour import Fork, check_fork, decode_fork, encode_fork, find_fork
from affidavit.core.note import SigningKey
from affidavit.errors import InputError, IntegrityViolation
from affidavit.verify.misbehaviour import verify_misbehaviour
from affidavit.verify.trust import Trust

KEY, OTHER = SigningKey("log.example", b"\x01" * 32), SigningKey("log.example", b"\x02" * 32)
TRUST = Trust(keys=(KEY.verifier,))
HONEST = [leaf_hash(bytes((n,))) for n in range(9)]
FORKED = [*HONEST[:3], leaf_hash(b"another"), *HONEST[4:]]


def note(leaves, key=KEY):
    head = TreeHead(key.name, len(leaves), Digest(tree_root(leaves)))
    return parse_checkpoint(sign_checkpoint(head, [key]))


def fork_of(older, newer, old_key=KEY, new_key=KEY):
    """What somebody can show who holds the newer log and was given the older note."""
    tree = LeafTree(newer)
    return Fork(
        note(older, old_key),
        note(newer, new_key),
        read_root(len(older), tree),
        tuple(prove_consistency(len(older), len(newer), tree)),
    )


FORK = fork_of(HONEST[:5], FORKED)


@pytest.mark.parametrize("size", [4, 5, 7, 8, 9])
def test_notes_of_any_sizes_behind_the_fork_show_it(size):
    fork = fork_of(HONEST[:size], FORKED)
    check_fork(fork)
    report = verify_misbehaviour(encode_fork(fork), TRUST)
    assert report.verdict == "violation"
    assert [one.code for one in report.findings] == ["fork"]
    assert decode_fork(encode_fork(fork)) == fork


@pytest.mark.parametrize("size", [1, 3, 9])
def test_honest_notes_show_none(size):
    fork = fork_of(HONEST[:size], HONEST)
    with pytest.raises(IntegrityViolation):
        check_fork(fork)
    report = verify_misbehaviour(encode_fork(fork), TRUST)
    assert (report.verdict, report.findings) == ("could not be verified", ())
    assert find_fork(fork.older, fork.newer, fork.prefix_root, fork.proof) is None


def test_a_made_up_proof_shows_none():
    for change in (
        {"prefix_root": Digest(b"x" * 32)},
        {"proof": FORK.proof[:-1]},
        {"proof": (*FORK.proof, Digest(b"x" * 32))},
        {"older": note(HONEST[:4])},
        {"newer": note(HONEST)},
    ):
        report = verify_misbehaviour(encode_fork(FORK._replace(**change)), TRUST)
        assert (report.verdict, report.findings) == ("could not be verified", ())


def test_it_shows_nothing_without_the_key_that_signed_both():
    data = encode_fork(FORK)
    assert verify_misbehaviour(data).verdict == "consistent, not authenticated"
    assert verify_misbehaviour(data, Trust(keys=(OTHER.verifier,))).verdict == (
        "could not be verified"
    )
    mixed = encode_fork(fork_of(HONEST[:5], FORKED, new_key=OTHER))
    assert verify_misbehaviour(mixed, TRUST).verdict == "could not be verified"
    both = Trust(keys=(KEY.verifier, OTHER.verifier))
    assert verify_misbehaviour(mixed, both).verdict == "violation"


def test_two_logs_are_no_fork():
    other = SigningKey("other.example", b"\x03" * 32)
    report = verify_misbehaviour(encode_fork(fork_of(HONEST[:5], FORKED, new_key=other)), TRUST)
    assert report.missing == ("the file shows no fork: the notes are of two logs",)


def test_no_byte_of_it_can_be_changed():
    data = encode_fork(FORK)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        try:
            verdict = verify_misbehaviour(bytes(changed), TRUST).verdict
        except InputError:
            continue
        assert verdict == "could not be verified", place


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "spoon"), ("v", 2), ("v", True), ("notes", []), ("notes", [1, 2]),
        ("notes", ["x", "y"]), ("proof", "x"), ("proof", ["x"]), ("proof", ["0" * 64] * 65),
        ("prefix_root", "x"), ("prefix_root", None), ("more", 1),
    ],
)  # fmt: skip
def test_another_shape_is_refused(key, value):
    content = {**json.loads(encode_fork(FORK)), key: value}
    with pytest.raises(InputError):
        decode_fork(canonicalize_value(content).encode() + b"\n")


@pytest.mark.parametrize("data", [b"", b"{}", b"{}\n", b"[]\n", b"\xff\n", b"null\n"])
def test_what_is_no_such_file_is_refused(data):
    with pytest.raises(InputError):
        decode_fork(data)


def test_it_has_one_spelling():
    data = encode_fork(FORK)
    for other in (data[:-1], data + b"\n", b" " + data, data.replace(b'"v":1', b'"v":1,"v":1')):
        with pytest.raises(InputError):
            decode_fork(other)
