"""Trees against a naive reading of RFC 6962: every size, every proof, every damaged proof."""

from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.core.merkle import (
    EMPTY_ROOT,
    Frontier,
    check_consistency,
    check_inclusion,
    complete_levels,
    leaf_hash,
    levels_root,
    node_hash,
    prove_consistency,
    prove_inclusion,
    read_root,
    tree_root,
)
from affidavit.errors import AffidavitError, InputError, IntegrityViolation

SIZE_MAX = 600
EVERY_PAIR_MAX = 130
EVERY_BIT_MAX = 16
LEAVES = [leaf_hash(str(position).encode()) for position in range(SIZE_MAX)]


# RFC 6962 2.1, word for word, over the leaves from `start` to `end`.


def split(size):
    """The largest power of two smaller than `size`."""
    power = 1
    while power * 2 < size:
        power *= 2
    return power


@cache
def mth(start, end):
    if end == start:
        return EMPTY_ROOT
    if end - start == 1:
        return LEAVES[start]
    middle = start + split(end - start)
    return node_hash(mth(start, middle), mth(middle, end))


def audit_path(index, start, end):
    if end - start == 1:
        return []
    middle = start + split(end - start)
    if index < middle:
        return [*audit_path(index, start, middle), mth(middle, end)]
    return [*audit_path(index, middle, end), mth(start, middle)]


def sub_proof(old_end, start, end, *, whole):
    if old_end == end:
        return [] if whole else [mth(start, end)]
    middle = start + split(end - start)
    if old_end <= middle:
        return [*sub_proof(old_end, start, middle, whole=whole), mth(middle, end)]
    return [*sub_proof(old_end, middle, end, whole=False), mth(start, middle)]


def reader_of(size):
    """A reader over `size` leaves that has complete subtrees only, and counts its calls."""

    def read_hashes(nodes):
        reader.calls += 1
        return [read_node(node) for node in nodes]

    def read_node(node):
        start, end = node.position << node.level, (node.position + 1) << node.level
        assert 0 <= start < end <= size
        return mth(start, end)

    reader = SimpleNamespace(calls=0, read_hashes=read_hashes)
    return reader


def flip(digest, bit):
    changed = bytearray(digest)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def damaged_digests(digests, bits):
    """These digests again and again, each time with one bit of one of them changed."""
    for place, digest in enumerate(digests):
        for bit in bits:
            yield [*digests[:place], flip(digest, bit), *digests[place + 1 :]]


def resized_proofs(proof):
    for place in range(len(proof)):
        yield [*proof[:place], *proof[place + 1 :]]
    for place in range(len(proof) + 1):
        yield [*proof[:place], LEAVES[0], *proof[place:]]


def refuses(check, *arguments):
    try:
        check(*arguments)
    except IntegrityViolation:
        return True
    return False


def assert_inclusion_holds_only_undamaged(index, size, bits):
    proof, root = prove_inclusion(index, size, reader_of(size)), mth(0, size)
    check_inclusion(index, size, LEAVES[index], proof, root)
    for leaf, other_root, *path in damaged_digests([LEAVES[index], root, *proof], bits):
        assert refuses(check_inclusion, index, size, leaf, path, other_root)
    for path in resized_proofs(proof):
        assert refuses(check_inclusion, index, size, LEAVES[index], path, root)
    for bit in range(size.bit_length() + 1):
        assert refuses(check_inclusion, index ^ 1 << bit, size, LEAVES[index], proof, root)


def assert_consistency_holds_only_undamaged(old_size, new_size, bits):
    proof = prove_consistency(old_size, new_size, reader_of(new_size))
    old_root, new_root = mth(0, old_size), mth(0, new_size)
    check_consistency(old_size, new_size, old_root, new_root, proof)
    for old, new, *path in damaged_digests([old_root, new_root, *proof], bits):
        assert refuses(check_consistency, old_size, new_size, old, new, path)
    for path in resized_proofs(proof):
        assert refuses(check_consistency, old_size, new_size, old_root, new_root, path)
    for bit in range(new_size.bit_length() + 1):
        other = old_size ^ 1 << bit
        assert refuses(check_consistency, other, new_size, old_root, new_root, proof)


@st.composite
def large_pairs(draw):
    """(smaller, size) with 0 <= smaller < size, above the sizes that are tried one by one."""
    size = draw(st.integers(EVERY_PAIR_MAX + 1, SIZE_MAX))
    return draw(st.integers(0, size - 1)), size


def test_all_ways_to_a_root_agree_at_every_size():
    frontier = Frontier()
    for size in range(SIZE_MAX + 1):
        expected = mth(0, size)
        assert frontier.size == size
        assert frontier.root() == expected
        assert tree_root(LEAVES[:size]) == expected
        assert read_root(size, reader_of(size)) == expected
        if size < SIZE_MAX:
            frontier.add(LEAVES[size])


def test_the_complete_levels_are_exactly_the_complete_subtrees_at_every_size():
    for size in range(SIZE_MAX + 1):
        expected = [LEAVES[:size]]
        while (width := 1 << len(expected)) <= size:
            starts = range(0, size - width + 1, width)
            expected.append([mth(start, start + width) for start in starts])
        levels = complete_levels(LEAVES[:size])
        assert levels == expected
        assert levels_root(levels) == mth(0, size)


@pytest.mark.parametrize("size", range(1, EVERY_PAIR_MAX + 1))
def test_every_inclusion_proof_of_a_size_is_the_naive_one_and_checks(size):
    for index in range(size):
        proof = prove_inclusion(index, size, reader_of(size))
        assert proof == audit_path(index, 0, size)
        check_inclusion(index, size, LEAVES[index], proof, mth(0, size))


@pytest.mark.parametrize("size", range(1, EVERY_PAIR_MAX + 1))
def test_every_consistency_proof_of_a_size_is_the_naive_one_and_checks(size):
    for old_size in range(1, size + 1):
        proof = prove_consistency(old_size, size, reader_of(size))
        assert proof == sub_proof(old_size, 0, size, whole=True)
        check_consistency(old_size, size, mth(0, old_size), mth(0, size), proof)


@given(large_pairs())
@settings(deadline=None, max_examples=300)
def test_proofs_in_larger_trees_are_the_naive_ones_and_check(pair):
    smaller, size = pair
    inclusion = prove_inclusion(smaller, size, reader_of(size))
    assert inclusion == audit_path(smaller, 0, size)
    check_inclusion(smaller, size, LEAVES[smaller], inclusion, mth(0, size))
    consistency = prove_consistency(smaller + 1, size, reader_of(size))
    assert consistency == sub_proof(smaller + 1, 0, size, whole=True)
    check_consistency(smaller + 1, size, mth(0, smaller + 1), mth(0, size), consistency)


@pytest.mark.parametrize("size", range(1, EVERY_BIT_MAX + 1))
def test_every_changed_bit_breaks_an_inclusion_proof(size):
    for index in range(size):
        assert_inclusion_holds_only_undamaged(index, size, range(256))


@pytest.mark.parametrize("size", range(1, EVERY_BIT_MAX + 1))
def test_every_changed_bit_breaks_a_consistency_proof(size):
    for old_size in range(1, size + 1):
        assert_consistency_holds_only_undamaged(old_size, size, range(256))


@pytest.mark.parametrize("size", range(EVERY_BIT_MAX + 1, EVERY_PAIR_MAX + 1))
def test_a_changed_bit_of_any_hash_breaks_the_proofs_of_a_size(size):
    for smaller in range(size):
        bits = [(smaller * 37 + size) % 256]
        assert_inclusion_holds_only_undamaged(smaller, size, bits)
        assert_consistency_holds_only_undamaged(smaller + 1, size, bits)


@given(large_pairs(), st.integers(0, 255))
@settings(deadline=None, max_examples=200)
def test_a_changed_bit_breaks_the_proofs_in_larger_trees(pair, bit):
    smaller, size = pair
    assert_inclusion_holds_only_undamaged(smaller, size, [bit])
    assert_consistency_holds_only_undamaged(smaller + 1, size, [bit])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100, 130])
def test_a_reader_is_asked_exactly_once(size):
    for smaller in range(size):
        for ask in (
            lambda reader, index=smaller: prove_inclusion(index, size, reader),
            lambda reader, index=smaller: prove_consistency(index + 1, size, reader),
            lambda reader: read_root(size, reader),
        ):
            reader = reader_of(size)
            ask(reader)
            assert reader.calls == 1


@pytest.mark.parametrize(("index", "size"), [(-1, 1), (0, 0), (1, 1), (5, 4), (0, -1)])
def test_an_index_outside_the_tree_has_no_proof(index, size):
    with pytest.raises(InputError):
        prove_inclusion(index, size, reader_of(SIZE_MAX))
    with pytest.raises(IntegrityViolation):
        check_inclusion(index, size, LEAVES[0], [], LEAVES[0])


@pytest.mark.parametrize(("old_size", "new_size"), [(0, 0), (0, 5), (2, 1), (-1, 3)])
def test_sizes_out_of_order_have_no_consistency_proof(old_size, new_size):
    with pytest.raises(InputError):
        prove_consistency(old_size, new_size, reader_of(SIZE_MAX))
    with pytest.raises(IntegrityViolation):
        check_consistency(old_size, new_size, LEAVES[0], LEAVES[0], [])


@given(
    st.integers(-2, 2**70),
    st.integers(-2, 2**70),
    st.lists(st.binary(min_size=31, max_size=33) | st.just(LEAVES[0]), max_size=80),
)
@settings(deadline=None, max_examples=300)
def test_arbitrary_claims_are_refused_and_nothing_else_is_raised(first, second, hashes):
    digests = [*hashes, LEAVES[1], LEAVES[2]]
    for check in (
        lambda: check_inclusion(first, second, digests[0], digests[2:], digests[1]),
        lambda: check_consistency(first, second, digests[0], digests[1], digests[2:]),
    ):
        with pytest.raises(AffidavitError):
            check()


def test_an_inclusion_proof_of_the_wrong_length_is_refused_even_where_the_root_fits():
    leaf, other = LEAVES[:2]
    check_inclusion(0, 2, leaf, [other], node_hash(leaf, other))
    with pytest.raises(IntegrityViolation, match="too long"):
        check_inclusion(0, 1, leaf, [other], node_hash(other, leaf))
    with pytest.raises(IntegrityViolation, match="too short"):
        check_inclusion(0, 2, leaf, [], leaf)


def test_a_consistency_proof_of_the_wrong_length_is_refused_even_where_the_roots_fit():
    third, fourth, before, more = LEAVES[:4]
    old, new = node_hash(before, third), node_hash(before, node_hash(third, fourth))
    proof = [third, fourth, before]
    check_consistency(3, 4, old, new, proof)
    with pytest.raises(IntegrityViolation, match="too long"):
        check_consistency(3, 4, node_hash(more, old), node_hash(more, new), [*proof, more])
    with pytest.raises(IntegrityViolation, match="too short"):
        check_consistency(3, 4, third, node_hash(third, fourth), proof[:2])


def test_a_refusal_shows_the_computed_and_the_expected_root():
    with pytest.raises(IntegrityViolation) as caught:
        check_inclusion(0, 1, LEAVES[0], [], LEAVES[1])
    assert caught.value.details == {"computed": LEAVES[0].hex(), "expected": LEAVES[1].hex()}
