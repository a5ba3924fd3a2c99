"""`affidavit export` and `affidavit pin`: handing evidence out, keeping what others handed out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from affidavit.apps.auditor import checking
from affidavit.apps.auditor.options import trust_of
from affidavit.apps.cli.opening import open_for_reading, open_for_writing
from affidavit.apps.cli.printing import printing
from affidavit.apps.cli.progress import shown
from affidavit.apps.cli.render import Answer, count
from affidavit.apps.durable_files import told
from affidavit.apps.report.page_file import render_page
from affidavit.core.archive import decode_archive
from affidavit.errors import InputError, invalid

_STDOUT: Final = "-"
_PAGE_BYTES_MAX: Final = 256 * 1024 * 1024
# What the page can put into an archive again.
_PAGE_FILES_MAX: Final = 65_534


def export(args: argparse.Namespace) -> Answer:
    """Write an evidence file, the page of a session, or the whole log as lines."""
    if args.html and args.session is None:
        hint = "Say which: --session ID --html. Other parts are handed out without a page."
        raise invalid("html", "a page tells a session", hint=hint)
    if args.jsonl:
        if args.withhold:
            raise invalid("withhold", "the whole log is handed out as it is", hint="Leave it out.")
        with open_for_reading(args) as ledger:
            return _write(args.output or _STDOUT, ledger.iter_jsonl())
    if args.output is None and not args.html:
        raise invalid("output", "is missing", hint="Say where to: -o FILE.affidavit")
    with open_for_writing(args) as ledger, shown("exporting") as bar:
        pieces = ledger.iter_export(
            session_id=args.session,
            task_id=args.task,
            record_id=args.record,
            range=args.range,
            withhold=args.withhold,
            progress=bar,
        )
        if args.html:
            return _write(args.output or _STDOUT, [_page_of(pieces)])
        return _write(args.output, pieces)


def _page_of(pieces: Iterable[bytes]) -> bytes:
    """The page over an evidence file, which a browser must be able to hold."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > _PAGE_BYTES_MAX:
            raise _too_large_for_a_page()
    files = decode_archive(bytes(data))
    if len(files) > _PAGE_FILES_MAX:
        raise _too_large_for_a_page()
    return render_page(files).encode()


def _too_large_for_a_page() -> InputError:
    return InputError(
        "this session is too large for a page",
        code="ERR_TOO_LARGE",
        hint="Hand out the evidence file: --session ID -o FILE.affidavit",
        field="html",
    )


def _write(path: str, parts: Iterable[bytes]) -> Answer:
    """Write to a file or to standard output; then the data itself is the answer."""
    if path == _STDOUT:
        out, hint = sys.stdout.buffer, "What was written is not whole. Free space, try again."
        for part in parts:
            with printing("all of it", hint):
                out.write(part)
        with printing("all of it", hint):
            out.flush()
        return Answer({}, [], is_shown=True)
    # Through a link, so that it stays one.
    target, written = Path(os.path.realpath(path)), 0
    with told(Path(path)), ExitStack() as undo:
        fresh = target
        # A device or a pipe is written to; to put a file in its place would take it away.
        if target.is_file() or not target.exists():
            fresh = target.with_name(f".{target.name}.new")
            undo.callback(fresh.unlink, missing_ok=True)
        with fresh.open("wb") as file:
            for part in parts:
                written += file.write(part)
        if fresh != target:
            fresh.replace(target)
    data = {"file": path, "bytes": written}
    return Answer(data, [f"{path}: {count(written, 'byte')}"])


def pin(args: argparse.Namespace) -> Answer:
    """Keep a checkpoint."""
    return checking.pin(args.checkpoint, trust_of(args))
