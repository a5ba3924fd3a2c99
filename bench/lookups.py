"""Looking up one thing by its key, now and in the past, beside SQLite finding the same row."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

import affidavit
from affidavit.core.views.turns import TurnRow
from bench.harness import Line, at_most, paired, show_us

VERSIONS = 3
_PICKED = 2_000
_RAW = "SELECT * FROM conversation_turns WHERE id = ? ORDER BY at DESC, log_index DESC LIMIT 1"


def lookups(folder: Path, many: int, blocks: int) -> list[Line]:
    """`get_turn` among this many versions of turns, of which each has three."""
    path, chance = folder / "lookups.db", random.Random(7)
    ids = [str(UUID(int=chance.getrandbits(128))) for _ in range(many // VERSIONS)]
    picked = chance.sample(ids, min(_PICKED, len(ids)))
    with affidavit.open(path, clock=lambda: 1) as ledger, closing(sqlite3.connect(path)) as raw:
        _fill(raw, ids)

        def now() -> None:
            for name in picked:
                ledger.get_turn(name)

        def past() -> None:
            for name in picked:
                ledger.get_turn(name, as_of=len(ids) * 3 // 2)

        def theirs() -> None:
            for name in picked:
                raw.execute(_RAW, (name,)).fetchone()

        return [
            _line(f"get_turn {what} among {many:,} versions", paired(ours, theirs, blocks), reach)
            for what, ours, reach in (("now", now, 1.5), ("as of the past", past, 3.0))
        ]


def _line(name: str, pair: tuple[float, float, float], reach: float) -> Line:
    ours, theirs, ratio = pair
    figures = show_us(ours, _PICKED), show_us(theirs, _PICKED)
    return at_most(name, *figures, 1 / ratio, reach)


def _fill(raw: sqlite3.Connection, ids: list[str]) -> None:
    """The rows alone: what a look-up reads."""
    count = len(ids)
    marks = ", ".join("?" * len(TurnRow._fields))
    rows = (
        TurnRow(
            log_index=1 + version * count + place, id=name, parent_id=None, message_id=name,
            thread_id="t", session_id=None, kind="user", content="x" * 200,
            content_salt=b"s" * 32, occurred_at_ms=None, created_at_ms=place, actor=None,
            model="m", usage=None, attributes_json=None, attributes_json_salt=None, retracted=0,
            reason=None, reason_salt=None, at=1 + version * count + place,
            superseded_by=None if version == VERSIONS - 1 else 1 + (version + 1) * count + place,
        )
        for version in range(VERSIONS)
        for place, name in enumerate(ids)
    )  # fmt: skip
    raw.executemany(f"INSERT INTO conversation_turns VALUES ({marks})", map(tuple, rows))
    raw.commit()
