"""The stage on a GitLab that only looks like one."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from tests.support.forges.gitlab.fake import NAME, FakeGitlab
from tests.support.forges.gitlab.nouns import DEVELOPER, MergeRequest


class GitlabStage:
    def __init__(self, gitlab: FakeGitlab) -> None:
        self.gitlab = gitlab
        self.acts = gitlab.acts
        self.world = gitlab.world
        self.project = gitlab.project("acme/app")
        self.origin = self.project.origin
        self.repo = Repo(NAME, "acme", "app")

    @asynccontextmanager
    async def host(self, **access: Any) -> AsyncGenerator[GitlabHost]:
        host = GitlabHost(self.gitlab.access(**access), WallClock())
        try:
            yield host
        finally:
            await host.close()

    def open(self, number: int, **data: Any) -> Sha:
        """It gives the numbers itself, in order."""
        title, base, author = data.get("title", "A change"), data.get("base", "main"), data.get("author", "ada")
        if base not in self.project.protected:
            self.origin.branch(base, upon="main")
        self.origin.branch(f"topic-{number}", upon="main", files={f"{number}.txt": "1"})
        self.project.members.setdefault(author, DEVELOPER)
        title = f"Draft: {title}" if data.get("draft") else title
        request = self.acts.open(self.project, f"topic-{number}", by=author, base=base, title=title)
        assert request.iid == number
        return self.head(number)

    def push(self, number: int) -> Sha:
        return self.acts.commit(self.project, f"topic-{number}", {f"{number}.txt": self.head(number)})

    def close(self, number: int) -> None:
        self.acts.change(self.project, self.request(number), self.world.person("ada"), state="closed")

    def land(self, number: int) -> Sha:
        base = self.request(number).target_branch
        before = self.origin.tip(base)
        after = self.origin.commit(base, {f"{number}.txt": "1"}, merging=self.head(number))
        self.acts.moved(self.project, self.world.person("ada"), {f"refs/heads/{base}": (before, after)})
        return after

    def request(self, number: int = 1) -> MergeRequest:
        return self.project.merge_requests[number]

    def head(self, number: int = 1) -> Sha:
        head = self.request(number).head
        assert head
        return head


@contextmanager
def gitlab_stage(root: Path) -> Generator[GitlabStage]:
    with FakeGitlab(root) as gitlab:
        yield GitlabStage(gitlab)
