"""Asks the server over HTTP, as any program would, and reads its answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
import msgspec

from mergeyard.api import answers
from mergeyard.cli.demo.stage import REPO
from mergeyard.cli.demo.teahouse import BRANCH

PAUSES = (0.2, 1, 3)
"""Seconds to wait before asking again, when the server says that it may help."""
QUEUE = {"repo": {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}, "targetBranch": BRANCH}

Answer = TypeVar("Answer")
Stay = answers.SubmittedPullRequest


class Refused(Exception):
    """The server said no, and why."""


class Asking:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def create_queue(self, **settings: object) -> None:
        await self._ask("createQueue", answers.Queue, settings)

    async def set_state(self, state: str) -> None:
        await self._ask("updateQueue", answers.Queue, {"state": state})

    async def submit(self, number: int, **more: object) -> None:
        await self._ask("submitPullRequest", Stay, {"pr": {"number": number}, **more})

    async def cancel(self, number: int) -> None:
        await self._ask("cancelPullRequest", Stay, {"pr": {"number": number}})

    async def stays(self) -> dict[int, Stay]:
        """Everybody who was submitted, by number."""
        listed = await self._ask("listPullRequests", answers.PullRequests, {"take": 100})
        return {stay.pr_number: stay for stay in reversed(listed.pull_requests)}

    async def run(self, run: str) -> answers.RunDetails:
        return await self._ask("getMergeQueueTestingDetails", answers.RunDetails, {"testRunId": run})

    async def _ask(self, endpoint: str, kind: type[Answer], body: dict[str, Any]) -> Answer:
        answer = await self._post(endpoint, body)
        for pause in PAUSES:
            if answer.is_success or not answer.json()["retryable"]:
                break
            await asyncio.sleep(pause)
            answer = await self._post(endpoint, body)
        if not answer.is_success:
            raise Refused(f"The server refused {endpoint}: {answer.text}")
        return msgspec.json.decode(answer.content, type=kind)

    async def _post(self, endpoint: str, body: dict[str, Any]) -> httpx.Response:
        try:
            return await self._http.post(f"/v1/{endpoint}", json=QUEUE | body)
        except httpx.TransportError as error:
            raise Refused(f"The server did not answer {endpoint}: {error!r}") from error


@asynccontextmanager
async def asking(url: str, token: str) -> AsyncGenerator[Asking]:
    async with httpx.AsyncClient(base_url=url, headers={"x-api-token": token}, trust_env=False, timeout=30) as http:
        yield Asking(http)
