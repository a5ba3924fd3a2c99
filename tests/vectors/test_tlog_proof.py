"""Proofs, cosignatures and policies of other implementations and of the specifications."""

import base64
import hashlib
import json
from pathlib import Path

import pytest

from affidavit.core import ed25519
from affidavit.core.checkpoint import (
    TreeHead,
    check_checkpoint,
    check_cosignatures,
    parse_checkpoint,
    sign_checkpoint,
)
from affidavit.core.merkle import EMPTY_ROOT
from affidavit.core.note import COSIGNATURE, VerifierKey, parse_signing_key, parse_verifier_key
from affidavit.core.policy import Group, parse_policy
from affidavit.core.tlog_proof import TlogProof, check_proof, decode_proof, encode_proof
from affidavit.errors import CannotVerify, InputError, IntegrityViolation

DATA = Path(__file__).parent / "data"


def load(*path):
    return json.loads(DATA.joinpath(*path).read_text(encoding="utf-8"))


PROOFS = load("tlog-proof", "tlog_proof.json")
COSIGNED = load("tlog-proof", "cosig_vkeys.json")
FACTS = load("cosignature-sunlight", "facts.json")
SPECS = load("c2sp-specs", "examples.json")
LOG = load("affidavit-v1", "log.json")
ENTRIES = [text.encode() for text in LOG["entries"]]
LOG_KEY = parse_verifier_key(LOG["vkey"])


@pytest.mark.parametrize("case", PROOFS["marshal"])
def test_proofs_are_written_and_read_back(case):
    extra = base64.b64decode(case["extra"]) if "extra" in case else None
    hashes = tuple(base64.b64decode(one) for one in case["hashes"])
    proof = TlogProof(case["index"], hashes, case["checkpoint"].encode(), extra)
    assert encode_proof(proof).decode() == case["want"]
    assert decode_proof(case["want"].encode()) == proof


@pytest.mark.parametrize("text", PROOFS["must_refuse"])
def test_bad_proofs_are_refused(text):
    with pytest.raises(InputError):
        decode_proof(text.encode())


def test_the_shape_in_the_specification_is_read():
    proof = decode_proof(SPECS["tlog_proof_shape"].encode())
    assert (proof.log_index, len(proof.hashes)) == (73894, 5)
    assert proof.extra is not None
    assert encode_proof(proof).decode() == SPECS["tlog_proof_shape"]
    with pytest.raises(InputError):  # its signature lines are shortened
        parse_checkpoint(proof.checkpoint)


@pytest.mark.parametrize("size", range(len(ENTRIES) + 1))
def test_our_checkpoints_are_those_of_the_other_implementation(size):
    head = TreeHead(LOG["origin"], size, bytes.fromhex(LOG["roots_hex_by_size"][size]))
    note = sign_checkpoint(head, [parse_signing_key(LOG["test_signing_key"])])
    assert note.decode() == LOG["checkpoints_by_size"][size]
    assert check_checkpoint(parse_checkpoint(note), [LOG_KEY]).head == head


@pytest.mark.parametrize("index", range(len(ENTRIES)))
def test_our_proofs_are_those_of_the_other_implementation(index):
    text = LOG["log_proofs_at_full_size"][index].encode()
    proof = decode_proof(text)
    assert (proof.log_index, encode_proof(proof)) == (index, text)
    assert check_proof(proof, ENTRIES[index], [LOG_KEY]).head.size == len(ENTRIES)
    with pytest.raises(IntegrityViolation):
        check_proof(proof, ENTRIES[index] + b" ", [LOG_KEY])


@pytest.mark.parametrize("case", COSIGNED["accepted"], ids=lambda case: case[0])
def test_keys_of_the_types_we_read(case):
    name, text = case
    if "MLDSA44" in name:
        with pytest.raises(InputError):
            parse_verifier_key(text)
    else:
        assert str(parse_verifier_key(text)) == text


def test_the_time_in_a_cosignature():
    raw = base64.b64decode(COSIGNED["timestamp"]["sig_base64"])
    assert int.from_bytes(raw[4:12], "big") == COSIGNED["timestamp"]["want_unix"]


def cosigned(folder):
    path = DATA / "cosignature-sunlight" / folder
    described = load("cosignature-sunlight", folder, next(path.glob("*.v0.json")).name)
    [key] = [parse_verifier_key(text) for text in described["verifier_keys"]]
    return parse_checkpoint((path / "checkpoint").read_bytes()), key


@pytest.mark.parametrize("folder", ["witness", "witness2", "mirror"])
def test_cosignatures_of_another_implementation_are_believed(folder):
    found, key = cosigned(folder)
    [signature] = check_cosignatures(found, [key])
    assert (signature.key, signature.time_s) == (key, FACTS["cosignature_time"])
    assert found.claims.size == FACTS["tree_size"]


@pytest.mark.parametrize("name", FACTS["ed25519_seed"])
def test_the_published_secrets_lead_to_the_published_keys(name):
    told = FACTS["ed25519_seed"][name].removeprefix("SHA-256('").removesuffix("')")
    public = ed25519.public_key(hashlib.sha256(told.encode()).digest())
    folder = name.split(".")[0]
    assert cosigned(folder)[1] == VerifierKey(name, COSIGNATURE, public)


def test_a_cosignature_of_another_checkpoint_or_time_is_refused():
    found, key = cosigned("witness")
    other = found._replace(note=found.note._replace(text=found.note.text.replace("300", "301")))
    with pytest.raises(IntegrityViolation):
        check_cosignatures(other, [key])
    line = found.note.signatures[-1]
    for later in (1, 2**63):
        value = (FACTS["cosignature_time"] + later).to_bytes(8, "big") + line.value[8:]
        lines = (line._replace(value=value),)
        with pytest.raises(IntegrityViolation):
            check_cosignatures(found._replace(note=found.note._replace(signatures=lines)), [key])


def test_a_cosignature_is_not_a_signature_of_the_log():
    found, key = cosigned("witness")
    with pytest.raises(CannotVerify):
        check_checkpoint(found, [key])
    with pytest.raises(CannotVerify):  # a key of another log has no say
        check_checkpoint(found, [LOG_KEY])


def test_the_policy_of_the_specification_is_read():
    text = SPECS["policy"]
    for number in range(text.count("<vkey>")):
        type_ = 0x04 if number else 0x01
        public = ed25519.public_key(bytes([number] * 32))
        text = text.replace("<vkey>", str(VerifierKey(f"k{number}.example", type_, public)), 1)
    policy = parse_policy(text.encode())
    assert [key.name for key in policy.logs] == ["k0.example"]
    assert list(policy.witnesses) == ["X1", "X2", "X3", "Y1", "Y2", "Y3"]
    assert policy.groups == {
        "X-witnesses": Group(2, ("X1", "X2", "X3")),
        "Y-witnesses": Group(1, ("Y1", "Y2", "Y3")),
        "X-and-Y": Group(2, ("X-witnesses", "Y-witnesses")),
    }
    assert policy.quorum == "X-and-Y"


def test_the_empty_log_has_the_root_of_nothing():
    assert parse_checkpoint(LOG["checkpoints_by_size"][0].encode()).claims.root == EMPTY_ROOT
