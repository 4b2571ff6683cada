"""Where clients play: one service for many stories, on either store, with a clock that is moved by hand.

Each story gets two repositories of its own, with a few pull requests in each.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import httpx
from msgspec import Struct

from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope
from tests.contract.api.desk import Desk
from tests.support.postgres import shared_server
from tests.support.repositories import Origin
from tests.support.scenario import CONFIG, Scenario, Stage

T = TypeVar("T")
PULLS = range(1, 6)
BRANCHES = ("main", "release")
LOOK_EVERY = 2_000


class OnPostgres(Scenario):
    def _new_store(self) -> Any:
        return PostgresStore(shared_server().fresh_database())


STORES: dict[str, type[Scenario]] = {"sqlite": Scenario, "postgres": OnPostgres}


class Place(Struct, frozen=True):
    """A repository of a story."""

    name: str
    origin: Origin

    @property
    def repo(self) -> Repo:
        return Repo("git.local", "acme", self.name)

    @property
    def reference(self) -> dict[str, str]:
        return {"host": "git.local", "owner": "acme", "name": self.name}

    def tip(self, branch: str) -> Sha:
        return self.origin.tip(branch)


class Grounds:
    def __init__(self, runner: asyncio.Runner, world: Scenario, desk: Desk) -> None:
        self.world = world
        self.desk = desk
        self._runner = runner
        self._numbers = count(1)
        self._template = _template(world.folder / "template.git")

    def wait_for(self, asking: Awaitable[T]) -> T:
        async def asked() -> T:
            return await asking

        return self._runner.run(asked())

    def new_place(self) -> Place:
        name = f"app{next(self._numbers)}"
        path = self.world.folder / "repos" / "acme" / f"{name}.git"
        shutil.copytree(self._template.path, path)
        return Place(name, Origin(path))

    def new_token(self, *scopes: Scope, place: Place | None = None) -> str:
        return self.wait_for(self.desk.token(*scopes, repos=() if place is None else (place.repo,)))

    def revoked_token(self) -> str:
        tokens = self.world.service.tokens
        token, secret = self.wait_for(tokens.create("tests", {Scope.ADMIN}, (), None))
        self.wait_for(tokens.revoke(token.id))
        return secret

    def ask(self, endpoint: str, body: Any, token: str, headers: Mapping[str, str]) -> httpx.Response:
        """And then all that follows from it."""
        return self.wait_for(self.desk.send(endpoint, body, token=token, headers=headers))

    def time_passes(self, milliseconds: int) -> None:
        """At once, and then a little while in which everybody looks around."""
        self.wait_for(self.desk.let_pass(milliseconds))
        self.wait_for(self.world.time_passes(LOOK_EVERY))


def _template(path: Path) -> Origin:
    origin = Origin.made(path)
    origin.commit("main", {".mergeyard.toml": CONFIG, "README": "hello\n"})
    origin.branch("release", upon="main")
    for number in PULLS:
        origin.branch(f"topic{number}", upon="main", files={f"file{number}": f"{number}\n"})
        show(origin, number)
    return origin


def show(origin: Origin, number: int, **changes: object) -> None:
    """As a pull request of this branch, whose facts are others now."""
    facts = {"title": f"Change {number}", "author": "Ada", "base": "main", "branch": f"topic{number}", "draft": False}
    told = httpx.Response(200, json=facts | {"state": "open"} | changes).content
    origin.set(f"refs/pull/{number}/head", origin.tip(f"topic{number}"))
    origin.set(f"refs/pull/{number}/meta", origin.blob(told))


@contextmanager
def grounds(store: str, folder: Path) -> Generator[Grounds]:
    with asyncio.Runner() as runner:
        world = STORES[store](folder, Stage(look_every=LOOK_EVERY))
        runner.run(world.service.start())
        _, secret = runner.run(world.service.tokens.create("tests", {Scope.ADMIN}))
        try:
            yield Grounds(runner, world, Desk(world, secret))
        finally:
            runner.run(world.service.stop())
