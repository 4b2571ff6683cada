"""The forge that these tests run on: one for all of them.

The tests run only when this folder is named: `pytest tests/forge`. `MERGEYARD_TEST_FORGE_URL` and
`MERGEYARD_TEST_FORGE_TOKEN`, an administrator's token with all scopes, select a Gitea or Forgejo that runs already.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.forge.gitea_admin import GiteaAdmin
from tests.forge.gitea_server import GiteaServer, find_binary
from tests.forge.project import Project

URL_VARIABLE, TOKEN_VARIABLE = "MERGEYARD_TEST_FORGE_URL", "MERGEYARD_TEST_FORGE_TOKEN"
NUMBERS = count(1)


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if any("tests/forge" in argument for argument in config.args) else True


@pytest.fixture(scope="session")
def admin() -> Iterator[GiteaAdmin]:
    if URL_VARIABLE in os.environ:
        yield from _close_afterwards(GiteaAdmin(os.environ[URL_VARIABLE], os.environ[TOKEN_VARIABLE]))
        return
    binary = find_binary()
    if binary is None:
        pytest.skip(f"there is no Gitea: `make forge` builds one, or {URL_VARIABLE} selects one that runs")
    with GiteaServer(binary) as server:
        yield from _close_afterwards(GiteaAdmin(server.url, server.admin_token))


@pytest.fixture
def project(admin: GiteaAdmin, tmp_path: Path) -> Project:
    """A repository that no other test uses."""
    return admin.create_project("acme", f"app-{os.getpid()}-{next(NUMBERS)}", tmp_path)


def _close_afterwards(admin: GiteaAdmin) -> Iterator[GiteaAdmin]:
    try:
        yield admin
    finally:
        admin.close()
