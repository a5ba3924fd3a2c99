"""Settings: their defaults, and that switching a rule off and on again is on the record."""

import pytest

import affidavit
from contract.calls import record, refused
from contract.oracle import log, snapshot

DEFAULTS = {
    "audit_reads": True,
    "payload_paths": "",
    "payloads": "hash",
    "publish": "hashes",
    "redaction": "on",
    "retain_proposal_days": 0,
    "retain_tool_call_days": 0,
    "retain_turn_days": 0,
    "session_idle_hours": 24,
    "transitions": "open",
    "writeback": "any",
}


def test_a_new_ledger_has_the_defaults_in_its_first_entry(ledger, path):
    assert ledger.settings == DEFAULTS
    first = log(path)[0]
    assert (first.index, first.kind) == (0, "ledger.created")
    assert first.body == {
        "ledger_id": ledger.ledger_id,
        "origin": f"affidavit.local/{ledger.ledger_id}",
        "settings": DEFAULTS,
    }


def test_a_ledger_can_be_created_with_other_settings(open_ledger, path):
    ledger = open_ledger(settings={"writeback": "reflection"})
    assert ledger.settings == {**DEFAULTS, "writeback": "reflection"}
    assert log(path)[0].body["settings"] == ledger.settings
    assert len(ledger) == 1


def test_a_change_is_an_entry_with_old_and_new_and_who(ledger, path):
    answer = ledger.set(writeback="reflection", by="ana")
    assert answer == ledger.settings == {**DEFAULTS, "writeback": "reflection"}
    (changed,) = log(path, "setting.changed")
    assert changed.body == {"name": "writeback", "old": "any", "new": "reflection", "by": "ana"}


def test_off_and_on_again_is_on_the_record(ledger, path):
    for value in ("reflection", "any", "reflection"):
        ledger.set(writeback=value)
    changes = [entry.body for entry in log(path, "setting.changed")]
    assert [(one["old"], one["new"]) for one in changes] == [
        ("any", "reflection"),
        ("reflection", "any"),
        ("any", "reflection"),
    ]


def test_several_changes_are_one_unit(ledger, path):
    ledger.set(transitions="strict", writeback="reflection", session_idle_hours=1, payloads="keep")
    changes = log(path, "setting.changed")
    assert len(changes) == 4
    assert len({entry.at for entry in changes}) == 1
    assert ledger.settings == {
        "audit_reads": True,
        "payload_paths": "",
        "payloads": "keep",
        "publish": "hashes",
        "redaction": "on",
        "retain_proposal_days": 0,
        "retain_tool_call_days": 0,
        "retain_turn_days": 0,
        "session_idle_hours": 1,
        "transitions": "strict",
        "writeback": "reflection",
    }


def test_a_setting_that_is_so_already_is_no_change(ledger, path):
    before = snapshot(path)
    assert ledger.set(writeback="any") == DEFAULTS
    assert snapshot(path) == before


def test_opening_with_other_settings_records_the_change(open_ledger, path):
    open_ledger().close()
    again = open_ledger(settings={"transitions": "strict", "writeback": "any"})
    assert again.settings == {**DEFAULTS, "transitions": "strict"}
    (changed,) = log(path, "setting.changed")
    assert changed.body == {"name": "transitions", "old": "open", "new": "strict", "by": None}
    again.close()
    assert open_ledger().settings["transitions"] == "strict"
    assert len(log(path, "setting.changed")) == 1


def test_opening_a_reader_with_other_settings_is_refused(path):
    affidavit.open(path).close()
    affidavit.open(path, readonly=True, settings={"writeback": "any"}).close()
    with refused("ERR_READONLY"):
        affidavit.open(path, readonly=True, settings={"writeback": "reflection"})


def test_one_wrong_setting_changes_none(ledger, path):
    before = snapshot(path)
    with refused("INVALID_PARAMS"):
        ledger.set(writeback="reflection", transitions="sideways")
    assert snapshot(path) == before


def test_an_unknown_setting_is_refused_and_the_known_ones_are_named(ledger):
    with refused("INVALID_PARAMS") as caught:
        ledger.set(write_back="any")
    assert all(name in str(caught.value) for name in DEFAULTS)


@pytest.mark.parametrize("hours", [1, 24 * 365])
def test_idle_hours_have_a_range(ledger, hours):
    assert ledger.set(session_idle_hours=hours)["session_idle_hours"] == hours


def test_a_change_holds_for_every_handle_at_once(open_ledger):
    one, other = open_ledger(), open_ledger()
    task = one.create_task(title="x")
    record(one, task_id=task.id)
    other.set(writeback="reflection")
    assert one.settings["writeback"] == "reflection"
    with refused("ERR_WRITEBACK_REQUIRED"):
        one.update_task(task.id, status="DONE")


def test_the_settings_given_out_are_a_copy(ledger):
    ledger.settings["writeback"] = "none"
    assert ledger.settings == DEFAULTS
