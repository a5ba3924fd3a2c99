"""Code-edit proposals: pending, approved or denied, applied, reverted; no other way."""

import itertools

import pytest

from contract.calls import refused

ID = "0b0e8c1a-0000-4000-8000-000000000001"
DIFFS = [{"path": "src/a.py", "diff": "-1\n+2\n"}]
MOVES = {
    "approved": lambda ledger: ledger.decide_proposal(ID, "approved", "owner"),
    "denied": lambda ledger: ledger.decide_proposal(ID, "denied", "owner"),
    "applied": lambda ledger: ledger.apply_proposal(ID),
    "reverted": lambda ledger: ledger.revert_proposal(ID),
}
ALLOWED = {
    "nothing": ["pending"],
    "pending": ["approved", "denied"],
    "approved": ["applied"],
    "denied": [],
    "applied": ["reverted"],
    "reverted": [],
}
WAY_TO = {
    "nothing": [],
    "pending": [],
    "approved": ["approved"],
    "denied": ["denied"],
    "applied": ["approved", "applied"],
    "reverted": ["approved", "applied", "reverted"],
}


@pytest.mark.parametrize(("status", "to"), list(itertools.product(ALLOWED, MOVES)))
def test_every_other_move_is_refused_with_what_is_allowed(ledger, status, to):
    if status != "nothing":
        ledger.create_proposal(ID, DIFFS)
    for step in WAY_TO[status]:
        MOVES[step](ledger)
    size = len(ledger)
    if to in ALLOWED[status]:
        assert MOVES[to](ledger).status == to
    elif to == status:
        assert MOVES[to](ledger).status == to
        assert len(ledger) == size
    else:
        with refused("ERR_INVALID_LIFECYCLE") as caught:
            MOVES[to](ledger)
        assert caught.value.details["allowed"] == ALLOWED[status]
        assert len(ledger) == size


def test_a_proposal_tells_its_whole_story(ledger):
    made = ledger.create_proposal(ID, DIFFS, 0.85)
    assert (made.diffs, made.confidence, made.status) == (DIFFS, 0.85, "pending")
    ledger.decide_proposal(ID, "approved", "owner", "measured", decided_at_ms=11)
    ledger.apply_proposal(ID, "abc", applied_at_ms=12)
    told = ledger.revert_proposal(ID, "def", reverted_at_ms=13)
    assert ledger.get_proposal(ID) == told
    assert (told.diffs, told.reason, told.decided_by) == (DIFFS, "measured", "owner")
    assert (told.decided_at_ms, told.applied_at_ms, told.reverted_at_ms) == (11, 12, 13)
    assert (told.commit_hash, told.revert_commit_hash) == ("abc", "def")


def test_the_same_proposal_again_is_nothing_and_other_diffs_are_refused(ledger):
    made = ledger.create_proposal(ID, DIFFS)
    assert ledger.create_proposal(ID, '[{"diff": "-1\\n+2\\n", "path": "src/a.py"}]') == made
    with refused("ERR_INVALID_LIFECYCLE"):
        ledger.create_proposal(ID, [])
    assert len(ledger) == 2


def test_files_in_diffs_are_relative_to_the_project(open_ledger):
    ledger = open_ledger(project_root="/p")
    text = "--- a/src/x.py\n+++ /p/src/x.py\n@@ -1 +1 @@\n--- /dev/null\n"
    made = ledger.create_proposal(ID, {"/p/src/x.py": text, "/q/y.py": "+"})
    assert made.diffs == {
        "src/x.py": "--- a/src/x.py\n+++ src/x.py\n@@ -1 +1 @@\n--- /dev/null\n",
        "/q/y.py": "+",
    }
    assert made.paths_outside == 1


def test_lists_are_newest_first(ledger):
    names = [f"0b0e8c1a-0000-4000-8000-00000000000{n}" for n in range(4)]
    for name in names:
        ledger.create_proposal(name, [])
    ledger.decide_proposal(names[1], "denied", "owner")
    assert [one.request_id for one in ledger.list_proposals()] == names[::-1]
    assert [one.request_id for one in ledger.list_proposals(status="denied")] == [names[1]]
    page = ledger.list_proposals(limit=2)
    assert [p.request_id for p in ledger.list_proposals(after=page[-1].index)] == names[1::-1]
