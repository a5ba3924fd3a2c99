"""Reading a published log: from a folder, or over https, or from this machine over http.

Sizes and times are bounded; redirects are not followed, and nothing but GET is ever sent.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from affidavit.apps.auditor.pins import keep_fork
from affidavit.apps.auditor.showing import answer_evidence
from affidavit.apps.cli.render import Answer
from affidavit.errors import CannotVerify, StoreError, invalid
from affidavit.verify.published import Progress, verify_published
from affidavit.verify.trust import Trust

TIMEOUT_S: Final = 30.0
_LOOPBACK: Final = frozenset(("127.0.0.1", "::1", "localhost"))
_NOT_FOUND: Final = (403, 404, 410)


def is_published(subject: str) -> bool:
    """Whether this names a published log: an address, or a folder."""
    return "://" in subject or Path(subject).is_dir()


def check_published(subject: str, trust: Trust, progress: Progress | None = None) -> Answer:
    """The verdict over a published log; the proof of a fork is kept."""
    files: Folder | Server = Server(subject) if "://" in subject else Folder(subject)
    found = verify_published(files, trust, progress)
    forks = [str(keep_fork(fork)) for fork in found.forks]
    answer = answer_evidence(subject, found.report, {"proofs_of_misbehaviour": forks})
    return answer._replace(lines=[*answer.lines, *(f"  evidence     {one}" for one in forks)])


class Folder:
    """A published log in a folder."""

    def __init__(self, path: str) -> None:
        self._folder = Path(path)

    def read(self, path: str, bytes_max: int) -> bytes | None:
        """A file; the paths asked for are those of tiles, never what somebody wrote."""
        target = self._folder / path
        try:
            if not target.is_file():  # a pipe, say, would keep us waiting for ever
                return None
            with target.open("rb") as file:
                return _read(file, bytes_max, path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(
                f"{self._folder / path} cannot be read ({error.strerror or error})",
                hint="Check this user's rights there.",
            ) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A server that sends elsewhere is not the one that was named."""

    def redirect_request(self, *_: Any) -> None:
        """Do not follow."""


class Server:
    """A published log at an address."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        is_safe = parts.scheme == "https" or (
            parts.scheme == "http" and parts.hostname in _LOOPBACK
        )
        if not is_safe or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise invalid(
                "subject",
                f"{address!r:.200} is not an address to read a log from",
                hint="Give https://..., or http://127.0.0.1:PORT/... on this machine.",
            )
        self._address = address.rstrip("/")
        self._opener = urllib.request.build_opener(_NoRedirects)

    def read(self, path: str, bytes_max: int) -> bytes | None:
        """A file of the server."""
        address = f"{self._address}/{path}"
        try:
            return _in_time(lambda: self._get(address, bytes_max, path))
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in _NOT_FOUND:
                return None
            raise _unavailable(address, f"it answers {error.code}") from None
        except (OSError, ValueError, HTTPException) as error:
            said = str(getattr(error, "reason", error)) or "timed out"
            raise _unavailable(address, said) from None

    def _get(self, address: str, bytes_max: int, path: str) -> bytes:
        with self._opener.open(address, timeout=TIMEOUT_S) as answer:
            if answer.status != HTTPStatus.OK:
                raise HTTPException(f"it answers {answer.status}")
            data = _read(answer, bytes_max, path)
            if answer.length:  # a connection that broke is no change of the log
                raise HTTPException(f"{answer.length:,} bytes are missing")
            return data


def _in_time(get: Callable[[], bytes]) -> bytes:
    """What is got, if it is there in time.

    The timeout of a socket is for each byte of it: a byte a second would keep us for ever.
    """
    done = Future[bytes]()

    def work() -> None:
        try:
            done.set_result(get())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            done.set_exception(error)

    Thread(target=work, daemon=True).start()
    return done.result(TIMEOUT_S)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _read(file: _Readable, bytes_max: int, path: str) -> bytes:
    data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise CannotVerify(
            f"{path} has more than {bytes_max:,} bytes, which no file of a log has there",
            hint="Ask who publishes it.",
        )
    return data


def _unavailable(address: str, said: str) -> StoreError:
    return StoreError(f"{address} cannot be read ({said:.200})", hint="Try again later.")
