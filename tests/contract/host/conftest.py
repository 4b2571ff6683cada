"""The Git hosts that the suite runs on."""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.contract.host.environment import HostEnvironment, PlainEnvironment
from tests.contract.host.gitea_environment import GiteaEnvironment, gitea_environment
from tests.contract.host.github_environment import GithubEnvironment, github_app_environment, github_environment
from tests.contract.host.gitlab_environment import GitlabEnvironment, gitlab_environment


@contextmanager
def plain_stage(root: Path) -> Generator[PlainEnvironment]:
    yield PlainEnvironment(root)


STAGES: dict[str, Callable[[Path], AbstractContextManager[HostEnvironment]]] = {
    "plain": plain_stage,
    "github": github_environment,
    "github app": github_app_environment,
    "gitlab": gitlab_environment,
    "gitea": gitea_environment,
}


@pytest.fixture(params=STAGES)
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HostEnvironment]:
    with STAGES[request.param](tmp_path) as env:
        yield env


@pytest.fixture
def plain(tmp_path: Path) -> PlainEnvironment:
    return PlainEnvironment(tmp_path)


@pytest.fixture
def gitlab(tmp_path: Path) -> Iterator[GitlabEnvironment]:
    with gitlab_environment(tmp_path) as env:
        yield env


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GithubEnvironment]:
    with github_environment(tmp_path) as env:
        yield env


@pytest.fixture
def gitea(tmp_path: Path) -> Iterator[GiteaEnvironment]:
    with gitea_environment(tmp_path) as env:
        yield env
