"""A test environment on the fake GitLab."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.domain.ids import Repo, Sha
from tests.support.forges.gitlab.fake import NAME, FakeGitlab
from tests.support.forges.gitlab.world import DEVELOPER, MergeRequest


class GitlabEnvironment:
    def __init__(self, gitlab: FakeGitlab) -> None:
        self.gitlab = gitlab
        self.acts = gitlab.actions
        self.world = gitlab.world
        self.project = gitlab.create_project("acme/app")
        self.origin = self.project.origin
        self.repo = Repo(NAME, "acme", "app")

    @asynccontextmanager
    async def host(self, **access: Any) -> AsyncGenerator[GitlabHost]:
        host = GitlabHost(self.gitlab.forge_config(**access), WallClock())
        try:
            yield host
        finally:
            await host.close()

    def open(self, number: int, **data: Any) -> Sha:
        """GitLab assigns the numbers in order."""
        title, base, author = data.get("title", "A change"), data.get("base", "main"), data.get("author", "ada")
        if base not in self.project.protected:
            self.origin.branch(base, base="main")
        self.origin.branch(f"topic-{number}", base="main", files={f"{number}.txt": "1"})
        self.project.members.setdefault(author, DEVELOPER)
        title = f"Draft: {title}" if data.get("draft") else title
        request = self.acts.open_merge_request(self.project, f"topic-{number}", by=author, base=base, title=title)
        assert request.iid == number
        return self.head(number)

    def push(self, number: int) -> Sha:
        return self.acts.commit(self.project, f"topic-{number}", {f"{number}.txt": self.head(number)})

    def close(self, number: int) -> None:
        self.acts.update(self.project, self.request(number), self.world.user("ada"), state="closed")

    def land(self, number: int) -> Sha:
        base = self.request(number).target_branch
        before = self.origin.tip(base)
        after = self.origin.commit(base, {f"{number}.txt": "1"}, merging=self.head(number))
        self.acts.on_refs_updated(self.project, self.world.user("ada"), {f"refs/heads/{base}": (before, after)})
        return after

    def request(self, number: int = 1) -> MergeRequest:
        return self.project.merge_requests[number]

    def head(self, number: int = 1) -> Sha:
        head = self.request(number).head
        assert head
        return head


@contextmanager
def gitlab_environment(root: Path) -> Generator[GitlabEnvironment]:
    with FakeGitlab(root) as gitlab:
        yield GitlabEnvironment(gitlab)
