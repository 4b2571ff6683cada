"""A server and a browser for all tests here, and for each test a queue and its visitors."""

import os
from collections.abc import Iterator
from typing import cast

import pytest
from playwright.sync_api import expect

from tests.support.chromium import NEEDED, PATIENCE, Chromium, Visit, executable
from tests.support.grounds import Grounds, Track

MISSING = "The pages were not tested in a browser: there is no Chromium here. `make setup-browser` installs one."


@pytest.fixture(scope="package")
def chromium() -> Iterator[Chromium]:
    if executable() is None:
        assert not os.environ.get(NEEDED), MISSING
        pytest.skip(MISSING)
    expect.set_options(timeout=PATIENCE)
    chromium = Chromium()
    yield chromium
    chromium.close()


@pytest.fixture(scope="package")
def grounds(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    assert chromium.browser.is_connected()
    grounds = Grounds(tmp_path_factory.mktemp("grounds"))
    yield grounds
    grounds.close()


@pytest.fixture
def track(grounds: Grounds) -> Iterator[Track]:
    track = grounds.track()
    yield track
    track.api.close()


class Visitors:
    def __init__(self, chromium: Chromium, grounds: Grounds) -> None:
        self._chromium = chromium
        self._grounds = grounds
        self._visits = list[Visit]()

    def __call__(self, *scopes: str) -> Visit:
        """Somebody who may do all this."""
        return self.with_token(self._grounds.token(*scopes))

    def with_token(self, token: str) -> Visit:
        visit = self.stranger()
        visit.sign_in(token)
        return visit

    def stranger(self, *beyond: str) -> Visit:
        """Somebody who is not signed in, and may be led beyond our own pages only to these."""
        self._visits.append(Visit(self._chromium.browser, self._grounds.server.url, *beyond))
        return self._visits[-1]

    def leave(self) -> None:
        while self._visits:
            self._visits.pop().leave()


@pytest.fixture
def visitor(chromium: Chromium, grounds: Grounds) -> Iterator[Visitors]:
    visitors = Visitors(chromium, grounds)
    yield visitors
    chromium.run(visitors.leave)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Tests are told where their browser lives."""
    known = pyfuncitem.funcargs
    told = {name: known[name] for name in pyfuncitem._fixtureinfo.argnames}  # pyright: ignore[reportPrivateUsage]
    cast(Chromium, known["chromium"]).run(lambda: pyfuncitem.obj(**told))
    return True
