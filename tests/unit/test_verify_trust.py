"""Whether a checkpoint is believed: keys, witnesses and pins, each alone and together."""

from __future__ import annotations

import pytest

from affidavit.core.checkpoint import TreeHead, parse_checkpoint, sign_checkpoint
from affidavit.core.merkle import Digest
from affidavit.core.note import SigningKey
from affidavit.core.policy import parse_policy
from affidavit.verify.findings import Findings
from affidavit.verify.trust import NOBODY, Trust, judge_checkpoint, render_seen
from unit.witnessing import Witness

KEY, OTHER = SigningKey("log.example", b"\x01" * 32), SigningKey("log.example", b"\x02" * 32)
FOREIGN = SigningKey("other.example", b"\x03" * 32)
HEAD = TreeHead("log.example", 7, Digest(b"\x09" * 32))
NOTE = sign_checkpoint(HEAD, [KEY])
WITNESSES = [Witness(f"w{n}.example", bytes((n,)) * 32) for n in (10, 11, 12)]
LINES = "".join(f"witness w{n} {one.verifier}\n" for n, one in enumerate(WITNESSES))


def judge(trust, note=NOTE):
    findings = Findings()
    standing = judge_checkpoint(parse_checkpoint(note), trust, findings)
    return standing, [(one.code, one.place) for one in findings.kept]


def policy(quorum, key=KEY):
    text = f"log {key.verifier}\n{LINES}group any2 2 w0 w1 w2\nquorum {quorum}\n"
    return Trust(policy=parse_policy(text.encode()))


def cosigned(*times, note=NOTE):
    for witness, time_s in zip(WITNESSES, times, strict=False):
        note = witness.cosign(note, time_s)
    return note


def test_without_anybody_to_believe_something_is_missing():
    standing, told = judge(NOBODY)
    assert (standing.vouchers, told) == ((), [])
    assert standing.missing == (
        "no key, policy or pinned checkpoint of yours says who may sign this log",
    )


@pytest.mark.parametrize("trust", [Trust(keys=(KEY.verifier,)), Trust(own=(KEY.verifier,))])
def test_a_known_key_is_enough(trust):
    standing, told = judge(trust)
    assert (standing.vouchers, standing.missing, told) == ((f"key {KEY.verifier}",), (), [])


def test_a_key_of_another_log_is_not():
    standing, told = judge(Trust(keys=(FOREIGN.verifier,)))
    assert (standing.vouchers, told) == ((), [])
    assert standing.missing == ("none of the keys given is one of 'log.example'",)
    assert judge(Trust(own=(FOREIGN.verifier,)))[0].missing[0].startswith("no key, policy or")


@pytest.mark.parametrize("trust", [Trust(keys=(OTHER.verifier,)), Trust(own=(OTHER.verifier,))])
def test_nor_one_that_did_not_sign(trust):
    standing, told = judge(trust)
    assert told == []
    assert standing.missing[0].startswith("none of the known keys signed the note")


def test_a_known_key_whose_line_does_not_fit_is_a_finding():
    forged = sign_checkpoint(HEAD._replace(size=8), [KEY]).replace(b"\n8\n", b"\n7\n")
    assert judge(Trust(keys=(KEY.verifier,)), forged)[1] == [("signature_bad", "checkpoint")]


def test_a_witness_is_asked_for_only_by_a_policy():
    assert "no witness was asked for (--policy)" in judge(Trust(keys=(KEY.verifier,)))[0].unchecked
    assert judge(policy("any2"), cosigned(5, 9))[0].unchecked == ()


@pytest.mark.parametrize(
    ("quorum", "times", "seen_s"),
    [("w0", (5,), 5), ("any2", (5, 9), 9), ("any2", (9, 5, 7), 7), ("none", (), None)],
)
def test_a_quorum_says_by_when_it_was_seen(quorum, times, seen_s):
    standing, told = judge(policy(quorum), cosigned(*times))
    assert (standing.seen_s, standing.missing, told) == (seen_s, (), [])


def test_a_quorum_not_reached_is_missing_and_no_finding():
    standing, told = judge(policy("any2"), cosigned(5))
    assert told == []
    assert standing.missing == ("the quorum any2 is not reached; 1 of 3 witnesses cosigned",)
    assert standing.vouchers == (f"key {KEY.verifier}",)


def test_witnesses_do_not_stand_for_a_log_that_did_not_sign():
    standing, _ = judge(policy("any2", OTHER), cosigned(5, 9))
    assert standing.missing[0].startswith("none of the known keys signed the note")


def test_a_cosignature_that_does_not_fit_is_a_finding():
    forged = cosigned(5, 9, note=sign_checkpoint(HEAD._replace(size=8), [KEY]))
    _, told = judge(policy("any2"), forged.replace(b"\n8\n", b"\n7\n"))
    assert set(told) == {("signature_bad", "checkpoint")}


def pin(size=7, root=HEAD.root, key=KEY):
    return parse_checkpoint(sign_checkpoint(TreeHead(key.name, size, root), [key]))


def test_the_same_checkpoint_kept_is_enough_alone():
    for trust in (Trust(pinned=(pin(),)), Trust(kept=(pin(),))):
        standing, told = judge(trust)
        assert (standing.vouchers, standing.missing) == (("pinned checkpoint of 7 entries",), ())
        assert told == []


def test_a_pin_does_not_stand_in_for_a_key_that_was_named():
    standing, _ = judge(Trust(keys=(OTHER.verifier,), pinned=(pin(),)))
    assert standing.missing[0].startswith("none of the known keys signed the note")


def test_another_root_at_the_same_size_is_a_fork():
    for trust in (Trust(pinned=(pin(root=Digest(b"x" * 32)),)), Trust(kept=(pin(root=b"x" * 32),))):
        assert judge(trust)[1] == [("fork", "checkpoint")]


def test_pins_that_cannot_be_compared_are_missing_where_they_were_named():
    standing, told = judge(Trust(keys=(KEY.verifier,), pinned=(pin(3), pin(key=FOREIGN))))
    assert told == []
    assert len(standing.missing) == 2
    standing, _ = judge(Trust(keys=(KEY.verifier,), kept=(pin(3), pin(key=FOREIGN))))
    assert standing.missing == ()
    assert any("has 3 entries" in said for said in standing.unchecked)


@pytest.mark.parametrize(("seen_s", "said"), [(0, "1970-01-01T00:00:00.000Z"), (2**62, "second ")])
def test_any_time_a_witness_says_can_be_shown(seen_s, said):
    assert render_seen(seen_s).startswith(said)
