"""The forge that these tests run against: one for all of them.

They run only for those who name this folder: `pytest tests/forge`. `MERGEYARD_TEST_FORGE_URL` and
`MERGEYARD_TEST_FORGE_TOKEN`, a token of an administrator with all scopes, name a Gitea or Forgejo that runs already.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.forge.people import People
from tests.forge.project import Project
from tests.forge.server import GiteaServer, found_binary

URL, TOKEN = "MERGEYARD_TEST_FORGE_URL", "MERGEYARD_TEST_FORGE_TOKEN"
NUMBERS = count(1)


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if any("tests/forge" in named for named in config.args) else True


@pytest.fixture(scope="session")
def people() -> Iterator[People]:
    if URL in os.environ:
        yield from _until_done(People(os.environ[URL], os.environ[TOKEN]))
        return
    binary = found_binary()
    if binary is None:
        pytest.skip(f"there is no Gitea: `make forge` builds one, or {URL} names one that runs")
    with GiteaServer(binary) as server:
        yield from _until_done(People(server.url, server.admin_token))


@pytest.fixture
def project(people: People, tmp_path: Path) -> Project:
    """A repository that no other test knows."""
    return people.project("acme", f"app-{os.getpid()}-{next(NUMBERS)}", tmp_path)


def _until_done(people: People) -> Iterator[People]:
    try:
        yield people
    finally:
        people.close()
