"""What is stored, for how long, and how it is found: the required behaviours by name."""

from pathlib import Path

DAY_US = 86_400_000_000
ONE = "7f000000-0000-4000-8000-000000000001"
SECRET = "hunter2secret99"


def think(ledger, content):
    return ledger.record_thought(type="plan", task_id="t", agent_id="a", content=content)


def test_texts_go_after_a_period_only_when_a_person_sets_one(open_ledger):
    now = [1_776_384_000_000_000]
    ledger = open_ledger(clock=lambda: now[0])
    ledger.upsert_turn(ONE, ONE, "user", "an old turn")
    decision = think(ledger, "an old decision")
    now[0] += 100 * DAY_US
    ledger.retain()
    assert ledger.get_turn(ONE).content == "an old turn"
    ledger.set_retention("turn", 90, by="owner")
    assert ledger.get_turn(ONE).content is None
    assert ledger.get_thought(decision.id).content == "an old decision"


def test_secrets_are_removed_before_anything_is_stored(ledger, path):
    think(ledger, f"log in with password={SECRET}")
    ledger.start_session(intent=f"https://me:{SECRET}@example.com")
    for name in (path, f"{path}-wal"):
        assert SECRET.encode() not in Path(name).read_bytes()


def test_erased_words_are_gone_and_the_chains_hold(ledger, path):
    one = think(ledger, "about the pineapple")
    think(ledger, "what follows")
    ledger.erase(record_id=one.id, by="owner")
    assert ledger.get_thought(one.id).erased
    assert ledger.verify().valid
    assert ledger.search("pineapple") == []
    for name in Path(path).parent.glob("trail.db*"):
        assert b"pineapple" not in name.read_bytes()


def test_words_of_other_scripts_and_parts_of_identifiers_are_found(ledger):
    for text in ("\u6570\u636e\u5e93", "\u0627\u0644\u0643\u062a\u0627\u0628", "getUserName"):
        think(ledger, text)
    for query in ("\u6570\u636e", "\u0643\u062a\u0627\u0628", "user"):
        assert len(ledger.search(query)) == 1
