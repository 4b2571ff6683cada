"""The real server with its own data directory, with one queue for all pull requests, and 64 that share them.

The server reads a head from git once. So all pull requests are submitted and cancelled before anything is measured, and
each measured submission is a new one. In every queue a pull request whose status is never reported occupies the only
slot: the others wait, as most do, and no test branch is built during the measurement.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Self

import httpx2
from msgspec import Struct

from mergeyard.cli import db, token
from tests.bench.load import Load, request
from tests.bench.repositories import BenchRepository
from tests.support.environment import run_command
from tests.support.polling import eventually
from tests.support.server import Server

FILES = 1000
SUBMIT, CANCEL, READ = "submitPullRequest", "cancelPullRequest", "getSubmittedPullRequest"
STATUS = "unit"
SETTINGS: dict[str, Any] = {"requiredStatuses": [STATUS], "concurrency": 1}

Body = dict[str, Any]


class LoadSize(Struct, frozen=True):
    """How many pull requests are submitted in a round, and to how many queues."""

    pull_requests: int = 1024
    repositories: int = 4
    branches_each: int = 16


class BusyServer:
    def __init__(self, folder: Path, size: LoadSize, servers: Sequence[Server] = ()) -> None:
        """Pull requests with the same number have the same commits in every repository, so git reads them once."""
        branches = tuple(f"release-{number}" for number in range(size.branches_each))
        self.folder = folder / "repos"
        owner_folder = self.folder / "acme"
        each = size.branches_each + size.pull_requests // size.repositories
        self.single = BenchRepository(owner_folder / "one.git", FILES, ("main",), 1 + size.pull_requests)
        self.shared = [
            BenchRepository(owner_folder / f"many-{index}.git", FILES, branches, each)
            for index in range(size.repositories)
        ]
        self.repositories = (self.single, *self.shared)
        for repository in self.repositories:
            repository.write()
        self._servers = servers or [Server(folder)]
        config = str(self._servers[0].config)
        run_command(db.app, "migrate", "--config", config)
        arguments = ("create", "--name", "bench", "--scope", "admin", "--config", config)
        self.secret = run_command(token.app, *arguments).strip()
        self._client = httpx2.Client(headers={"x-api-token": self.secret}, timeout=60)

    def __enter__(self) -> Self:
        for server in self._servers:
            server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        for server in self._servers:
            if server.alive:
                server.stop()

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def ports(self) -> list[int]:
        return [int(server.url.rpartition(":")[2]) for server in self._servers]

    def prepare(self, load: Load) -> None:
        for repository in self.repositories:
            for branch in repository.branches:
                self.post("createQueue", {**queue_body(repository, branch), **SETTINGS})
        for body in self.tested_bodies():
            self.post(SUBMIT, body)
        eventually(self._are_all_slots_taken)
        load.requests_per_second([self.port], self.to_one_queue(SUBMIT))
        eventually(self._are_all_ready)
        load.requests_per_second([self.port], self.to_one_queue(CANCEL))

    def tested_bodies(self) -> Iterator[Body]:
        """The first pull request of every queue."""
        return chain.from_iterable(
            request_bodies(repository, range(1, 1 + len(repository.branches))) for repository in self.repositories
        )

    def to_one_queue(self, operation: str) -> list[bytes]:
        return self._requests(operation, request_bodies(self.single, range(2, 1 + self.single.pull_requests)))

    def to_many_queues(self, operation: str) -> list[bytes]:
        lists = [
            request_bodies(repository, range(1 + len(repository.branches), 1 + repository.pull_requests))
            for repository in self.shared
        ]
        return self._requests(operation, chain.from_iterable(zip(*lists, strict=True)))

    def post(self, operation: str, body: Body) -> Any:
        return self._expect_ok(self._client.post(f"{self._servers[0].url}/v1/{operation}", json=body)).json()

    def upload(self, content: bytes) -> None:
        url, headers = f"{self._servers[0].url}/v1/setImpactedTargets", {"content-type": "application/json"}
        self._expect_ok(self._client.post(url, content=content, headers=headers))

    @contextmanager
    def signed_in_client(self) -> Generator[httpx2.Client]:
        """A client that is signed in to the pages."""
        with httpx2.Client(base_url=self._servers[0].url, timeout=60) as client:
            client.post("/sign-in", data={"token": self.secret, "next": "/"})
            yield client

    def metrics(self) -> str:
        return self._expect_ok(self._client.get(f"{self._servers[0].url}/metrics")).text

    def _expect_ok(self, response: httpx2.Response) -> httpx2.Response:
        assert response.status_code == httpx2.codes.OK, response.text
        return response

    def _requests(self, operation: str, bodies: Iterable[Body]) -> list[bytes]:
        return [request(f"/v1/{operation}", self.secret, body) for body in bodies]

    def _are_all_slots_taken(self) -> bool:
        return all(self.post(READ, body)["state"] == "testing" for body in self.tested_bodies())

    def _are_all_ready(self) -> bool:
        enqueued = self.post("getQueue", queue_body(self.single, "main"))["enqueuedPullRequests"]
        return all(entry["state"] != "not_ready" for entry in enqueued)


def queue_body(repository: BenchRepository, branch: str) -> Body:
    return {"repo": {"host": "git.local", "owner": "acme", "name": repository.path.stem}, "targetBranch": branch}


def request_bodies(repository: BenchRepository, numbers: Iterable[int]) -> Iterator[Body]:
    return ({**queue_body(repository, repository.base(number)), "pr": {"number": number}} for number in numbers)
