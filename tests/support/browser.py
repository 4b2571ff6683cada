"""The system's Chromium, and a monitor that records forbidden actions of pages."""

import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from axe_playwright_python.base import AXE_SCRIPT  # pyright: ignore[reportMissingTypeStubs]
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, sync_playwright

EXECUTABLE_VARIABLE = "MERGEYARD_TEST_CHROMIUM"
"""Environment variable: the executable."""
BROWSER_REQUIRED_VARIABLE = "MERGEYARD_BROWSER_NEEDED"
"""Environment variable: fail instead of skip if there is no browser."""
EXECUTABLE_NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",  # there is none for root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PAGE_TIMEOUT_MS = 30_000
"""For content that appears without a reload."""

Theme = Literal["light", "dark"]
Done = TypeVar("Done")


def find_executable() -> str | None:
    return os.environ.get(EXECUTABLE_VARIABLE) or next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)


class Chromium:
    """Runs in its own thread: Playwright runs an event loop there, and tests could not run another one."""

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
        browser = playwright.chromium.launch(executable_path=find_executable(), args=FLAGS)
        self._open.callback(browser.close)
        return browser


class PageMonitor:
    """Records dialogs, script errors, console errors and requests to other origins."""

    def __init__(self, context: BrowserContext, origins: tuple[str, ...]) -> None:
        self.violations: list[str] = []
        self._origins = tuple(f"{origin}/" for origin in origins)
        self._accepted_dialogs = set[str]()
        self._allowed_errors = list[str]()
        context.on("dialog", self._on_dialog)
        context.on("console", self._on_console)
        context.on("request", self._on_request)
        context.on("weberror", lambda error: self.violations.append(f"failed: {error.error}"))

    def accept_dialog(self, question: str) -> None:
        """This dialog is allowed and is accepted."""
        self._accepted_dialogs.add(question)

    def allow_console_error(self, text: str) -> None:
        """A console error with this text is allowed."""
        self._allowed_errors.append(text)

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.message in self._accepted_dialogs:
            dialog.accept()
            return
        self.violations.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(text in message.text for text in self._allowed_errors):
            self.violations.append(f"console: {message.text}")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((*self._origins, "data:")):
            self.violations.append(f"fetched: {request.url}")


class BrowserSession:
    """One user with a separate browser context; `session.page` is the page."""

    def __init__(self, browser: Browser, *homes: str) -> None:
        """Requests to other URLs than these are violations."""
        self.base_url = homes[0]
        self.context = browser.new_context(
            base_url=self.base_url,
            color_scheme="light",
            locale="en-GB",
            reduced_motion="reduce",
            viewport={"width": 1280, "height": 900},
        )
        self.context.set_default_timeout(PAGE_TIMEOUT_MS)
        self.monitor = PageMonitor(self.context, homes)
        self.page: Page = self.context.new_page()

    def sign_in(self, token: str) -> None:
        """Signs in without the sign-in page."""
        response = self.context.request.post("/sign-in", form={"token": token, "next": "/"}, max_redirects=0)
        assert response.status == 303, response.text()

    def goto(self, path: str) -> Page:
        response = self.page.goto(path)
        assert response is not None, f"{path} has no response"
        assert response.status < 500, f"{path} responds with {response.status}"
        return self.page

    def close(self) -> None:
        self.context.close()
        assert not self.monitor.violations, self.monitor.violations


SCREENSHOTS_VARIABLE = "MERGEYARD_SCREENSHOTS"
"""Environment variable: a folder for screenshots of all pages."""
WCAG = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
CONTRAST = {"type": "rule", "values": ["color-contrast"]}
"""The only rule that depends on the theme."""
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 780}
OVERFLOW_SCRIPT = """async () => {
    for (const _ of "ab") await new Promise(requestAnimationFrame);  // charts resize in the next frame
    const widest = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= widest) return [];
    return [...document.querySelectorAll("body *")]
        .filter(element => element.getBoundingClientRect().right > widest + 1)
        .map(element => element.outerHTML.slice(0, 120)).slice(0, 5).concat(["the page scrolls sideways"]);
}"""


def find_page_flaws(page: Page, name: str) -> list[str]:
    """Checks both themes at desktop and phone width; takes screenshots if the variable is set."""
    flaws = list[str]()
    page.evaluate(AXE_SCRIPT)
    for theme, rules in (("light", WCAG), ("dark", CONTRAST)):
        page.emulate_media(color_scheme=cast(Any, theme))
        flaws += [f"{name}, {theme}: {flaw}" for flaw in _accessibility_violations(page, rules)]
        take_screenshot(page, f"{name}-{theme}")
        page.set_viewport_size(cast(Any, PHONE))
        flaws += [f"{name}, {theme}, on a phone: {flaw}" for flaw in page.evaluate(OVERFLOW_SCRIPT)]
        take_screenshot(page, f"{name}-{theme}-phone")
        page.set_viewport_size(cast(Any, DESKTOP))
    return flaws


def take_screenshot(page: Page, name: str) -> None:
    if folder := os.environ.get(SCREENSHOTS_VARIABLE):
        page.screenshot(path=Path(folder) / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png", full_page=True)


def _accessibility_violations(page: Page, rules: dict[str, Any]) -> list[str]:
    found = page.evaluate("rules => axe.run({ runOnly: rules, resultTypes: ['violations'] })", rules)
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
