"""The real server on a data directory of its own, with one queue that takes everything, and 64 that share it.

What git says about a head is learned once: so all are submitted and cancelled before anything is measured, and each
submission that is measured is a new stay. In every queue the only slot is taken by a pull request whose status nobody
reports: the others wait, as most do, and no test branch is built meanwhile.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Self

import httpx
from msgspec import Struct

from mergeyard.cli import db, token
from tests.bench.grounds import Grounds
from tests.bench.load import Load, request
from tests.support.patience import eventually
from tests.support.premises import command
from tests.support.server import Server

FILES = 1000
STATUS = "unit"
SETTINGS: dict[str, Any] = {"requiredStatuses": [STATUS], "concurrency": 1}

Body = dict[str, Any]


class Crowd(Struct, frozen=True):
    """How many pull requests are submitted in a round, and over how many queues they are spread."""

    pulls: int = 1024
    repositories: int = 4
    branches_each: int = 16


class BusyServer:
    def __init__(self, folder: Path, crowd: Crowd, servers: Sequence[Server] = ()) -> None:
        """Pull requests with the same number are the same commits in every repository, so git is asked once for all."""
        branches = tuple(f"release-{number}" for number in range(crowd.branches_each))
        self.repositories = folder / "repos"
        repos = self.repositories / "acme"
        each = crowd.branches_each + crowd.pulls // crowd.repositories
        self.one = Grounds(repos / "one.git", FILES, ("main",), 1 + crowd.pulls)
        self.many = [Grounds(repos / f"many-{at}.git", FILES, branches, each) for at in range(crowd.repositories)]
        for grounds in (self.one, *self.many):
            grounds.write()
        self._servers = servers or [Server(folder)]
        config = str(self._servers[0].config)
        command(db.app, "migrate", "--config", config)
        words = ("create", "--name", "bench", "--scope", "admin", "--config", config)
        self.secret = command(token.app, *words).strip()
        self._client = httpx.Client(headers={"x-api-token": self.secret}, timeout=60)

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
        for grounds in (self.one, *self.many):
            for branch in grounds.branches:
                self.post("createQueue", {**queue(grounds, branch), **SETTINGS})
        for body in self.under_test():
            self.post("submitPullRequest", body)
        eventually(self._all_slots_are_taken)
        load.pace([self.port], self.to_one_queue("submitPullRequest"))
        eventually(self._all_are_known)
        load.pace([self.port], self.to_one_queue("cancelPullRequest"))

    def under_test(self) -> Iterator[Body]:
        """The first pull request of every queue."""
        return chain.from_iterable(
            asked(grounds, range(1, 1 + len(grounds.branches))) for grounds in (self.one, *self.many)
        )

    def to_one_queue(self, operation: str) -> list[bytes]:
        return self._requests(operation, asked(self.one, range(2, 1 + self.one.pulls)))

    def to_many_queues(self, operation: str) -> list[bytes]:
        lists = [asked(grounds, range(1 + len(grounds.branches), 1 + grounds.pulls)) for grounds in self.many]
        return self._requests(operation, chain.from_iterable(zip(*lists, strict=True)))

    def post(self, operation: str, body: Body) -> Any:
        return self._fine(self._client.post(f"{self._servers[0].url}/v1/{operation}", json=body)).json()

    def upload(self, content: bytes) -> None:
        address, headers = f"{self._servers[0].url}/v1/setImpactedTargets", {"content-type": "application/json"}
        self._fine(self._client.post(address, content=content, headers=headers))

    @contextmanager
    def visitor(self) -> Generator[httpx.Client]:
        """Somebody who is signed in to the pages."""
        with httpx.Client(base_url=self._servers[0].url, timeout=60) as client:
            client.post("/sign-in", data={"token": self.secret, "next": "/"})
            yield client

    def metrics(self) -> str:
        return self._fine(self._client.get(f"{self._servers[0].url}/metrics")).text

    def _fine(self, response: httpx.Response) -> httpx.Response:
        assert response.status_code == httpx.codes.OK, response.text
        return response

    def _requests(self, operation: str, bodies: Iterable[Body]) -> list[bytes]:
        return [request(f"/v1/{operation}", self.secret, body) for body in bodies]

    def _all_slots_are_taken(self) -> bool:
        return all(self.post("getSubmittedPullRequest", body)["state"] == "testing" for body in self.under_test())

    def _all_are_known(self) -> bool:
        enqueued = self.post("getQueue", queue(self.one, "main"))["enqueuedPullRequests"]
        return all(pull["state"] != "not_ready" for pull in enqueued)


def queue(grounds: Grounds, branch: str) -> Body:
    return {"repo": {"host": "git.local", "owner": "acme", "name": grounds.path.stem}, "targetBranch": branch}


def asked(grounds: Grounds, numbers: Iterable[int]) -> Iterator[Body]:
    return ({**queue(grounds, grounds.base(number)), "pr": {"number": number}} for number in numbers)
