"""What only Gitea does, by one that really runs."""

import pytest

from tests.contract.host.gitea_stage import GiteaStage
from tests.contract.host.test_gitea import *  # noqa: F403
from tests.contract.host.test_gitea_examining import *  # noqa: F403
from tests.contract.host.test_gitea_merging import *  # noqa: F403
from tests.contract.host.test_gitea_statuses import *  # noqa: F403
from tests.contract.host.test_gitea_talking import *  # noqa: F403
from tests.forge.people import People
from tests.forge.project import Project


@pytest.fixture
def gitea(people: People, project: Project) -> GiteaStage:
    return GiteaStage(people, project)
