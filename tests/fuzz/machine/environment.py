"""The environment of the stateful test: one service for many examples, on either store, with a manual clock.

Each example gets two repositories of its own, with a few pull requests in each.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from msgspec import Struct

from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo, Sha
from tests.contract.api.harness import ApiHarness
from tests.support.postgres import shared_server
from tests.support.repositories import Origin
from tests.support.scenario import CONFIG, Scenario, ScenarioSetup

T = TypeVar("T")
PULL_REQUEST_NUMBERS = range(1, 6)
BRANCHES = ("main", "release")
POLL_INTERVAL_MS = 2_000


class OnPostgres(Scenario):
    def _new_store(self) -> Any:
        return PostgresStore(shared_server().fresh_database())


STORES: dict[str, type[Scenario]] = {"sqlite": Scenario, "postgres": OnPostgres}


class FuzzRepository(Struct, frozen=True):
    """A repository of one example."""

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


class FuzzEnvironment:
    def __init__(self, runner: asyncio.Runner, world: Scenario, api: ApiHarness) -> None:
        self.world = world
        self.api = api
        self._runner = runner
        self._numbers = count(1)
        self._template = _template(world.folder / "template.git")

    def wait_for(self, awaitable: Awaitable[T]) -> T:
        async def wait() -> T:
            return await awaitable

        return self._runner.run(wait())

    def new_repository(self) -> FuzzRepository:
        name = f"app{next(self._numbers)}"
        path = self.world.folder / "repos" / "acme" / f"{name}.git"
        shutil.copytree(self._template.path, path)
        return FuzzRepository(name, Origin(path))

    def new_token(self, *scopes: Scope, repository: FuzzRepository | None = None) -> str:
        return self.wait_for(self.api.token(*scopes, repos=() if repository is None else (repository.repo,)))

    def revoked_token(self) -> str:
        tokens = self.world.service.tokens
        token, secret = self.wait_for(tokens.create("tests", {Scope.ADMIN}, (), None))
        self.wait_for(tokens.revoke(token.id))
        return secret

    def post(self, endpoint: str, body: Any, token: str, headers: Mapping[str, str]) -> httpx2.Response:
        """Sends a request and waits until all work that follows from it is done."""
        return self.wait_for(self.api.send(endpoint, body, token=token, headers=headers))

    def advance_time(self, milliseconds: int) -> None:
        """Moves the clock at once, then lets one poll interval pass."""
        self.wait_for(self.api.advance(milliseconds))
        self.wait_for(self.world.advance_time(POLL_INTERVAL_MS))


def _template(path: Path) -> Origin:
    origin = Origin.create(path)
    origin.commit("main", {".mergeyard.toml": CONFIG, "README": "hello\n"})
    origin.branch("release", base="main")
    for number in PULL_REQUEST_NUMBERS:
        origin.branch(f"topic{number}", base="main", files={f"file{number}": f"{number}\n"})
        write_pull_request(origin, number)
    return origin


def write_pull_request(origin: Origin, number: int, **changes: object) -> None:
    """Writes the pull request's head and metadata, with changes."""
    metadata = {
        "title": f"Change {number}",
        "author": "Ada",
        "base": "main",
        "branch": f"topic{number}",
        "draft": False,
    }
    encoded = httpx2.Response(200, json=metadata | {"state": "open"} | changes).content
    origin.set_ref(f"refs/pull/{number}/head", origin.tip(f"topic{number}"))
    origin.set_ref(f"refs/pull/{number}/meta", origin.blob(encoded))


@contextmanager
def a_fuzz_environment(store: str, folder: Path) -> Generator[FuzzEnvironment]:
    with asyncio.Runner() as runner:
        world = STORES[store](folder, ScenarioSetup(poll_interval_ms=POLL_INTERVAL_MS))
        runner.run(world.service.start())
        _, secret = runner.run(world.service.tokens.create("tests", {Scope.ADMIN}))
        try:
            yield FuzzEnvironment(runner, world, ApiHarness(world, secret))
        finally:
            runner.run(world.service.stop())
