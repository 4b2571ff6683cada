"""Installations for tests, held to all promises when the test is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replicas.installation import Installation
from tests.support.postgres import shared_server


class Install:
    """Makes installations, by default of two replicas that do everything."""

    def __init__(self, folder: Path) -> None:
        self.made: list[Installation] = []
        self._folder = folder

    def __call__(self, *roles: str) -> Installation:
        return self.upon(shared_server().fresh_database(), *(roles or ("all", "all")))

    def upon(self, database_url: str, *roles: str) -> Installation:
        self.made.append(Installation.running(self._folder, database_url, *roles))
        return self.made[-1]

    def asleep(self, *roles: str) -> Installation:
        """Nobody runs yet."""
        self.made.append(Installation(self._folder, shared_server().fresh_database(), *roles))
        return self.made[-1]


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    installing = Install(tmp_path)
    yield installing
    for installation in installing.made:
        try:
            installation.hold_to_promises()
        finally:
            installation.close()


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Three replicas for all tests of a module, each of which has repositories of its own."""
    installation = Installation.running(
        tmp_path_factory.mktemp("trio"), shared_server().fresh_database(), "all", "all", "api"
    )
    try:
        yield installation
        installation.hold_to_promises()
    finally:
        installation.close()
