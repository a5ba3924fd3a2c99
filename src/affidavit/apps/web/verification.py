"""The button that verifies: the product's own verifier, in a process of its own.

A large ledger takes as long as it takes; in this process that would slow every answer down.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import Any, Final, NamedTuple

from affidavit.verify.findings import Finding

# What a small ledger is done in; the page then shows the verdict at once.
PATIENCE_SECONDS: Final = 2.0
_ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024


_HEADLINES: Final = {
    "holds": "Everything checked holds",
    "violation": "Something recorded does not hold",
    "nothing to verify": "There is nothing to verify",
}


class Verdict(NamedTuple):
    """What `affidavit verify` said, and when it was asked."""

    verdict: str
    said: str
    findings: tuple[Finding, ...]
    finding_count: int
    checked: dict[str, int]
    unchecked: tuple[str, ...]
    vouchers: tuple[str, ...]
    missing: tuple[str, ...]
    entries: int
    at_us: int
    took_ms: int

    @property
    def headline(self) -> str:
        """The verdict as a sentence."""
        return _HEADLINES.get(self.verdict, "It could not be verified")

    @property
    def by_index(self) -> dict[int, list[Finding]]:
        """The findings that have a place in the log, by that place."""
        found: dict[int, list[Finding]] = {}
        for finding in self.findings:
            if finding.index is not None:
                found.setdefault(finding.index, []).append(finding)
        return found


class Verification:
    """One verifier at a time, and the newest verdict."""

    def __init__(self, location: str) -> None:
        self._words = [sys.executable, "-P", "-m", "affidavit", "verify", "--json"]
        self._words.append(f"--ledger={location}")
        self._task: asyncio.Task[None] | None = None
        self.verdict: Verdict | None = None

    @property
    def is_running(self) -> bool:
        """Whether a verdict is on its way."""
        return self._task is not None and not self._task.done()

    async def start(self) -> None:
        """Begin, if nobody has; wait a moment, because most ledgers are done in one."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        await asyncio.wait([self._task], timeout=PATIENCE_SECONDS)

    async def stop(self) -> None:
        """Give up what is under way."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        at_us, began = time.time_ns() // 1_000, time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_ANSWER_BYTES_MAX,
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        took_ms = round((time.monotonic() - began) * 1_000)
        self.verdict = _read(output, at_us, took_ms)


def _read(output: bytes, at_us: int, took_ms: int) -> Verdict:
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        answer = {"ok": False, "error": {"message": "the verifier ended without an answer"}}
    if not answer["ok"]:
        said = f"{answer['error']['message']} {answer['error'].get('hint', '')}".strip()
        return Verdict(
            verdict="not verified",
            said=said,
            findings=(),
            finding_count=0,
            checked={},
            unchecked=(),
            vouchers=(),
            missing=(),
            entries=0,
            at_us=at_us,
            took_ms=took_ms,
        )
    data = answer["data"]
    return Verdict(
        verdict=data["verdict"],
        said="",
        findings=tuple(Finding(**finding) for finding in data["findings"]),
        finding_count=data["finding_count"],
        checked=data["checked"],
        unchecked=tuple(data["unchecked"]),
        vouchers=tuple(data["vouchers"]),
        missing=tuple(data["missing"]),
        entries=data["checked"].get("entries", 0),
        at_us=at_us,
        took_ms=took_ms,
    )
