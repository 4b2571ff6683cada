"""What the service may expect of every host, of a Gitea that really runs."""

import pytest

from tests.contract.host.gitea_stage import GiteaStage
from tests.contract.host.test_host import *  # noqa: F403
from tests.forge.people import People
from tests.forge.project import Project


@pytest.fixture
def stage(people: People, project: Project) -> GiteaStage:
    return GiteaStage(people, project)
