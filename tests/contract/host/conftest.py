"""The hosts that the suite runs on."""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.contract.host.gitea_stage import GiteaStage, gitea_stage
from tests.contract.host.github_stage import GithubStage, github_app_stage, github_stage
from tests.contract.host.gitlab_stage import GitlabStage, gitlab_stage
from tests.contract.host.stage import PlainStage, Stage


@contextmanager
def plain_stage(root: Path) -> Generator[PlainStage]:
    yield PlainStage(root)


STAGES: dict[str, Callable[[Path], AbstractContextManager[Stage]]] = {
    "plain": plain_stage,
    "github": github_stage,
    "github app": github_app_stage,
    "gitlab": gitlab_stage,
    "gitea": gitea_stage,
}


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    with STAGES[request.param](tmp_path) as stage:
        yield stage


@pytest.fixture
def plain(tmp_path: Path) -> PlainStage:
    return PlainStage(tmp_path)


@pytest.fixture
def gitlab(tmp_path: Path) -> Iterator[GitlabStage]:
    with gitlab_stage(tmp_path) as stage:
        yield stage


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GithubStage]:
    with github_stage(tmp_path) as stage:
        yield stage


@pytest.fixture
def gitea(tmp_path: Path) -> Iterator[GiteaStage]:
    with gitea_stage(tmp_path) as stage:
        yield stage
