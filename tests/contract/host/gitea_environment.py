"""A test environment on Gitea, real or fake: the tests use the same API for both."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.states import Mergeability, Reason
from mergeyard.ports.external import Clock
from mergeyard.service.views import render_requirement
from tests.forge.gitea_admin import HOST, GiteaAdmin
from tests.forge.project import Project
from tests.support.forges.gitea.fake import FakeGitea
from tests.support.polling import eventually

SECRET = "between-us"


class GiteaEnvironment:
    def __init__(self, people: GiteaAdmin, project: Project) -> None:
        self.people = people
        self.project = project
        self.repo = Repo(HOST, project.owner, project.name)

    @asynccontextmanager
    async def host(self, clock: Clock | None = None, **access: Any) -> AsyncGenerator[GiteaHost]:
        host = GiteaHost(replace(self.people.forge_config(SECRET), **access), clock or WallClock())
        try:
            yield host
        finally:
            await host.close()

    def open(self, number: int, **data: Any) -> Sha:
        """Gitea assigns the numbers in order."""
        title, base, author = data.get("title", "A change"), data.get("base", "main"), data.get("author", "ada")
        title = f"WIP: {title}" if data.get("draft") else title
        if base not in self.project.origin.refs():
            self.project.origin.branch(base, base="main")
            self.project.push(base)
        branch, files = f"topic-{number}", data.get("files", {f"{number}.txt": "1"})
        self.project.add_collaborator(author, "write")
        assert self.project.open(branch, files, title=title, base=base, author=author) == number
        if not data.get("draft"):
            self.project.wait_until_checked(number)
        return self.head(number)

    def push(self, number: int) -> Sha:
        branch, noted = f"topic-{number}", self.project.recorded_pushes(number)
        sha = self.project.commit(branch, {f"{number}.txt": self.project.origin.tip(branch)})
        eventually(lambda: self.project.recorded_pushes(number) > noted)
        self.project.wait_until_checked(number)
        return sha

    def close(self, number: int) -> None:
        self.project.update_pull_request(number, state="closed")

    def land(self, number: int) -> Sha:
        base = self.project.pull_request(number)["base"]["ref"]
        sha = self.project.origin.commit(base, {f"{number}.txt": "1"}, merging=f"topic-{number}")
        self.project.push(base)
        return sha

    def head(self, number: int) -> Sha:
        return self.project.origin.tip(f"topic-{number}")

    async def mergeability(self, host: GiteaHost, number: PullRequestNumber) -> Mergeability:
        pull_request = await host.read_pull_request(self.repo, number)
        assert pull_request
        return pull_request.mergeability

    async def unmet(self, host: GiteaHost, number: PullRequestNumber) -> list[str]:
        """What the pull request lacks, as users read it."""
        pull_request = await host.read_pull_request(self.repo, number)
        assert pull_request
        return [render_requirement(requirement) for requirement in pull_request.unmet_requirements]

    async def unmet_reasons(self, host: GiteaHost, number: PullRequestNumber) -> dict[Reason, tuple[str, ...]]:
        """The names of each requirement that is not met."""
        pull_request = await host.read_pull_request(self.repo, number)
        assert pull_request
        return {requirement.reason: requirement.names for requirement in pull_request.unmet_requirements}


@contextmanager
def gitea_environment(root: Path) -> Generator[GiteaEnvironment]:
    """On the fake Gitea."""
    with FakeGitea(root) as fake, environment_on(fake, root) as env:
        yield env


@contextmanager
def environment_on(fake: FakeGitea, root: Path) -> Generator[GiteaEnvironment]:
    people = GiteaAdmin(fake.url, fake.admin_token)
    try:
        yield GiteaEnvironment(people, people.create_project("acme", "app", root))
    finally:
        people.close()
