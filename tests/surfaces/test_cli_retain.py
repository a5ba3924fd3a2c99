"""`affidavit retain` on the command line, and what `doctor` says."""

import affidavit

DAY_US = 86_400_000_000
ONE = "7f000000-0000-4000-8000-000000000001"


def record_turn(path, age_days):
    now = affidavit.apps.wiring.now_us()
    with affidavit.open(path, clock=lambda: now - age_days * DAY_US) as ledger:
        ledger.upsert_turn(ONE, ONE, "user", "an old turn")


def test_a_period_is_set_and_applied(cli, path):
    record_turn(path, 100)
    done = cli("retain", "--kind", "turn", "--older-than", "90d", "--by", "owner")
    assert done.out.splitlines() == [
        "Erased 1 text of turns",
        "  texts of proposals are kept for ever",
        "  texts of tool_calls are kept for ever",
        "  texts of turns are kept 90 days",
    ]
    assert cli("retain").out.startswith("Nothing was too old.")
    assert cli("retain", "--kind", "turn").code == 2


def test_doctor_says_how_overdue_it_is(cli, path):
    record_turn(path, 100)
    assert "nothing is kept longer" in cli("doctor").out
    cli("settings", "--set", "retain_turn_days=99")
    said = cli("doctor").out
    assert "overdue: turns by 24 h" in said
    assert "affidavit retain" in said
