"""Verifying everything, beside fetching and hashing the same bytes; then each check must bite."""

from __future__ import annotations

import shutil
import sqlite3
import time
from functools import partial
from pathlib import Path

import affidavit
from affidavit.ledger.verifying import LONG
from bench import reference
from bench.appends import CONTENT, thoughts
from bench.harness import Line, Pair, at_most, beside, paired

_LARGE = "verify-large.db"
_CORRUPTIONS = (
    "UPDATE log SET entry = CAST(CAST(entry AS TEXT) || ' ' AS BLOB) WHERE log_index = 500",
    "UPDATE log SET leaf_hash = zeroblob(32) WHERE log_index = 500",
    "UPDATE thought_records SET content = content || '.' WHERE log_index = 500",
    "UPDATE thought_records SET hash = upper(hash) WHERE log_index = 500",
    "UPDATE thought_records SET prev_hash = hash WHERE log_index = 500",
    "UPDATE thought_records SET agent_id = 'someone' WHERE log_index = 500",
    "UPDATE thought_records SET at = at + 1 WHERE log_index = 500",
    "UPDATE merkle_nodes SET hash = zeroblob(32) WHERE tree = 0 AND level = 8 AND position = 1",
    "UPDATE thought_records SET chain_hash = hash WHERE log_index = 500 AND session_id IS NOT NULL",
    "UPDATE thought_records SET session_seq = 9 WHERE log_index = 500 AND session_id IS NOT NULL",
)


def build(path: Path, many: int, *, bound: bool) -> None:
    """A ledger of this many thoughts, in sessions of a thousand or in none, if there is none."""
    if path.exists():
        return
    with affidavit.open(path) as ledger:
        for _ in range(many // 1_000):
            session = ledger.start_session(intent="measure").session_id if bound else None
            ledger.record_thoughts(thoughts(1_000, session_id=session))


def verifying(folder: Path, many: int, blocks: int) -> list[Line]:
    """`verify()` with every check, on one core."""
    lines = []
    for name, reach, bound in (("unbound", 0.4, False), ("in sessions", 0.35, True)):
        path = folder / f"verify-{name.replace(' ', '-')}.db"
        build(path, many, bound=bound)
        pair = _beside_fetching(path, blocks)
        caught = _count_caught(path)
        lines.append(beside(f"verify() of {many:,} thoughts, {name} ({caught})", pair, many, reach))
    return lines


def million(folder: Path, many: int, blocks: int) -> Line:
    """The same for a long log in sessions; corrupted copies of it would take too long."""
    path = folder / _LARGE
    build(path, many, bound=True)
    pair = _beside_fetching(path, blocks)
    return beside(f"verify() of {many:,} thoughts, in sessions", pair, many, 0.35)


def _beside_fetching(path: Path, blocks: int) -> Pair:
    """One core's time for everything, beside fetching and hashing the same bytes once."""
    raw = sqlite3.connect(path)
    with affidavit.open(path, readonly=True) as ledger:
        theirs = partial(reference.fetch_and_hash, raw)
        pair = paired(lambda: _check(ledger, 1), theirs, blocks, time.process_time)
    raw.close()
    return pair


def together(folder: Path, many: int, blocks: int) -> list[Line]:
    """`verify()` by a process a core, beside the same by one, in seconds that pass on the clock."""
    if many < LONG:
        return []  # one walk does it, whatever the cores
    path = folder / _LARGE
    build(path, many, bound=True)
    with affidavit.open(path, readonly=True) as ledger:
        pair = paired(lambda: _check(ledger, 2), lambda: _check(ledger, 1), blocks)
    return [beside(f"verify() of {many:,} thoughts in sessions, two cores", pair, many, 1.7)]


def _check(ledger: affidavit.Ledger, cores: int) -> None:
    report = ledger.verify(cores=cores)
    if not report.valid:
        raise SystemExit(f"verify found {report.findings[:3]}")


def _count_caught(path: Path) -> str:
    """Corrupt one value per check in copies of the ledger that was timed; all must be found."""
    tried = caught = 0
    for statement in _CORRUPTIONS:
        copy = path.with_suffix(".corrupted.db")
        shutil.copy(path, copy)
        raw = sqlite3.connect(copy)
        guards = raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (guard,) in guards:
            raw.execute(f"DROP TRIGGER {guard}")
        changed = raw.execute(statement).rowcount
        raw.commit()
        raw.close()
        if changed:
            tried += 1
            with affidavit.open(copy, readonly=True) as ledger:
                found = [f for f in ledger.verify().findings if f.code != "schema_changed"]
            caught += bool(found)
        copy.unlink()
    if caught != tried:
        raise SystemExit(f"verify missed {tried - caught} of {tried} corruptions")
    return f"{caught} of {tried} corruptions found"


def sizes(folder: Path, many: int) -> list[Line]:
    """Bytes on disk a thought, beside what was set aside for one."""
    lines = []
    for name, allowance, bound in (("unbound", 1_250, False), ("in a session", 1_900, True)):
        path = folder / f"size-{allowance}.db"
        build(path, many, bound=bound)
        each = path.stat().st_size / many
        content = len(CONTENT) + 4
        lines.append(
            at_most(
                f"bytes on disk a thought, {name}",
                f"{each:,.0f}",
                f"content {content} + {allowance:,}",
                each / (content + allowance),
                1.0,
            )
        )
    return lines
