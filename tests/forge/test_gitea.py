"""The contract tests that are specific to Gitea, on a real one."""

import pytest

from tests.contract.host.gitea_environment import GiteaEnvironment
from tests.contract.host.test_gitea_checks import *  # noqa: F403
from tests.contract.host.test_gitea_comments import *  # noqa: F403
from tests.contract.host.test_gitea_diagnostics import *  # noqa: F403
from tests.contract.host.test_gitea_merging import *  # noqa: F403
from tests.contract.host.test_gitea_pull_requests import *  # noqa: F403
from tests.forge.gitea_admin import GiteaAdmin
from tests.forge.project import Project


@pytest.fixture
def gitea(admin: GiteaAdmin, project: Project) -> GiteaEnvironment:
    return GiteaEnvironment(admin, project)
