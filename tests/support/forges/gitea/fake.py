"""A Gitea that only looks like one: real repositories behind real HTTP, and faults to switch on.

with FakeGitea(tmp_path) as gitea:
    people = People(gitea.url, gitea.admin_token)
    gitea.faults.plan(Answers(503), "/pulls/1")
"""

from pathlib import Path
from typing import Self

from mergeyard.adapters.clock import WallClock
from mergeyard.ports.clock import Clock
from tests.support.forges.faults import Faults
from tests.support.forges.git_rooms import GitRooms
from tests.support.forges.gitea.acts import Acts
from tests.support.forges.gitea.door import ROOT, Door
from tests.support.forges.gitea.letters import Letters
from tests.support.forges.gitea.nouns import Pull
from tests.support.forges.gitea.showing import Showing
from tests.support.forges.gitea.world import World
from tests.support.forges.serving import Receive, Scope, Send, Serving

ADMIN = "admin-of-tests"


class FakeGitea:
    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.world = World(clock or WallClock())
        showing = Showing(self.world)
        letters = Letters(showing)
        self.deliveries = letters.deliveries
        self.acts = Acts(self.world, letters)
        self.world.rooms = GitRooms(root / "forge", self.world.comes_in, self.acts.pushed)
        self._door = Door(self.world, self.acts, showing)
        self.faults = Faults(self._rooms_and_door)
        admin = self.world.make_account(ADMIN, "", site_admin=True)
        self.admin_token = self.world.make_token(admin, "all")
        self._serving: Serving | None = None

    def __enter__(self) -> Self:
        self._serving = Serving(self.faults)
        self.world.url = self.url
        return self

    def __exit__(self, *_: object) -> None:
        assert self._serving
        self._serving.stop()
        self.deliveries.close()

    @property
    def url(self) -> str:
        assert self._serving
        return self._serving.url

    def pull(self, path: str, number: int) -> Pull:
        """Where knobs are."""
        return self.world.repositories[path].pulls[number]

    async def _rooms_and_door(self, scope: Scope, receive: Receive, send: Send) -> None:
        to = self._door if scope["path"].startswith(ROOT) else self.world.rooms
        await to(scope, receive, send)
