"""The contract tests that hold for every host, on a real Gitea."""

import pytest

from tests.contract.host.gitea_environment import GiteaEnvironment
from tests.contract.host.test_host import *  # noqa: F403
from tests.forge.gitea_admin import GiteaAdmin
from tests.forge.project import Project


@pytest.fixture
def env(admin: GiteaAdmin, project: Project) -> GiteaEnvironment:
    return GiteaEnvironment(admin, project)
