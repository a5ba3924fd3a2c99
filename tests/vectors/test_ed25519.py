"""Ed25519 edge cases (C2SP CCTV): they pin which rule is used, so that verifiers never disagree."""

import json
from pathlib import Path

import pytest

from affidavit.core.ed25519 import is_signature, public_key, sign

PATH = Path(__file__).parent / "data" / "ed25519-cctv" / "ed25519vectors.json"
VECTORS = json.loads(PATH.read_text(encoding="utf-8"))


def is_accepted(vector):
    public, signature = bytes.fromhex(vector["key"]), bytes.fromhex(vector["sig"])
    return is_signature(public, signature, vector["msg"].encode())


def test_every_vector_has_the_answer_it_always_had():
    accepted = [vector for vector in VECTORS if is_accepted(vector)]
    assert (len(VECTORS), len(accepted)) == (914, 86)


def test_no_key_of_small_order_and_no_second_spelling_is_accepted():
    for vector in VECTORS:
        if is_accepted(vector):
            assert not {"low_order_A", "non_canonical_A", "non_canonical_R"} & set(
                vector["flags"] or ()
            )


def test_what_has_no_flag_that_forbids_it_is_accepted():
    forbidding = {"low_order_A", "non_canonical_A", "non_canonical_R", "low_order_residue"}
    for vector in VECTORS:
        if not forbidding & set(vector["flags"] or ()):
            assert is_accepted(vector), vector["number"]


@pytest.mark.parametrize("wrong", [b"", b"\x00" * 63, b"\x00" * 65])
def test_a_signature_or_key_of_another_length_is_no_signature(wrong):
    public = public_key(bytes(32))
    assert is_signature(public, sign(bytes(32), b"m"), b"m")
    assert not is_signature(public, wrong, b"m")
    assert not is_signature(wrong, sign(bytes(32), b"m"), b"m")


def test_a_second_spelling_of_s_is_refused():
    signature = sign(bytes(32), b"m")
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(signature[32:], "little") + order
    other = signature[:32] + s.to_bytes(32, "little")
    assert not is_signature(public_key(bytes(32)), other, b"m")
