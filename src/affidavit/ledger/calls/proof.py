"""Verifying a ledger, proving what is in it, and deriving its views again."""

from __future__ import annotations

from collections.abc import Collection

from affidavit.errors import invalid
from affidavit.ledger import chains, proving, rebuild, verifying
from affidavit.ledger.handle import Handle
from affidavit.ledger.inputs import (
    REQUIRED,
    ProveGrowth,
    Verify,
    VerifyChain,
    read_bool,
    read_callable,
    read_id,
    read_input,
    read_notes,
)
from affidavit.ledger.keys import read_identity
from affidavit.ledger.pinning import compare_pins, held_size
from affidavit.ledger.results import GrowthProof, Rebuild, RecordProof
from affidavit.verify.findings import ChainReport, Report
from affidavit.verify.ledger import Progress


class Proof(Handle):
    """Calls about what holds."""

    def verify_chain(
        self, *, task_id: str | None = None, session_id: str | None = None, all: bool = False
    ) -> ChainReport:
        """Verify one task's or one session's chain, or every one; stops at the first break."""
        wanted = read_input(VerifyChain, {"task_id": task_id, "session_id": session_id, "all": all})
        if wanted.task_id is not None and wanted.session_id is not None:
            raise invalid("session_id", "give task_id or session_id, not both")
        with self._context.store.audit() as source:
            return chains.verify_chain(source, wanted)

    def verify(
        self,
        *,
        pinned: Collection[str] = (),
        new_only: bool = False,
        progress: Progress | None = None,
        cores: int | None = None,
    ) -> Report:
        """Verify everything: log, tree, chains, seals, views, payloads and schema.

        `pinned` are signed notes kept elsewhere: the log must have grown out of each; `new_only`
        then reads only what stands behind the newest of them. A long log is verified by several
        processes at once, one a core unless `cores` says else.
        """
        shown, pins = read_callable(progress, "progress"), read_notes(pinned)
        given = read_input(Verify, {"cores": cores})
        report = None
        if read_bool(new_only, "new_only"):
            known = self._read(lambda reader: held_size(reader, pins))
            report = verifying.verify_new(self._context, known, shown)
        if report is None:
            report = verifying.verify(self._context, shown, given.cores)
        return self._read(lambda reader: compare_pins(reader, report, pins)) if pins else report

    @property
    def origin(self) -> str:
        """The name under which the log is signed now."""
        return self._read(read_identity).origin

    def prove(self, record_id: str = REQUIRED) -> RecordProof:
        """Prove one record: in its sealed session, and in the log under a checkpoint signed now."""
        return proving.prove_record(self._context, read_id(record_id, "record_id"))

    def prove_growth(self, old_size: int = REQUIRED, new_size: int | None = None) -> GrowthProof:
        """Prove that the log at one size is the beginning of it at another, or as it is now."""
        given = read_input(ProveGrowth, {"old_size": old_size, "new_size": new_size})
        return proving.prove_growth(self._context, given.old_size, given.new_size)

    def rebuild(self, *, check: bool = False) -> Rebuild:
        """Derive every view again from the log; `check` only reports what differs."""
        return rebuild.rebuild(self._context.store, check=read_bool(check, "check"))
