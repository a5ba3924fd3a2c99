"""What was, as of any time and any index, against a model that keeps a list of everything."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import affidavit

KEYS = [str(uuid.UUID(int=number)) for number in range(3)]
OPS = st.tuples(st.booleans(), st.sampled_from(range(len(KEYS))), st.integers(0, 3))
UNITS = st.lists(st.lists(OPS, min_size=1, max_size=4), min_size=1, max_size=6)


class Model:
    """Every entry ever written: (index, at, key, content or None)."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, int, str | None]] = []

    def value(self, key: int, at: int) -> str | None:
        """The last unit that touched the key decides; in it the last assert, else the retract."""
        mine = [one for one in self.entries if one[2] == key and one[1] <= at]
        unit = [one for one in mine if one[1] == mine[-1][1]] if mine else []
        said = [one[3] for one in unit if one[3] is not None]
        return said[-1] if said else None

    def in_order(self, keys: Any) -> list[str]:
        """All of them are of one millisecond: each stands where it came first."""
        seen = dict.fromkeys(KEYS[key] for _, _, key, content in self.entries if content)
        return [key for key in seen if key in keys]

    def time_of(self, index: int) -> int:
        """The time of the last whole unit at or before an index."""
        times = {one[0]: one[1] for one in self.entries}
        at = times.get(index, 0)
        return at - 1 if times.get(index + 1) == at else at


def run(ledger: Any, clock: Any, model: Model, unit: list[tuple[bool, int, int]]) -> None:
    clock[0] += 10
    with ledger.transaction() as tx:
        for asserts, key, word in unit:
            before = len(tx)
            if asserts:
                tx.upsert_turn(KEYS[key], KEYS[key], "user", f"w{word}")
            elif any(one[2] == key for one in model.entries):
                tx.retract_turn(KEYS[key])
            if len(tx) > before:
                model.entries.append((before, clock[0], key, f"w{word}" if asserts else None))


@settings(max_examples=25, deadline=None)
@given(UNITS)
def test_every_moment_reads_as_the_model_says(units: list[Any]) -> None:
    clock, model = [100], Model()
    with affidavit.open(":memory:", clock=lambda: clock[0]) as ledger:
        for unit in units:
            run(ledger, clock, model, unit)
        moments = [{"as_of": at} for at in range(100, clock[0] + 10, 5)]
        moments += [{"as_of_index": index} for index in range(len(ledger))]
        for moment in (*moments, {}):
            at = moment.get("as_of", clock[0])
            if "as_of_index" in moment:
                at = model.time_of(moment["as_of_index"])
            expected = {
                KEYS[key]: value
                for key in range(len(KEYS))
                if (value := model.value(key, at)) is not None
            }
            for key in KEYS:
                turn = ledger.get_turn(key, **moment)
                assert (turn and turn.content) == expected.get(key), (moment, key)
            listed = ledger.list_turns(**moment)
            assert {t.id: t.content for t in listed} == expected, moment
            assert [t.id for t in listed] == model.in_order(expected), moment
            assert listed[::-1] == ledger.list_turns(newest_first=True, **moment)
        assert ledger.verify().valid
        assert ledger.rebuild(check=True).valid
