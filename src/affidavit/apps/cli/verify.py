"""`affidavit verify`: the verdict, what it rests on, and what it does not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from affidavit.apps import wiring
from affidavit.apps.auditor.checking import check_file
from affidavit.apps.auditor.options import trust_of
from affidavit.apps.auditor.pins import keep_fork
from affidavit.apps.auditor.published import check_published, is_published
from affidavit.apps.auditor.reading import is_evidence
from affidavit.apps.auditor.showing import describe_findings
from affidavit.apps.cli.comparing import Compared, choose_pins, find_forks
from affidavit.apps.cli.opening import open_as_it_is
from affidavit.apps.cli.progress import shown
from affidavit.apps.cli.render import Answer, count
from affidavit.apps.plain import one_line
from affidavit.errors import invalid
from affidavit.ledger.ledger import Ledger
from affidavit.verify.evidence import UNVERIFIED, VIOLATION
from affidavit.verify.findings import UNCHECKED_TAIL, ChainReport, Report
from affidavit.verify.trust import Trust

HOLDS, NOTHING = "holds", "nothing to verify"
_EXIT_CODES: Final = {HOLDS: 0, VIOLATION: 1, NOTHING: 3, UNVERIFIED: 3}
_NAMES: Final = {
    "entries": ("entry", "entries"),
    "thoughts": ("record", "records"),
    "sessions": ("session", "sessions"),
    "seals": ("seal", "seals"),
    "tasks": ("task version", "task versions"),
    "settings": ("setting change", "setting changes"),
    "nodes": ("tree node", "tree nodes"),
    "pinned": ("entry under a kept checkpoint", "entries under a kept checkpoint"),
}
_OTHERS_UNCHECKED: Final = (
    "only the records found in this chain were walked; `affidavit verify` also tells whether some "
    "are missing from its end, and checks the log, its tree, the seals and every table"
)
# What somebody recorded; a ledger without any of it is no evidence of anything.
_FACTS: Final = ("thoughts", "sessions", "tasks")


def verify(args: argparse.Namespace) -> Answer:
    """Check a file that somebody gave, the whole ledger, or one chain of it."""
    trust = trust_of(args)
    if args.subject is not None and is_published(args.subject):
        _refuse_parts(args)
        with shown("verifying") as bar:
            return check_published(args.subject, trust, bar)
    if args.subject is not None:
        if not wiring.is_open(args.subject) and is_evidence(args.subject):
            _refuse_parts(args)
            with shown("verifying") as bar:
                return check_file(args.subject, trust, bar)
        if getattr(args, "ledger", None) is not None:
            raise invalid("subject", "a ledger is named twice", hint="Leave --ledger out.")
        args.ledger = args.subject
    with open_as_it_is(args) as ledger:
        if args.session is not None or args.task is not None:
            return _verify_chain(ledger, args.task, args.session)
        return _verify_all(ledger, trust, new_only=args.new)


def _refuse_parts(args: argparse.Namespace) -> None:
    if args.session is not None or args.task is not None:
        raise invalid("session", "only a ledger has chains to choose from", hint="Leave it out.")
    if args.new:
        raise invalid("new", "only a ledger is read in parts", hint="Leave it out.")


def _verify_all(ledger: Ledger, trust: Trust, *, new_only: bool) -> Answer:
    standing = choose_pins(ledger, trust)
    if new_only and not (trust.pinned or trust.kept):
        raise invalid("new", "nothing is pinned", hint="Name a checkpoint: --pinned NOTE")
    notes = [pin.note.encode().decode() for pin in standing.pins]
    with shown("verifying") as bar:
        report = ledger.verify(pinned=notes, new_only=new_only, progress=bar)
    is_fork = any(finding.code == "fork" for finding in report.findings)
    forks = [str(keep_fork(one)) for one in find_forks(ledger, standing.pins)] if is_fork else []
    report = report._replace(unchecked=(*standing.unchecked, *report.unchecked))
    verdict = HOLDS if report.valid else VIOLATION
    if report.valid and not any(report.checked.get(name) for name in _FACTS):
        verdict = NOTHING
    elif report.valid and standing.missing:
        verdict = UNVERIFIED
    data = {
        "verdict": verdict,
        "ledger": ledger.location,
        "ledger_id": ledger.ledger_id,
        "vouchers": standing.vouchers,
        "missing": standing.missing,
        **report.to_dict(),
        "proofs_of_misbehaviour": forks,
    }
    lines = list(_describe_all(ledger.location, verdict, report, standing))
    lines += [f"  evidence     {one_line(place)}" for place in forks]
    return Answer(data, lines, _EXIT_CODES[verdict])


def _describe_all(location: str, verdict: str, report: Report, standing: Compared) -> Iterator[str]:
    where = one_line(location)
    if verdict == NOTHING:
        yield f"NOTHING TO VERIFY: nobody has recorded anything in {where}"
    elif verdict == HOLDS:
        yield f"HOLDS: everything checked in {where} is as it was recorded"
    elif verdict == UNVERIFIED:
        yield f"NOT VERIFIED: {where} agrees with itself, but what was asked for is not met"
    else:
        yield f"VIOLATION: {count(report.finding_count, 'finding')} in {where}"
        yield from describe_findings(report.findings, report.finding_count, "the ledger")
    yield from (f"  vouched for  by {one_line(who)}" for who in standing.vouchers)
    yield from (f"  missing      {one_line(said)}" for said in standing.missing)
    counted = [
        count(number, *_NAMES.get(name, (name.removesuffix("s"), name)))
        for name, number in report.checked.items()
        if number
    ]
    yield f"  checked      {', '.join(counted)}"
    yield from (f"  not checked  {one_line(said)}" for said in report.unchecked)


def _verify_chain(ledger: Ledger, task_id: str | None, session_id: str | None) -> Answer:
    report = ledger.verify_chain(task_id=task_id, session_id=session_id, all=True)
    name = f"task {one_line(task_id)}" if session_id is None else f"session {one_line(session_id)}"
    verdict = HOLDS if report.valid else VIOLATION
    if report.valid and report.record_count == 0:
        verdict = NOTHING
    unchecked = [UNCHECKED_TAIL, _OTHERS_UNCHECKED]
    data = {
        "verdict": verdict,
        "ledger": ledger.location,
        "ledger_id": ledger.ledger_id,
        "task_id": task_id,
        "session_id": session_id,
        **report.to_dict(),
        "unchecked": unchecked,
    }
    lines = list(_describe_chain(name, verdict, report))
    lines += [f"  not checked  {said}" for said in unchecked]
    return Answer(data, lines, _EXIT_CODES[verdict])


def _describe_chain(name: str, verdict: str, report: ChainReport) -> Iterator[str]:
    if verdict == NOTHING:
        yield f"NOTHING TO VERIFY: {name} has no records"
        return
    if verdict == HOLDS:
        yield f"HOLDS: every record found of {name} is as it was recorded, in its order"
    else:
        yield f"VIOLATION: {report.broken_count:,} of {count(report.record_count, 'record')} broken"
        yield f"  first        entry {report.first_broken_index}, record " + one_line(
            report.first_broken_at
        )
        yield f"      {one_line(report.reason)}"
    yield f"  checked      {count(report.record_count, 'record')} of {name}"
