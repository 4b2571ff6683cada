"""Test harness for the API: calls the whole service over HTTP without a socket and records every response.

async with a_desk(tmp_path) as api:
    api.world.open(1)
    await api.submit(1)
    await api.passes(1)
    assert await api.state(1) == "merged"
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Collection, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
import uvicorn
from msgspec import Struct, json
from starlette.applications import Starlette

from mergeyard.api.responses import ERROR_KINDS
from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.service.errors import Code
from mergeyard.settings import Settings
from mergeyard.wiring import make_application
from tests.support.http_server import listen_on_loopback
from tests.support.scenario import REPO, Scenario, ScenarioSetup

PUBLIC_URL = "http://yard.example"
REPOSITORY = {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}
QUEUE: dict[str, Any] = {"repo": REPOSITORY, "targetBranch": "main"}
PROBLEM = {"type", "title", "status", "code", "detail", "requestId", "retryable", "errors"}

T = TypeVar("T")


class ApiHarness:
    def __init__(self, world: Scenario, secret: str) -> None:
        self.world = world
        self.secret = secret
        self.responses: list[httpx2.Response] = []
        self.application = make_application(Settings(), world.service, PUBLIC_URL)
        self.client = http_client(self.application)

    async def call(
        self, endpoint: str, body: Any, *, token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Sends bytes unchanged, also in chunks, and everything else as JSON."""
        content = _encode_body(body)
        sent_headers = {"x-api-token": token or self.secret, "content-type": "application/json", **(headers or {})}
        return await self.client.post(f"/v1/{endpoint}", content=content, headers=sent_headers)

    async def send(
        self, endpoint: str, body: Any, *, token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Makes a call and waits for all work that follows from it."""
        return await self._record(await self.call(endpoint, body, token=token, headers=headers))

    async def get(self, address: str, *, token: str | None = None) -> httpx2.Response:
        return await self._record(await self.client.get(address, headers={"x-api-token": token or self.secret}))

    async def metrics(self, query: str = "", *, token: str | None = None) -> httpx2.Response:
        return await self.get(f"/v1/getMergeQueueMetrics{query}", token=token)

    async def post(
        self, endpoint: str, *, token: str | None = None, key: str | None = None, **members: Any
    ) -> httpx2.Response:
        """Calls an endpoint for the queue on main, unless the members name another."""
        headers = {} if key is None else {"idempotency-key": key}
        return await self.send(endpoint, QUEUE | members, token=token, headers=headers)

    async def ask(self, endpoint: str, **members: Any) -> dict[str, Any]:
        response = await self.post(endpoint, **members)
        assert response.status_code == 200, response.text
        return response.json()

    async def refusal_code(self, endpoint: str, **members: Any) -> str:
        """Returns the error code of a refused request."""
        return code_of(await self.post(endpoint, **members))

    async def _record(self, response: httpx2.Response) -> httpx2.Response:
        self.responses.append(response)
        await self.world.wait_until_idle()
        return response

    async def advance(self, milliseconds: int) -> None:
        """Moves the clock in one step, not from wakeup to wakeup."""
        self.world.clock.move_to(Instant(self.world.clock.now() + milliseconds))
        await self.world.wait_until_idle()

    # Shortcuts

    async def submit(self, *numbers: int, **members: Any) -> None:
        for number in numbers:
            await self.ask("submitPullRequest", pr={"number": number}, **members)

    async def pull_request(self, number: int, **members: Any) -> dict[str, Any]:
        return await self.ask("getSubmittedPullRequest", pr={"number": number}, **members)

    async def state(self, number: int) -> str:
        return (await self.pull_request(number))["state"]

    async def reason(self, number: int) -> str:
        return (await self.pull_request(number))["reason"]["code"]

    async def run(self, number: int) -> dict[str, Any]:
        """Returns the current or last run of a pull request."""
        return await self.ask("getMergeQueueTestingDetails", testRunId=(await self.pull_request(number))["testRunId"])

    async def passes(self, *numbers: int, **members: Any) -> None:
        await self.report("success", *numbers, **members)

    async def fails(self, *numbers: int, **members: Any) -> None:
        await self.report("failure", *numbers, **members)

    async def report(self, state: str, *numbers: int, **members: Any) -> None:
        """Reports a status of the current run that tests exactly these pull requests."""
        report = {"sha": self.world.run_of(*numbers).tip, "context": "unit", "state": state}
        await self.ask("reportCommitStatus", **report | members)

    async def token(self, *scopes: Scope, repos: Collection[Repo] = (), lifetime: int | None = None) -> str:
        _, secret = await self.world.service.tokens.create("tests", scopes, repos, lifetime)
        return secret


def _encode_body(body: Any) -> Any:
    return cast(Any, body) if isinstance(body, bytes | AsyncIterator) else json.encode(body)


def http_client(application: Starlette) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=application), base_url="http://queue")


def problem_of(response: httpx2.Response) -> dict[str, Any]:
    """Checks the shape of an error body and returns it."""
    body = response.json()
    assert set(body) == PROBLEM, response.text
    kind = ERROR_KINDS[Code(body["code"])]
    found = (response.status_code, body["status"], body["title"], body["retryable"], body["type"])
    assert found == (kind.status, kind.status, kind.title, kind.retryable, "about:blank")
    assert body["requestId"] == response.headers["x-request-id"]
    assert body["detail"]
    return body


def code_of(response: httpx2.Response) -> str:
    return problem_of(response)["code"]


@asynccontextmanager
async def api_without_queue(folder: Path, setup: ScenarioSetup | None = None) -> AsyncGenerator[ApiHarness]:
    """Starts the service with a repository and no queue."""
    world = Scenario(folder, setup or ScenarioSetup())
    await world.service.start()
    try:
        _, secret = await world.service.tokens.create("tests", {Scope.ADMIN})
        api = ApiHarness(world, secret)
        async with api.client:
            yield api
    finally:
        await world.service.stop()


@asynccontextmanager
async def api_with_queue(
    folder: Path, setup: ScenarioSetup | None = None, **settings: Any
) -> AsyncGenerator[ApiHarness]:
    """Starts the service with a queue on main."""
    async with api_without_queue(folder, setup) as api:
        await api.ask("createQueue", **settings)
        yield api


SECONDS_TO_WAIT = 60
"""The clock of a shared service does not move, so a request that waits for it gets no response."""


class SharedApi:
    """A service that is shared by several tests, with the event loop that it runs in."""

    def __init__(self, runner: asyncio.Runner, api: ApiHarness) -> None:
        self.api = api
        self._runner = runner

    def wait_for(self, request: Awaitable[T]) -> T:
        async def with_timeout() -> T:
            async with asyncio.timeout(SECONDS_TO_WAIT):
                return await request

        return self._runner.run(with_timeout())


@contextmanager
def shared_api(folder: Path, setup: ScenarioSetup | None = None, **settings: Any) -> Generator[SharedApi]:
    with asyncio.Runner() as runner:
        opened = api_with_queue(folder, setup, **settings)
        api = runner.run(opened.__aenter__())
        try:
            yield SharedApi(runner, api)
        finally:
            runner.run(opened.__aexit__(None, None, None))


class RawConnection(Struct, frozen=True):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def read_response(self) -> tuple[int, dict[str, str], bytes]:
        """Reads the next response: status, headers and body."""
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        return int(first.split()[1]), headers, await self.reader.readexactly(int(headers["content-length"]))


@asynccontextmanager
async def raw_connection(application: Starlette) -> AsyncGenerator[RawConnection]:
    listening = listen_on_loopback()
    server = uvicorn.Server(uvicorn.Config(application, ws="none", log_config=None))
    serving = asyncio.create_task(server.serve([listening]))
    connection = RawConnection(*await asyncio.open_connection(*listening.getsockname()))
    try:
        yield connection
    finally:
        connection.writer.close()
        server.should_exit = True
        await serving
