"""A desk at which the whole service is asked over HTTP, without a socket; every answer is remembered.

async with a_desk(tmp_path) as desk:
    desk.world.open(1)
    await desk.submit(1)
    await desk.passes(1)
    assert await desk.state(1) == "merged"
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Collection, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx
from msgspec import json

from mergeyard.api.app import Application
from mergeyard.api.errors import KINDS
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope
from mergeyard.service.errors import Code
from mergeyard.settings import Settings
from mergeyard.wiring import make_application
from tests.support.scenario import REPO, Scenario, Stage

PUBLIC_URL = "http://yard.example"
REPOSITORY = {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}
QUEUE: dict[str, Any] = {"repo": REPOSITORY, "targetBranch": "main"}
PROBLEM = {"type", "title", "status", "code", "detail", "requestId", "retryable", "errors"}

T = TypeVar("T")


class Desk:
    def __init__(self, world: Scenario, secret: str) -> None:
        self.world = world
        self.secret = secret
        self.answers: list[httpx.Response] = []
        self.application = make_application(Settings(), world.service, PUBLIC_URL)
        self.client = a_client(self.application)

    async def call(
        self, endpoint: str, body: Any, *, token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Bytes go as they are, also in parts; everything else as JSON."""
        content = _written(body)
        above = {"x-api-token": token or self.secret, "content-type": "application/json", **(headers or {})}
        return await self.client.post(f"/v1/{endpoint}", content=content, headers=above)

    async def send(
        self, endpoint: str, body: Any, *, token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """A call, and then all that follows from it."""
        return await self._heard(await self.call(endpoint, body, token=token, headers=headers))

    async def get(self, address: str, *, token: str | None = None) -> httpx.Response:
        return await self._heard(await self.client.get(address, headers={"x-api-token": token or self.secret}))

    async def metrics(self, query: str = "", *, token: str | None = None) -> httpx.Response:
        return await self.get(f"/v1/getMergeQueueMetrics{query}", token=token)

    async def post(
        self, endpoint: str, *, token: str | None = None, key: str | None = None, **members: Any
    ) -> httpx.Response:
        """About the one queue, unless the members name another."""
        headers = {} if key is None else {"idempotency-key": key}
        return await self.send(endpoint, QUEUE | members, token=token, headers=headers)

    async def ask(self, endpoint: str, **members: Any) -> dict[str, Any]:
        response = await self.post(endpoint, **members)
        assert response.status_code == 200, response.text
        return response.json()

    async def refuses(self, endpoint: str, **members: Any) -> str:
        """With which code."""
        return code_of(await self.post(endpoint, **members))

    async def _heard(self, response: httpx.Response) -> httpx.Response:
        self.answers.append(response)
        await self.world.rest()
        return response

    async def let_pass(self, milliseconds: int) -> None:
        """At once, and not alarm by alarm."""
        self.world.clock.move_to(Instant(self.world.clock.now() + milliseconds))
        await self.world.rest()

    # What is asked most, in a word.

    async def submit(self, *numbers: int, **members: Any) -> None:
        for number in numbers:
            await self.ask("submitPullRequest", pr={"number": number}, **members)

    async def pull(self, number: int, **members: Any) -> dict[str, Any]:
        return await self.ask("getSubmittedPullRequest", pr={"number": number}, **members)

    async def state(self, number: int) -> str:
        return (await self.pull(number))["state"]

    async def reason(self, number: int) -> str:
        return (await self.pull(number))["reason"]["code"]

    async def run(self, number: int) -> dict[str, Any]:
        """The run that tests it, or its last."""
        return await self.ask("getMergeQueueTestingDetails", testRunId=(await self.pull(number))["testRunId"])

    async def passes(self, *numbers: int, **members: Any) -> None:
        await self.says("success", *numbers, **members)

    async def fails(self, *numbers: int, **members: Any) -> None:
        await self.says("failure", *numbers, **members)

    async def says(self, state: str, *numbers: int, **members: Any) -> None:
        """About the run in progress that tests exactly these."""
        report = {"sha": self.world.run_of(*numbers).tip, "context": "unit", "state": state}
        await self.ask("reportCommitStatus", **report | members)

    async def token(self, *scopes: Scope, repos: Collection[Repo] = (), lifetime: int | None = None) -> str:
        _, secret = await self.world.service.tokens.create("tests", scopes, repos, lifetime)
        return secret


def _written(body: Any) -> Any:
    return cast(Any, body) if isinstance(body, bytes | AsyncIterator) else json.encode(body)


def a_client(application: Application) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=application), base_url="http://yard")


def problem_of(response: httpx.Response) -> dict[str, Any]:
    """Checks the one shape of an error, and gives it."""
    body = response.json()
    assert set(body) == PROBLEM, response.text
    kind = KINDS[Code(body["code"])]
    told = (response.status_code, body["status"], body["title"], body["retryable"], body["type"])
    assert told == (kind.status, kind.status, kind.title, kind.retryable, "about:blank")
    assert body["requestId"] == response.headers["x-request-id"]
    assert body["detail"]
    return body


def code_of(response: httpx.Response) -> str:
    return problem_of(response)["code"]


@asynccontextmanager
async def an_empty_desk(folder: Path) -> AsyncGenerator[Desk]:
    """A repository, and no queue."""
    world = Scenario(folder, Stage())
    await world.service.start()
    try:
        _, secret = await world.service.tokens.create("tests", {Scope.ADMIN})
        desk = Desk(world, secret)
        async with desk.client:
            yield desk
    finally:
        await world.service.stop()


@asynccontextmanager
async def a_desk(folder: Path, **settings: Any) -> AsyncGenerator[Desk]:
    """With a queue on main."""
    async with an_empty_desk(folder) as desk:
        await desk.ask("createQueue", **settings)
        yield desk


SECONDS_TO_WAIT = 60
"""Nobody moves the clock of a standing desk: whoever waits for it is not answered."""


class StandingDesk:
    """A desk that stays open from test to test, and the loop that it lives in."""

    def __init__(self, runner: asyncio.Runner, desk: Desk) -> None:
        self.desk = desk
        self._runner = runner

    def wait_for(self, asking: Awaitable[T]) -> T:
        async def asked() -> T:
            async with asyncio.timeout(SECONDS_TO_WAIT):
                return await asking

        return self._runner.run(asked())


@contextmanager
def a_standing_desk(folder: Path, **settings: Any) -> Generator[StandingDesk]:
    with asyncio.Runner() as runner:
        opened = a_desk(folder, **settings)
        desk = runner.run(opened.__aenter__())
        try:
            yield StandingDesk(runner, desk)
        finally:
            runner.run(opened.__aexit__(None, None, None))
