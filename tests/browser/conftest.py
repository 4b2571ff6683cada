"""One server and one browser for all tests, and for each test a queue and its visitors.

`make test` runs the most important tests, and `make test-long` the others.
"""

import os
from collections.abc import Iterator
from typing import cast

import pytest
from playwright.sync_api import expect

from tests.support.browser import BROWSER_REQUIRED_VARIABLE, PAGE_TIMEOUT_MS, BrowserSession, Chromium, find_executable
from tests.support.shared_server import SharedServer, SharedServerQueue

FOLDER = "tests/browser/"
QUICK_TESTS = {
    "test_queue_page_follows_a_pr_from_submit_to_merged_without_a_reload",
    "test_submit_change_priority_and_remove_by_keyboard",
    "test_hostile_pull_request_from_submission_to_failure",
    "test_page_with_a_new_secret_is_accessible",
}
MISSING = "The pages were not tested in a browser: there is no Chromium here. `make setup-browser` installs one."


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FOLDER) and item.name not in QUICK_TESTS:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Chromium]:
    if find_executable() is None:
        assert not os.environ.get(BROWSER_REQUIRED_VARIABLE), MISSING
        pytest.skip(MISSING)
    expect.set_options(timeout=PAGE_TIMEOUT_MS)
    chromium = Chromium()
    yield chromium
    chromium.close()


@pytest.fixture(scope="package")
def site(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    assert chromium.browser.is_connected()
    site = SharedServer(tmp_path_factory.mktemp("site"))
    yield site
    site.close()


@pytest.fixture
def queue(site: SharedServer) -> Iterator[SharedServerQueue]:
    queue = site.create_queue()
    yield queue
    queue.api.close()


class Visitors:
    def __init__(self, chromium: Chromium, site: SharedServer) -> None:
        self._chromium = chromium
        self._site = site
        self._visits = list[BrowserSession]()

    def __call__(self, *scopes: str) -> BrowserSession:
        """A visitor who is signed in with a token with these scopes."""
        return self.with_token(self._site.token(*scopes))

    def with_token(self, token: str) -> BrowserSession:
        visit = self.anonymous()
        visit.sign_in(token)
        return visit

    def anonymous(self, *allowed_sites: str) -> BrowserSession:
        """A visitor who is not signed in, and may follow links to these other sites only."""
        self._visits.append(BrowserSession(self._chromium.browser, self._site.server.url, *allowed_sites))
        return self._visits[-1]

    def leave(self) -> None:
        while self._visits:
            self._visits.pop().close()


@pytest.fixture
def visitor(chromium: Chromium, site: SharedServer) -> Iterator[Visitors]:
    visitors = Visitors(chromium, site)
    yield visitors
    chromium.run(visitors.leave)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Runs each test in the thread of the browser."""
    fixtures = pyfuncitem.funcargs
    arguments = {name: fixtures[name] for name in pyfuncitem._fixtureinfo.argnames}  # pyright: ignore[reportPrivateUsage]
    cast(Chromium, fixtures["chromium"]).run(lambda: pyfuncitem.obj(**arguments))
    return True
