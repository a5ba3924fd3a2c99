"""Proofs of one record and of growth: checked here with nothing but the core and a key."""

from __future__ import annotations

import pytest

from affidavit.core.entry import decode_entry
from affidavit.core.merkle import check_consistency, check_inclusion, leaf_hash, tree_root
from affidavit.core.note import parse_verifier_key
from affidavit.core.tlog_proof import check_proof, decode_proof
from affidavit.errors import InputError
from contract.oracle import log


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))


def think(ledger, **more):
    given = {"type": "plan", "task_id": "t", "agent_id": "a", "content": "because", **more}
    return ledger.record_thought(**given)


def check(ledger, proof):
    """What an auditor does who has the verifier key only."""
    keys = [parse_verifier_key(key.vkey) for key in ledger.list_keys()]
    entry = proof.entry.encode()
    head = check_proof(decode_proof(proof.proof.encode()), entry, keys).head
    assert (head.origin, head.size, head.root.hex()) == (proof.origin, proof.size, proof.root)
    assert decode_entry(entry).body["id"] == proof.id
    if (session := proof.session) is not None:
        seal = session.seal_entry.encode()
        assert check_proof(decode_proof(session.seal_proof.encode()), seal, keys).head == head
        body = decode_entry(seal).body
        assert (body["root"], body["record_count"]) == (session.root, session.record_count)
        path = [bytes.fromhex(one) for one in session.path]
        root = bytes.fromhex(session.root)
        count = session.record_count
        check_inclusion(session.position, count, leaf_hash(entry), path, root)


def test_a_record_is_proved_under_a_checkpoint_that_is_signed_for_it(ledger):
    record = think(ledger)
    proof = ledger.prove(record.id)
    assert (proof.index, proof.session) == (record.index, None)
    assert proof.size == len(ledger)
    check(ledger, proof)


def test_every_record_of_a_sealed_session_is_proved_in_it(ledger):
    session = ledger.start_session(intent="i").session_id
    records = []
    for _ in range(11):
        records.append(think(ledger, session_id=session))
        think(ledger)
    assert ledger.prove(records[0].id).session is None  # not sealed yet
    ledger.seal_session(session)
    for position, record in enumerate(records):
        proof = ledger.prove(record.id)
        assert proof.session.position == position
        check(ledger, proof)


def test_growth_is_proved_between_any_two_sizes(ledger, path):
    for _ in range(20):
        think(ledger)
    leaves = [leaf_hash(entry.raw) for entry in log(path)]
    for old in range(1, len(leaves) + 1):
        proof = ledger.prove_growth(old)
        assert (proof.old_size, proof.new_size) == (old, len(leaves))
        assert proof.old_root == tree_root(leaves[:old]).hex()
        hashes = [bytes.fromhex(one) for one in proof.hashes]
        roots = [bytes.fromhex(one) for one in (proof.old_root, proof.new_root)]
        check_consistency(old, proof.new_size, *roots, hashes)
    assert ledger.prove_growth(3, 7).new_root == tree_root(leaves[:7]).hex()


def test_what_cannot_be_proved_is_refused(ledger):
    think(ledger)
    with pytest.raises(InputError) as caught:
        ledger.prove("nobody")
    assert caught.value.code == "ERR_NOT_FOUND"
    for sizes in ((3, 2), (0, 1), (1, 99)):
        with pytest.raises(InputError):
            ledger.prove_growth(*sizes)
    with pytest.raises(InputError, match="record_id"):
        ledger.prove()
