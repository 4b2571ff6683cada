"""A test environment on the fake GitLab."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.timestamps import MINUTE, Instant, later
from tests.support.forges.gitlab.fake import NAME, FakeGitlab
from tests.support.forges.gitlab.world import DEVELOPER, TOKEN, MergeRequest


class MovableClock(WallClock):
    """The time of the fake and of the host. A test lets minutes or hours pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0

    def now(self) -> Instant:
        return later(super().now(), self.ahead)

    def move(self, milliseconds: int) -> None:
        self.ahead += milliseconds


class SigningKey:
    """A key of the queue, for what a host reports about it. It signs nothing."""

    fingerprint = "SHA256:ours"
    expires_at = float("inf")

    def __init__(self, public_key: str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOursOursOurs") -> None:
        self.public_key = public_key

    def sign(self, payload: bytes, namespace: str) -> str:
        raise NotImplementedError

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:
        raise NotImplementedError


SETTLED = 2 * MINUTE
"""After this time, GitLab's lists show what comes next. The actions of the environment let it pass at their end."""


class GitlabEnvironment:
    def __init__(self, gitlab: FakeGitlab, clock: MovableClock, client: httpx2.Client) -> None:
        self.gitlab = gitlab
        self.clock = clock
        self._client = client
        self.acts = gitlab.actions
        self.world = gitlab.world
        self.project = gitlab.create_project("acme/app")
        self.origin = self.project.origin
        self.repo = Repo(NAME, "acme", "app")

    @asynccontextmanager
    async def host(self, **access: Any) -> AsyncGenerator[GitlabHost]:
        host = GitlabHost(self.gitlab.forge_config(**access), self.clock)
        try:
            yield host
        finally:
            await host.close()

    def call(self, method: str, path: str = "", **params: Any) -> httpx2.Response:
        """A request to the project at its first path, such as `/merge_requests/1`, without the product."""
        url = f"{self.world.web_url}/api/v4/projects/acme%2Fapp{path}"
        sent: dict[str, Any] = {"params": params} if method == "GET" else {"json": params}
        return self._client.request(method, url, headers={"private-token": TOKEN}, **sent)

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
        self.clock.move(SETTLED)
        return self.head(number)

    def push(self, number: int) -> Sha:
        head = self.acts.commit(self.project, f"topic-{number}", {f"{number}.txt": self.head(number)})
        self.clock.move(SETTLED)
        return head

    def close(self, number: int) -> None:
        self.acts.update(self.project, self.request(number), self.world.user("ada"), state="closed")
        self.clock.move(SETTLED)

    def land(self, number: int) -> Sha:
        base = self.request(number).target_branch
        before = self.origin.tip(base)
        after = self.origin.commit(base, {f"{number}.txt": "1"}, merging=self.head(number))
        self.acts.on_refs_updated(self.project, self.world.user("ada"), {f"refs/heads/{base}": (before, after)})
        self.clock.move(SETTLED)
        return after

    def request(self, number: int = 1) -> MergeRequest:
        return self.project.merge_requests[number]

    def head(self, number: int = 1) -> Sha:
        head = self.request(number).head
        assert head
        return head


@contextmanager
def gitlab_environment(root: Path) -> Generator[GitlabEnvironment]:
    clock = MovableClock()
    with FakeGitlab(root, clock) as gitlab, httpx2.Client(trust_env=False, verify=False) as client:
        yield GitlabEnvironment(gitlab, clock, client)
