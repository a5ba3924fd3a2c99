"""A small session, told from its first record to the moment a forger is caught.

Two agents work on two tasks. One of them wants to call its task done without having written why; it
is refused. The session is sealed and verified. Then somebody changes one byte of the database
file, past every guard, and verification says where. Run it with `make demo`.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import affidavit


def main() -> int:
    """Tell the story; 1 if anything did not go as told."""
    with tempfile.TemporaryDirectory(prefix="affidavit-demo-") as folder:
        path = Path(folder) / "trail.db"
        try:
            record_session(path)
            verify_untouched(path)
            forge(path)
            verify_forged(path)
        except (StoryError, affidavit.AffidavitError) as error:
            print(f"\nThis did not go as told: {error}", file=sys.stderr)
            return 1
    return 0


class StoryError(Exception):
    """Something happened that the story does not tell."""


def expect(holds: bool, said: str) -> None:
    """Stop where the story and the ledger disagree."""
    if not holds:
        raise StoryError(said)


def record_session(path: Path) -> None:
    """Two agents, two tasks, one refusal, one seal."""
    chapter("1. Two agents work, and write down why")
    with affidavit.open(path) as ledger:
        fix = ledger.create_task(title="Checkout charges some customers twice", assignee="builder")
        rule = ledger.create_task(title="Alert when a charge is repeated", assignee="reviewer")
        for task in (fix, rule):
            tell("task", f"{task.title} ({task.assignee})")
        session = ledger.start_session(
            intent="stop the double charge before the weekend", caller="builder", task_id=fix.id
        )
        tell("session", session.intent or "")

        def record(kind: str, agent: str, task_id: str, content: str) -> None:
            written = ledger.record_thought(
                type=kind,
                task_id=task_id,
                agent_id=agent,
                content=content,
                session_id=session.session_id,
            )
            tell(kind, f"{agent}: {written.content}")

        record(
            "analysis", "builder", fix.id, "The retry sends a new request id, so both charges pass"
        )
        record("decision", "builder", fix.id, "Reuse the id of the first try; a limit of 50 tries")
        ledger.update_task(fix.id, status="DONE")
        tell("task", "builder calls its task DONE: accepted, its reasons are written down")
        expect_refusal(lambda: ledger.update_task(rule.id, status="DONE"))
        record("plan", "reviewer", rule.id, "Alert on two charges with one id within an hour")
        record("reflection", "reviewer", rule.id, "The limit of 50 tries is generous; watch it")
        ledger.update_task(rule.id, status="DONE")
        tell("task", "reviewer calls its task DONE again: accepted now")
        seal = ledger.seal_session(session.session_id)
        tell("seal", f"{seal.record_count} records, root {seal.root[:16]}...")
        ledger.end_session(session.session_id)


def expect_refusal(finish: Callable[[], object]) -> None:
    """No task is done without its written reason."""
    try:
        finish()
    except affidavit.ConflictError as error:
        expect(error.code == "ERR_WRITEBACK_REQUIRED", f"refused with {error.code}")
        tell("task", "reviewer calls its task DONE without a word: REFUSED")
        tell("", f"{error.code}: nothing is written about this task yet")
    else:
        raise StoryError("a task was done without a written reason")


def verify_untouched(path: Path) -> None:
    """Everything holds, and the report says what that does not cover."""
    chapter("2. Anybody can check it")
    with affidavit.open(path, readonly=True) as ledger:
        report = ledger.verify()
    expect(report.valid, f"the untouched ledger does not verify: {report.findings}")
    counted = ", ".join(f"{number} {name}" for name, number in report.checked.items() if number)
    tell("HOLDS", f"checked {counted}")
    for said in report.unchecked:
        tell("", f"not checked: {said}")


def forge(path: Path) -> None:
    """One byte, changed as a careful forger would: past the guards, and with them put back."""
    chapter("3. Somebody who has the file changes one byte: 50 tries become 90")
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        guards = file.execute(
            "SELECT name, sql FROM sqlite_schema "
            "WHERE tbl_name = 'thought_records' AND sql LIKE '%BEFORE UPDATE%'"
        ).fetchall()
        try:
            file.execute("UPDATE thought_records SET content = ''")
        except sqlite3.IntegrityError as error:
            tell("guard", f"the database refuses an honest mistake: {error}")
        for name, _ in guards:
            file.execute(f"DROP TRIGGER {name}")
        changed = file.execute(
            "UPDATE thought_records SET content = replace(content, 'of 50', 'of 90') "
            "WHERE type = 'decision'"
        )
        expect(changed.rowcount == 1, "there was not exactly one decision to change")
        for _, guard in guards:
            file.execute(guard)
        tell("forger", "guard dropped, one byte changed, guard put back; no trace in the tables")


def verify_forged(path: Path) -> None:
    """Caught, with the place and the code."""
    chapter("4. It is caught")
    with affidavit.open(path, readonly=True) as ledger:
        report = ledger.verify()
        decision = ledger.list_thoughts(type="decision")[0]
    for finding in report.findings:
        tell("VIOLATION", f"{finding.code} at entry {finding.index}, {finding.place}")
        tell("", f"{finding.message}")
    expect(not report.valid, "the forgery was not found")
    expect(
        [(finding.code, finding.index) for finding in report.findings]
        == [("payload_mismatch", decision.index)],
        f"the forgery was found elsewhere: {report.findings}",
    )
    tell("", f"that is {decision.agent_id}'s decision, which now reads:")
    tell("", f"{decision.content!r}")
    chapter("A change to what was written down is found, with its place. Try it: affidavit --help")


def chapter(title: str) -> None:
    """A heading."""
    print(f"\n{title}\n")


def tell(who: str, said: str) -> None:
    """A line of the story."""
    label = f"  {who:<12}"
    print(textwrap.fill(said, 100, initial_indent=label, subsequent_indent=" " * len(label)))


if __name__ == "__main__":
    sys.exit(main())
