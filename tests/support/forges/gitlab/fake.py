"""The whole fake GitLab: API and git at one URL, and webhooks."""

from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.ports.external import Clock
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.faults import Faults
from tests.support.forges.git_server import GitServer
from tests.support.forges.gitlab.actions import Actions
from tests.support.forges.gitlab.api import API_ROOT, ApiApp
from tests.support.forges.gitlab.api_routes import ApiRoutes
from tests.support.forges.gitlab.rules import is_git_allowed, refuse_push
from tests.support.forges.gitlab.webhooks import Webhooks
from tests.support.forges.gitlab.world import TOKEN, Project, World
from tests.support.http_server import Receive, Scope, Send, ThreadedServer

NAME = "gitlab.test"
SECRET = "a webhook's secret"


class FakeGitlab:
    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.world = World(clock or WallClock())
        self.deliveries = Deliveries()
        self.actions = Actions(self.world, Webhooks(self.world, self.deliveries))
        self.git_server = GitServer(root, partial(is_git_allowed, self.world), self.actions.on_push)
        self.git_server.refuse_push = partial(refuse_push, self.world)
        self.git_server.read_only_refs.append("refs/merge-requests")
        self.faults = Faults(self._route)
        self._api = ApiApp(self.world, ApiRoutes(self.world, self.actions))
        self.routes = self._api.handlers
        self.mismatches = self._api.mismatches
        self._server = ThreadedServer(self.faults)
        self.world.web_url = self._server.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._server.stop()
        self.deliveries.close()
        assert not self.mismatches, self.mismatches

    def create_project(self, path: str) -> Project:
        """Creates a project with one commit on its main branch."""
        project = self.world.add_project(self.git_server, path)
        project.origin.commit("main", {"a.txt": "1"})
        return project

    def forge_config(self, **access: Any) -> ForgeConfig:
        url = self.world.web_url
        usual: dict[str, Any] = {"token": TOKEN, "webhook_secret": SECRET}
        return ForgeConfig(name=NAME, web_url=url, api_url=f"{url}{API_ROOT}", **(usual | access))

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The case of a path does not matter for git either; the fake creates all projects in lower case."""
        if scope["path"].startswith(API_ROOT):
            return await self._api(scope, receive, send)
        return await self.git_server({**scope, "path": scope["path"].lower()}, receive, send)
