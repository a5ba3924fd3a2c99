"""A server as a stranger starts it, and requests whose every header the test chooses."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

# Runs the command line in a process in which a test has changed something first.
_MAIN = "import sys; from affidavit.apps.cli.main import main; {}; sys.exit(main(sys.argv[1:]))"


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str


class Server:
    """`affidavit serve` on a free port, in a process of its own."""

    def __init__(self, ledger: str, *words: str, first: str = "pass", log: Path) -> None:
        self.ledger = ledger
        self._log = log
        command = [sys.executable, "-c", _MAIN.format(first), "serve", "--port", "0"]
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*command, "--ledger", ledger, *words],
                stdout=subprocess.PIPE, stderr=stderr, text=True, env=os.environ,
            )  # fmt: skip
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline().strip()
        assert self.first_line, self.log
        is_json = self.first_line.startswith("{")
        self.url = json.loads(self.first_line)["data"]["url"] if is_json else self.first_line
        self.host = urlsplit(self.url).netloc

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, timeout=20)

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Reply:
        connection = self.connect()
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host=True)
            for name, value in {"Host": self.host, **(headers or {})}.items():
                connection.putheader(name, value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            reply = connection.getresponse()
            return Reply(reply.status, dict(reply.headers), reply.read().decode())

    def get(self, path: str) -> Reply:
        return self.ask("GET", path)

    def post(self, path: str) -> Reply:
        """A form of the page itself."""
        return self.ask("POST", path, {"Origin": f"http://{self.host}", "Content-Length": "0"})

    def verify(self, address: str = "/verify") -> Reply:
        """Press the button and wait for the verdict; answers with where that leads."""
        pressed = self.post(address)
        assert pressed.status == 303
        end = time.monotonic() + 30
        while "Verifying\u2026" in self.get("/verify").text:
            assert time.monotonic() < end, "no verdict in half a minute"
            time.sleep(0.1)
        return pressed

    def stop(self, by: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Tell it to stop; answers with its exit code and the rest of its standard output."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        rest, _ = self.process.communicate(timeout=20)
        return self.process.returncode, rest


@contextlib.contextmanager
def serving(ledger: str, *words: str, first: str = "pass", log: Path) -> Iterator[Server]:
    server = Server(ledger, *words, first=first, log=log)
    try:
        yield server
    finally:
        server.stop()
