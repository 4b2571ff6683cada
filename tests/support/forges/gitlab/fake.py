"""Puts a fake GitLab together and serves it: API and git at one address, webhooks on their way."""

from pathlib import Path
from types import TracebackType
from typing import Self

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.access import Access
from mergeyard.ports.clock import Clock
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.faults import Faults
from tests.support.forges.git_rooms import GitRooms
from tests.support.forges.gitlab.acts import Acts
from tests.support.forges.gitlab.desk import Desk
from tests.support.forges.gitlab.door import ROOT, Door
from tests.support.forges.gitlab.letters import Letters
from tests.support.forges.gitlab.nouns import Project
from tests.support.forges.gitlab.world import TOKEN, World
from tests.support.forges.serving import Receive, Scope, Send, Serving

NAME = "gitlab.test"
SECRET = "a webhook's secret"


class FakeGitlab:
    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.world = World(clock or WallClock())
        self.deliveries = Deliveries()
        self.acts = Acts(self.world, Letters(self.world, self.deliveries))
        self.rooms = GitRooms(root, self.world.may, self.acts.pushed)
        self.rooms.untouchable.append("refs/merge-requests")
        self.faults = Faults(self._answer)
        self._door = Door(self.world, Desk(self.world, self.acts))
        self._serving = Serving(self.faults)
        self.world.pages = self._serving.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._serving.stop()
        self.deliveries.close()

    def project(self, path: str) -> Project:
        """A new one, with one commit on its main branch."""
        project = self.world.add_project(self.rooms, path)
        project.origin.commit("main", {"a.txt": "1"})
        return project

    def access(self, *, token: str = TOKEN, webhook_secret: str | None = SECRET) -> Access:
        url = self.world.pages
        return Access(name=NAME, pages=url, api=f"{url}{ROOT}", token=token, webhook_secret=webhook_secret)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        room = self._door if scope["path"].startswith(ROOT) else self.rooms
        await room(scope, receive, send)
