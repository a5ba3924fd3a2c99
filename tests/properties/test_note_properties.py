"""Signed notes, tiles, proofs and policies: round trips, forgeries, and texts nobody wrote."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.core import ed25519
from affidavit.core.checkpoint import (
    Checkpoint,
    TreeHead,
    check_checkpoint,
    decode_tree_head,
    encode_tree_head,
    parse_checkpoint,
    sign_checkpoint,
)
from affidavit.core.merkle import complete_levels, leaf_hash
from affidavit.core.note import (
    COSIGNATURE,
    SigningKey,
    UnverifiedSignature,
    VerifierKey,
    check_note,
    parse_note,
    parse_signing_key,
    parse_verifier_key,
    sign_note,
)
from affidavit.core.policy import check_quorum, parse_policy
from affidavit.core.tile import (
    Tile,
    decode_bundle,
    decode_tile,
    encode_bundle,
    parse_tile_path,
    tiles_between,
)
from affidavit.core.tlog_proof import TlogProof, decode_proof, encode_proof
from affidavit.errors import AffidavitError, CannotVerify

names = st.text(min_size=1, max_size=20).filter(
    lambda text: not any(c.isspace() or c == "+" or c < " " or "\ud800" <= c <= "\udfff"
                         for c in text)
)  # fmt: skip
secrets = st.binary(min_size=32, max_size=32)
signing_keys = st.builds(SigningKey, names, secrets)
texts = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=60).map(
    lambda text: f"{text}\n\n{text}\n"
)
digests = st.binary(min_size=32, max_size=32)
sizes = st.integers(0, 2**63 - 1)


@settings(deadline=None)
@given(signing_keys)
def test_keys_are_read_back(key):
    assert parse_signing_key(key.encode()) == key
    assert parse_verifier_key(str(key.verifier)) == key.verifier
    witness = key.verifier._replace(type=COSIGNATURE)
    assert parse_verifier_key(str(witness)) == witness
    assert witness.id != key.verifier.id


@settings(deadline=None)
@given(texts, st.lists(signing_keys, min_size=1, max_size=3, unique_by=lambda key: key.verifier))
def test_notes_are_read_back_and_believed(text, keys):
    data = sign_note(text, keys)
    note = parse_note(data)
    assert note.encode() == data
    checked = check_note(note, [key.verifier for key in keys])
    assert (checked.text, len(checked.signatures)) == (text, len(keys))
    with pytest.raises(CannotVerify):
        check_note(note, [SigningKey("nobody.example", bytes(32)).verifier])


def test_every_change_of_one_bit_is_refused():
    key = SigningKey("example.com/log", bytes(range(32)))
    data = sign_checkpoint(TreeHead(key.name, 7, leaf_hash(b"x")), [key])
    for place in range(len(data) * 8):
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(AffidavitError):
            check_checkpoint(parse_checkpoint(bytes(changed)), [key.verifier])


@settings(deadline=None)
@given(names.filter(lambda name: "\n" not in name), sizes, digests)
def test_tree_heads_are_read_back(origin, size, root):
    head = TreeHead(origin, size, root)
    assert decode_tree_head(encode_tree_head(head)) == head


@settings(deadline=None)
@given(sizes, st.lists(digests, max_size=63), st.none() | st.binary(min_size=1), st.binary())
def test_proofs_are_read_back(index, hashes, extra, checkpoint):
    proof = TlogProof(index, tuple(hashes), checkpoint, extra)
    assert decode_proof(encode_proof(proof)) == proof


@settings(deadline=None)
@given(st.integers(0, 63), st.integers(0, 2**63 - 1), st.integers(1, 256))
def test_paths_are_read_back(level, number, width):
    tile = Tile(level, number, width)
    assert parse_tile_path(tile.path) == tile


@settings(deadline=None)
@given(st.lists(st.binary(max_size=70_000), max_size=4))
def test_bundles_are_read_back(entries):
    if all(len(entry) <= 65_535 for entry in entries):
        assert decode_bundle(encode_bundle(entries), len(entries)) == entries


@settings(deadline=None)
@given(st.integers(0, 2000), st.integers(0, 2000))
def test_tiles_of_growth_are_those_that_hold_something_new(a, b):
    old, new = sorted((a, b))
    grown = set(tiles_between(0, new)) - set(tiles_between(0, old))
    assert set(tiles_between(old, new)) == grown
    kept = {node for tile in tiles_between(0, new) for node in tile.nodes()}
    levels = complete_levels([leaf_hash(b"")] * new) if new else []
    assert kept == {
        (level, position)
        for level, row in enumerate(levels)
        if level % 8 == 0
        for position in range(len(row))
    }


FOUND = json.loads(
    (Path(__file__).parents[1] / "vectors/data/affidavit-v1/log.json").read_text(encoding="utf-8")
)
SAMPLES = [
    FOUND["checkpoints_by_size"][3],
    FOUND["log_proofs_at_full_size"][3],
    FOUND["vkey"],
    FOUND["test_signing_key"],
    "witness a b\ngroup g all a\nquorum g\n",
    "tile/1/x001/002.p/3",
]
PARSERS = [
    parse_note,
    parse_checkpoint,
    decode_proof,
    parse_policy,
    lambda data: parse_verifier_key(data.decode(errors="surrogateescape")),
    lambda data: parse_signing_key(data.decode(errors="surrogateescape")),
    lambda data: parse_tile_path(data.decode(errors="surrogateescape")),
    lambda data: decode_tree_head(data.decode(errors="surrogateescape")),
    lambda data: decode_bundle(data, 1),
    lambda data: decode_tile(data, 1),
]


@st.composite
def mutations(draw):
    data = bytearray(draw(st.sampled_from(SAMPLES)).encode())
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, len(data)))
        data[start:end] = draw(
            st.binary(max_size=6) | st.sampled_from([b"+", b"\n", b"\n\n", b" "])
        )
    return bytes(data)


@pytest.mark.parametrize("parse", PARSERS)
@settings(deadline=None)
@given(mutations() | st.binary(max_size=200))
def test_parsers_raise_nothing_but_our_errors(parse, data):
    try:
        parse(data)
    except AffidavitError:
        return


def witness(number):
    return VerifierKey(f"w{number}", COSIGNATURE, ed25519.public_key(bytes([number] * 32)))


def cosigned(times):
    """A checkpoint with a cosignature for each (witness, time)."""
    head = TreeHead("example.com/log", 1, leaf_hash(b""))
    note = parse_note(sign_checkpoint(head, [SigningKey(head.origin, bytes(32))]))
    lines = []
    for number, time_s in times:
        message = f"cosignature/v1\ntime {time_s}\n{note.text}".encode()
        value = time_s.to_bytes(8, "big") + ed25519.sign(bytes([number] * 32), message)
        key = witness(number)
        lines.append(UnverifiedSignature(key.name, key.id, value))
    return Checkpoint(head, note._replace(signatures=(*note.signatures, *lines)))


def policy_of(count, rule):
    lines = [f"witness W{n} {witness(n)}" for n in range(count)]
    return parse_policy("\n".join([*lines, *rule]).encode())


@settings(deadline=None)
@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 5), st.integers(1, 99)), max_size=8))
def test_a_quorum_proves_the_kth_smallest_time(threshold, times):
    members = " ".join(f"W{n}" for n in range(5))
    policy = policy_of(5, [f"group g {threshold} {members}", "quorum g"])
    first = {}
    for number, time_s in times:
        if number < 5:  # the last one is a witness nobody named
            first[number] = min(time_s, first.get(number, time_s))
    if len(first) < threshold:
        with pytest.raises(CannotVerify):
            check_quorum(policy, cosigned(times))
    else:
        assert check_quorum(policy, cosigned(times)) == sorted(first.values())[threshold - 1]


def test_a_group_of_groups_vouches_when_its_parts_do():
    rule = ["group a any W0 W1", "group b all W2 W3", "group c all a b", "quorum c"]
    policy = policy_of(4, rule)
    assert check_quorum(policy, cosigned([(0, 50), (1, 10), (2, 20), (3, 30)])) == 30
    with pytest.raises(CannotVerify):
        check_quorum(policy, cosigned([(0, 50), (1, 10), (2, 20)]))


def test_a_policy_that_needs_nobody_proves_no_time():
    assert check_quorum(parse_policy(b"# nothing\n\n\t quorum  none \n"), cosigned([])) is None


@pytest.mark.parametrize(
    "rule",
    [
        [],
        ["quorum W0", "quorum W0"],
        ["quorum missing"],
        ["group g any W0", "group h any W0", "quorum h"],
        ["group g any W0 W0", "quorum g"],
        ["group g 3 W0 W1", "quorum g"],
        ["group g 0 W0 W1", "quorum g"],
        ["group g 01 W0 W1", "quorum g"],
        ["group g any h", "group h any W0", "quorum h"],
        ["group none any W0", "quorum none"],
        ["group W0 any W1", "quorum W0"],
        ["group g any none", "quorum g"],
        ["group g any", "quorum g"],
        [f"witness again {witness(0)}", "quorum none"],
        [f"log {witness(0)}", "quorum none"],
        [f"witness X {SigningKey('x', bytes(32)).verifier}", "quorum none"],
        ["quorum none\x0b"],
        ["quorum none more"],
        ["other words", "quorum none"],
    ],
)
def test_policies_that_cannot_be_understood_are_refused(rule):
    with pytest.raises(AffidavitError):
        policy_of(2, rule)
