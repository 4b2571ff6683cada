"""The whole fake Gitea: real repositories behind real HTTP, with faults that tests plan.

with FakeGitea(tmp_path) as gitea:
    host = gitea.url, gitea.admin_token
    gitea.faults.plan(RespondsWith(503), "/pulls/1")
"""

from functools import partial
from pathlib import Path
from typing import Self

from mergeyard.adapters.clock import WallClock
from mergeyard.ports.external import Clock
from tests.support.forges.faults import Faults
from tests.support.forges.git_server import GitServer
from tests.support.forges.gitea.actions import Actions
from tests.support.forges.gitea.api import API_ROOT, ApiApp
from tests.support.forges.gitea.payloads import Payloads
from tests.support.forges.gitea.rules import refuse_push
from tests.support.forges.gitea.webhooks import Webhooks
from tests.support.forges.gitea.world import PullRequest, World
from tests.support.http_server import Receive, Scope, Send, ThreadedServer

ADMIN_LOGIN = "admin-of-tests"


class FakeGitea:
    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.world = World(clock or WallClock())
        payloads = Payloads(self.world)
        webhooks = Webhooks(payloads)
        self.deliveries = webhooks.deliveries
        self.actions = Actions(self.world, webhooks)
        self.world.git_server = GitServer(root / "forge", self.world.is_git_request_allowed, self.actions.on_push)
        self.world.git_server.refuse_push = partial(refuse_push, self.world)
        self._api = ApiApp(self.world, self.actions, payloads)
        self.faults = Faults(self._route)
        admin = self.world.make_account(ADMIN_LOGIN, "", site_admin=True)
        self.admin_token = self.world.make_token(admin, "all")
        self._server: ThreadedServer | None = None

    def __enter__(self) -> Self:
        self._server = ThreadedServer(self.faults)
        self.world.url = self.url
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server
        self._server.stop()
        self.deliveries.close()

    @property
    def url(self) -> str:
        assert self._server
        return self._server.url

    def pull_request(self, path: str, number: int) -> PullRequest:
        """The pull request itself, for tests that change its state."""
        return self.world.repositories[path].pull_requests[number]

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._api if scope["path"].startswith(API_ROOT) else self.world.git_server
        await app(scope, receive, send)
