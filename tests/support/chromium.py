"""The system's Chromium, and an alarm that rings when a page does what no page of ours may do."""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Literal, TypeVar

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, sync_playwright

CHOSEN = "MERGEYARD_TEST_CHROMIUM"
"""The environment variable that may name an executable, and"""
NEEDED = "MERGEYARD_BROWSER_NEEDED"
"""the one that says that there must be one."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",  # as root it has none
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE = 30_000
"""Milliseconds, for a page that shows something by itself."""

Theme = Literal["light", "dark"]
Done = TypeVar("Done")


def executable() -> str | None:
    return os.environ.get(CHOSEN) or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """Lives in a thread of its own: where it is driven from, an event loop runs, and no test could run another."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "chromium")
        self._open = ExitStack()
        self.browser = self.run(self._launch)

    def run(self, act: Callable[[], Done]) -> Done:
        return self._thread.submit(act).result()

    def close(self) -> None:
        self.run(self._open.close)
        self._thread.shutdown()

    def _launch(self) -> Browser:
        playwright = self._open.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        self._open.callback(browser.close)
        return browser


class Alarm:
    """Nothing asks, nothing fails, nothing is blocked, and nothing is fetched from anywhere but home."""

    def __init__(self, context: BrowserContext, homes: tuple[str, ...]) -> None:
        self.rung: list[str] = []
        self._homes = tuple(f"{home}/" for home in homes)
        self._agreed = set[str]()
        self._expected = list[str]()
        context.on("dialog", self._asked)
        context.on("console", self._said)
        context.on("request", self._fetched)
        context.on("weberror", lambda error: self.rung.append(f"failed: {error.error}"))

    def agree_to(self, question: str) -> None:
        """The page may ask this, and the visitor says yes."""
        self._agreed.add(question)

    def expect(self, words: str) -> None:
        """The console may complain of this."""
        self._expected.append(words)

    def _asked(self, dialog: Dialog) -> None:
        if dialog.message in self._agreed:
            dialog.accept()
            return
        self.rung.append(f"asked: {dialog.message}")
        dialog.dismiss()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(words in message.text for words in self._expected):
            self.rung.append(f"said: {message.text}")

    def _fetched(self, request: Request) -> None:
        if not request.url.startswith((*self._homes, "data:")):
            self.rung.append(f"fetched: {request.url}")


class Visit:
    """One person with a browser of their own: `visit.page` is what they see."""

    def __init__(self, browser: Browser, *homes: str) -> None:
        """All that they may see is at home."""
        self.home = homes[0]
        self.context = browser.new_context(
            base_url=self.home,
            color_scheme="light",
            locale="en-GB",
            reduced_motion="reduce",
            viewport={"width": 1280, "height": 900},
        )
        self.context.set_default_timeout(PATIENCE)
        self.alarm = Alarm(self.context, homes)
        self.page: Page = self.context.new_page()

    def sign_in(self, token: str) -> None:
        """Without the page for it."""
        answer = self.context.request.post("/sign-in", form={"token": token, "next": "/"}, max_redirects=0)
        assert answer.status == 303, answer.text()

    def go(self, address: str) -> Page:
        answer = self.page.goto(address)
        assert answer is not None, f"{address} leads nowhere"
        assert answer.status < 500, f"{address} answers {answer.status}"
        return self.page

    def leave(self) -> None:
        self.context.close()
        assert not self.alarm.rung, self.alarm.rung
