"""The pages: each asks the ledger for what it shows and hands it to a template."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from affidavit import __version__
from affidavit.apps.cards import Card, all_facts, card_of
from affidavit.apps.plain import plain
from affidavit.apps.web import sample
from affidavit.apps.web.rendering import PAGE_HEADERS, answer, link, render
from affidavit.apps.web.verification import Verification
from affidavit.apps.web.waterfall import waterfall
from affidavit.core.names import PAYLOAD_BYTES_MAX
from affidavit.errors import CODES, AffidavitError, ConflictError, InputError, invalid
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.results import LogEntry
from affidavit.verify.findings import Finding

LOG: Final = logging.getLogger("affidavit.http")
STORY_ENTRIES: Final = 100
STORY_TEXT_BYTES: Final = 4_000
ENTRY_TEXT_BYTES: Final = 100_000
PART_CHARS: Final = 50_000
_NEWEST: Final = 6
_PAGE: Final = 50
_TEASER_BYTES: Final = 280
_NS_PER_MS: Final = 1_000_000
# How much of a story stands before the entry that somebody was led to.
_BEFORE: Final = 5


class Pages:
    """What a person sees of one ledger."""

    def __init__(self, ledger: Ledger, mcp_path: str) -> None:
        self._ledger = ledger
        self._mcp_path = mcp_path
        self._verification = Verification(ledger.location)

    def routes(self) -> list[BaseRoute]:
        """Where the pages are."""
        return [
            Route("/", self._front),
            Route("/sessions", self._sessions),
            Route("/session", self._session),
            Route("/tasks", self._tasks),
            Route("/task", self._task),
            Route("/entry", self._entry),
            Route("/text", self._text),
            Route("/part", self._part),
            Route("/pulse", self._pulse),
            Route("/connect", self._connect),
            Route("/verify", self._verdict, methods=["GET"]),
            Route("/verify", self._verify, methods=["POST"]),
            Route("/sample", self._load_sample, methods=["POST"]),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the server runs."""
        try:
            yield
        finally:
            await self._verification.stop()

    def _render(self, request: Request, template: str, status: int = 200, **shown: Any) -> Response:
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return render(
            template,
            status,
            here=here,
            path=request.url.path,
            verification=self._verification,
            version=__version__,
            **shown,
        )

    def _findings(self) -> Mapping[int, Sequence[Finding]]:
        verdict = self._verification.verdict
        return {} if verdict is None else verdict.by_index

    def _cards(self, entries: list[LogEntry]) -> list[Card]:
        findings = self._findings()
        return [card_of(entry, findings) for entry in entries]

    def _front(self, request: Request) -> Response:
        ledger = self._ledger
        facts = ledger.describe()
        entries = facts["entries"]
        last = ledger.list_entries(after=entries - 2, limit=1) if entries > 1 else []
        tasks, total = self._newest_tasks()
        return self._render(
            request,
            "front.html",
            facts=facts,
            last_at=last[0].at if last else None,
            signed=self._signed(),
            empty=sample.is_empty(ledger),
            readonly=ledger.readonly,
            sessions=ledger.list_sessions(limit=_NEWEST),
            records=self._cards(
                ledger.newest_thoughts(limit=_NEWEST, text_bytes_max=_TEASER_BYTES)
            ),
            tasks=tasks,
            task_count=total,
        )

    def _signed(self) -> str:
        """How much of the log this machine has signed, in words; also that it no longer can."""
        try:
            size = self._ledger.last_checkpoint()
        except AffidavitError as error:
            return error.message
        return "not by this machine" if size is None else f"the first {size:,} entries"

    def _newest_tasks(self) -> tuple[list[Any], int]:
        total = self._ledger.list_tasks(limit=1).total_count
        page = self._ledger.list_tasks(limit=_NEWEST, offset=max(0, total - _NEWEST))
        return list(reversed(page.tasks)), total

    def _sessions(self, request: Request) -> Response:
        after = request.query_params.get("after")
        found = self._ledger.list_sessions(after=after, limit=_PAGE + 1)
        more = found[_PAGE - 1].session_id if len(found) > _PAGE else None
        return self._render(request, "sessions.html", sessions=found[:_PAGE], more=more)

    def _tasks(self, request: Request) -> Response:
        offset = _number(request, "offset")
        page = self._ledger.list_tasks(limit=_PAGE, offset=offset)
        more = offset + _PAGE if page.total_count > offset + _PAGE else None
        return self._render(request, "tasks.html", page=page, more=more)

    def _session(self, request: Request) -> Response:
        name = _asked(request)
        session = self._ledger.get_session(name)
        if session is None:
            raise InputError(
                f"there is no session {name!r:.100}",
                code="ERR_SESSION_NOT_FOUND",
                hint="The list of sessions shows all.",
            )
        after = _number(request, "after", default=None)
        steps = self._ledger.tell_story(
            name, after=after, limit=STORY_ENTRIES + 1, text_bytes_max=STORY_TEXT_BYTES
        )
        shown = steps[:STORY_ENTRIES]
        return self._render(
            request,
            "session.html",
            session=session,
            seal=None if session.root is None else self._ledger.merkle_root(name),
            continued_by=self._ledger.list_sessions(continues=name, limit=20),
            cards=[card_of(step.entry, self._findings(), step) for step in shown],
            calls=waterfall(shown, time.time_ns() // _NS_PER_MS),
            entries=len(self._ledger),
            more=shown[-1].entry.index if len(steps) > STORY_ENTRIES else None,
            tail=self._ledger.find_tail(name),
            after=after,
        )

    def _task(self, request: Request) -> Response:
        name = _asked(request)
        after = _number(request, "after", default=None)
        entries = self._ledger.list_entries(
            task_id=name, after=after, limit=STORY_ENTRIES + 1, text_bytes_max=STORY_TEXT_BYTES
        )
        task = self._ledger.get_task(name)
        if task is None and not entries:
            raise InputError(
                f"nothing names a task {name!r:.100}",
                code="ERR_NOT_FOUND",
                hint="The list of tasks shows those that were created.",
            )
        story = self._story(entries, after)
        return self._render(request, "task.html", task=task, task_id=name, **story)

    def _story(self, entries: list[LogEntry], after: int | None) -> dict[str, Any]:
        shown = entries[:STORY_ENTRIES]
        more = shown[-1].index if len(entries) > STORY_ENTRIES else None
        return {"cards": self._cards(shown), "more": more, "after": after}

    def _entry(self, request: Request) -> Response:
        entry = self._one_entry(_number(request, "index"), ENTRY_TEXT_BYTES)
        return self._render(
            request,
            "entry.html",
            entry=entry,
            card=self._cards([entry])[0],
            facts=all_facts(entry),
            story_after=None if entry.index <= _BEFORE else entry.index - _BEFORE,
        )

    def _one_entry(self, index: int, text_bytes_max: int) -> LogEntry:
        found = self._ledger.list_entries(
            after=index - 1 if index else None, limit=1, text_bytes_max=text_bytes_max
        )
        if not found:
            raise InputError(
                f"the log has no entry {index}",
                code="ERR_NOT_FOUND",
                hint=f"Its newest is {len(self._ledger) - 1}.",
            )
        return found[0]

    def _text(self, request: Request) -> Response:
        """A text as it was written, whole, as plain text: nothing in it can be more than text."""
        entry = self._one_entry(_number(request, "index"), PAYLOAD_BYTES_MAX)
        text = entry.texts.get(request.query_params.get("name", ""))
        if text is None:
            raise InputError("that entry has no such text", code="ERR_NOT_FOUND")
        return PlainTextResponse(text, headers=PAGE_HEADERS)

    def _part(self, request: Request) -> Response:
        """A stretch of a text for the page to unfold, as safe to show as the page itself."""
        entry = self._one_entry(_number(request, "index"), PAYLOAD_BYTES_MAX)
        text = entry.texts.get(request.query_params.get("name", ""))
        if text is None:
            raise InputError("that entry has no such text", code="ERR_NOT_FOUND")
        start = _number(request, "from")
        end = start + PART_CHARS
        following = end if end < len(text) else None
        return answer({"text": plain(text[start:end]), "next": following, "chars": len(text)})

    def _pulse(self, request: Request) -> Response:
        """Whether there is anything new: how many entries there are."""
        del request
        return answer({"entries": len(self._ledger)})

    def _connect(self, request: Request) -> Response:
        mcp_url = f"{request.url.scheme}://{request.headers['host']}{self._mcp_path}"
        return self._render(
            request,
            "connect.html",
            location=self._ledger.location,
            mcp_url=mcp_url,
        )

    def _verdict(self, request: Request) -> Response:
        return self._render(request, "verify.html", entries=len(self._ledger))

    async def _verify(self, request: Request) -> Response:
        await self._verification.start()
        return RedirectResponse(_back(request), 303, headers=PAGE_HEADERS)

    async def _load_sample(self, request: Request) -> Response:
        del request
        await asyncio.to_thread(self._load_sample_once)
        return RedirectResponse(link("session", id=sample.SESSION), 303, headers=PAGE_HEADERS)

    def _load_sample_once(self) -> None:
        if not sample.is_empty(self._ledger) and not self._ledger.get_session(sample.SESSION):
            raise ConflictError(
                "this ledger is not empty: the sample would stand among real records",
                code="ERR_SESSION_EXISTS",
                hint="Serve another file with --ledger to look at the sample.",
            )
        sample.load_sample(self._ledger)

    async def show_error(self, request: Request, error: AffidavitError) -> Response:
        """A page that says what is wrong, and what to do."""
        known = CODES.get(error.code)
        status = 500 if known is None else known.http_status
        return self._render(request, "error.html", status, error=error)

    async def show_missing(self, request: Request, error: Exception) -> Response:
        """A page for an address that leads nowhere."""
        del error
        missing = InputError("there is no such page", hint="Begin at the overview.")
        return self._render(request, "error.html", 404, error=missing)

    async def show_bug(self, request: Request, error: Exception) -> Response:
        """A page for what should not have happened; what it held is told to nobody."""
        LOG.error("a bug: %s", type(error).__name__)
        bug = AffidavitError("this is a bug", hint="Please report what you did.")
        return self._render(request, "error.html", 500, error=bug)


def _asked(request: Request) -> str:
    name = request.query_params.get("id")
    if not name:
        raise invalid("id", "is missing")
    return name


def _number(request: Request, name: str, default: int | None = 0) -> Any:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise invalid(name, f"{text!r:.40} is not a number")
    return int(text)


def _back(request: Request) -> str:
    """Where a form wants to go on: a page of this server, or the verdict."""
    wanted = request.query_params.get("back", "")
    known = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if known and wanted.isprintable() else "/verify"
