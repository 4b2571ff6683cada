"""The stage on a Gitea, the real one and the one that only looks like it: people ask both for the same things."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.clock import Clock
from tests.forge.people import HOST, People
from tests.forge.project import Project
from tests.support.forges.gitea.fake import FakeGitea
from tests.support.patience import eventually

SECRET = "between-us"


class GiteaStage:
    def __init__(self, people: People, project: Project) -> None:
        self.people = people
        self.project = project
        self.repo = Repo(HOST, project.owner, project.name)

    @asynccontextmanager
    async def host(self, clock: Clock | None = None, **access: Any) -> AsyncGenerator[GiteaHost]:
        host = GiteaHost(replace(self.people.access(SECRET), **access), clock or WallClock())
        try:
            yield host
        finally:
            await host.close()

    def open(self, number: int, **data: Any) -> Sha:
        """It gives the numbers itself, in order."""
        title, base, author = data.get("title", "A change"), data.get("base", "main"), data.get("author", "ada")
        title = f"WIP: {title}" if data.get("draft") else title
        if base not in self.project.origin.refs():
            self.project.origin.branch(base, upon="main")
            self.project.push(base)
        branch, files = f"topic-{number}", data.get("files", {f"{number}.txt": "1"})
        self.project.admit(author, "write")
        assert self.project.open(branch, files, title=title, base=base, author=author) == number
        if not data.get("draft"):
            self.project.until_checked(number)
        return self.head(number)

    def push(self, number: int) -> Sha:
        branch, noted = f"topic-{number}", self.project.pushes_noted(number)
        sha = self.project.commit(branch, {f"{number}.txt": self.project.origin.tip(branch)})
        eventually(lambda: self.project.pushes_noted(number) > noted)
        self.project.until_checked(number)
        return sha

    def close(self, number: int) -> None:
        self.project.change_pull(number, state="closed")

    def land(self, number: int) -> Sha:
        base = self.project.pull(number)["base"]["ref"]
        sha = self.project.origin.commit(base, {f"{number}.txt": "1"}, merging=f"topic-{number}")
        self.project.push(base)
        return sha

    def head(self, number: int) -> Sha:
        return self.project.origin.tip(f"topic-{number}")

    async def mergeability(self, host: GiteaHost, number: PrNumber) -> Mergeability:
        pull = await host.pull(self.repo, number)
        assert pull
        return pull.mergeability


@contextmanager
def gitea_stage(root: Path) -> Generator[GiteaStage]:
    """On the one that only looks like it."""
    with FakeGitea(root) as fake, staged(fake, root) as stage:
        yield stage


@contextmanager
def staged(fake: FakeGitea, root: Path) -> Generator[GiteaStage]:
    people = People(fake.url, fake.admin_token)
    try:
        yield GiteaStage(people, people.project("acme", "app", root))
    finally:
        people.close()
