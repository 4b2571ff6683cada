"""Installations for tests, checked for all promises when the test is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replicas.installation import Installation
from tests.support.postgres import shared_server


class Install:
    """Creates installations, by default of two replicas with the role `all`."""

    def __init__(self, folder: Path) -> None:
        self.created: list[Installation] = []
        self._folder = folder

    def __call__(self, *roles: str) -> Installation:
        return self.with_database(shared_server().fresh_database(), *(roles or ("all", "all")))

    def with_database(self, database_url: str, *roles: str) -> Installation:
        self.created.append(Installation.start(self._folder, database_url, *roles))
        return self.created[-1]

    def not_started(self, *roles: str) -> Installation:
        """No replica is started yet."""
        self.created.append(Installation(self._folder, shared_server().fresh_database(), *roles))
        return self.created[-1]


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    factory = Install(tmp_path)
    yield factory
    for installation in factory.created:
        try:
            installation.check_promises()
        finally:
            installation.close()


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Three replicas for all tests of a module, each of which has repositories of its own."""
    installation = Installation.start(
        tmp_path_factory.mktemp("trio"), shared_server().fresh_database(), "all", "all", "api"
    )
    try:
        yield installation
        installation.check_promises()
    finally:
        installation.close()
