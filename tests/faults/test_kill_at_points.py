"""SIGKILL at every named point of every write: whole or not at all, and there if answered."""

import pytest

import affidavit
from faults.points import beginnings_of, points_of, statements_of
from faults.scenarios import EVERY_STATEMENT, SCENARIOS, thought
from faults.support import acknowledged, audit


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_statement_between_begin_and_reply_has_a_point(plans, name):
    ran, statements = plans[name][1], statements_of(plans[name])
    assert "?" not in statements, "a statement has no name: name it in faults/points.py"
    assert tuple(dict.fromkeys(statements)) == SCENARIOS[name].statements, (
        "the write runs other statements than faults/scenarios.py says: bring it up to date"
    )
    assert len(ran) == len(statements), f"SQLite ran what passed no point: {ran}"
    for statement, sql in zip(statements, ran, strict=True):
        # Values stand where the marks were; what comes before the first one must agree.
        assert sql.startswith(beginnings_of(statement)), (statement, sql)


@pytest.mark.parametrize(("name", "statement"), EVERY_STATEMENT)
def test_killed_at_a_statement_the_fact_is_whole_or_absent(zygote, folder, plans, name, statement):
    for number, point in enumerate(points_of(plans[name], statement)):
        home = folder / f"{number}"
        home.mkdir()
        kill_and_look(zygote, home, name, point)


@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_right_after_the_reply_the_fact_is_there(zygote, folder, name):
    kill_and_look(zygote, folder, name, "reply")


def kill_and_look(zygote, folder, name, point):
    path, side = str(folder / "trail.db"), str(folder / "side")
    child = zygote.start("deeds:die_at_point", path, side, name, point)
    assert child.wait(30) == -9, f"{point} was not passed\n{child.said()}"
    replied = acknowledged(side) == [["reply"]]
    assert replied == (point == "reply")
    with affidavit.open(path, create=False) as ledger:
        there = SCENARIOS[name].is_there(ledger)
        assert there == (point in ("reply", "after commit #1")), point
        if name == "keyed":
            # The retry of one who never got the answer.
            ledger.record_thought(**thought(1), idempotency_key="once")
            assert SCENARIOS[name].is_there(ledger)
        ledger.record_thought(**thought("afterwards"))
    audit(path)
