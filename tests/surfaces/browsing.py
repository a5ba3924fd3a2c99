"""The system's Chromium, driven by Playwright: what it says on its console, what it asks for."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

_QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def launch() -> Iterator[Browser]:
    """A browser without a window."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    assert found, "no Chromium; install it (for example: apt-get install chromium)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(_QUIET))
        yield browser
        browser.close()


class Visit:
    """One page, opened from a file, and everything it did that a reader would not see."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.page: Page = browser.new_page(**options)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, file: Path) -> str:
        """Open a file and wait for its verdict; asked seldom, so that asking costs it nothing."""
        self.page.goto(file.as_uri(), wait_until="commit")
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if done := self.page.evaluate("document.documentElement?.dataset.done"):
                return str(done)
            time.sleep(0.02)
        raise AssertionError(f"{file.name}: no verdict in 30 s")

    def in_state(self, state: str) -> list[int]:
        """The entries shown in a state."""
        script = (
            "state => [...document.querySelectorAll(`.entry[data-state=${state}]`)]"
            ".map(card => Number(card.id.slice(1)))"
        )
        found: list[int] = self.page.evaluate(script, state)
        return found

    def line(self, name: str) -> tuple[str, str]:
        """The state and the words of one line of the verdict."""
        item = self.page.locator("#checks li").filter(has=self.page.locator("b", has_text=name))
        return str(item.get_attribute("data-state")), item.locator("span").inner_text()
