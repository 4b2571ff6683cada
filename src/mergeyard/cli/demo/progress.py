"""The demo's client of the server, and the progress of its pull requests."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any, TypeVar

import httpx
import msgspec
from msgspec import Struct

from mergeyard.api import response_schemas
from mergeyard.cli.demo.sample_repository import REPO, SAMPLE_PULL_REQUESTS, TARGET_BRANCH
from mergeyard.domain.states import TERMINAL_STATES, PullRequestState

RETRY_PAUSES_S = (0.2, 1, 3)
"""Pauses before retrying requests that the server reports as retryable."""
QUEUE_NAME = {"repo": {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}, "targetBranch": TARGET_BRANCH}

Response = TypeVar("Response")
Submission = response_schemas.SubmittedPullRequest


class RequestFailed(Exception):
    """The server refused a request, or did not respond."""


class DemoClient:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def create_queue(self, **settings: object) -> None:
        await self._call("createQueue", response_schemas.QueueBase, settings)

    async def set_state(self, state: str) -> None:
        await self._call("updateQueue", response_schemas.QueueBase, {"state": state})

    async def submit(self, number: int, **options: object) -> None:
        await self._call("submitPullRequest", Submission, {"pr": {"number": number}, **options})

    async def cancel(self, number: int) -> None:
        await self._call("cancelPullRequest", Submission, {"pr": {"number": number}})

    async def list_submissions(self) -> dict[int, Submission]:
        """All submitted pull requests, by number."""
        response = await self._call("listPullRequests", response_schemas.PullRequests, {"take": 100})
        return {submission.pr_number: submission for submission in reversed(response.pull_requests)}

    async def get_run(self, run_id: str) -> response_schemas.RunDetails:
        return await self._call("getMergeQueueTestingDetails", response_schemas.RunDetails, {"testRunId": run_id})

    async def _call(self, endpoint: str, response_type: type[Response], body: dict[str, Any]) -> Response:
        response = await self._post(endpoint, body)
        for pause in RETRY_PAUSES_S:
            if response.is_success or not response.json()["retryable"]:
                break
            await asyncio.sleep(pause)
            response = await self._post(endpoint, body)
        if not response.is_success:
            raise RequestFailed(f"The server refused {endpoint}: {response.text}")
        return msgspec.json.decode(response.content, type=response_type)

    async def _post(self, endpoint: str, body: dict[str, Any]) -> httpx.Response:
        try:
            return await self._http.post(f"/v1/{endpoint}", json=QUEUE_NAME | body)
        except httpx.TransportError as error:
            raise RequestFailed(f"The server did not respond to {endpoint}: {error!r}") from error


@asynccontextmanager
async def open_client(url: str, token: str) -> AsyncGenerator[DemoClient]:
    async with httpx.AsyncClient(base_url=url, headers={"x-api-token": token}, trust_env=False, timeout=30) as http:
        yield DemoClient(http)


STATES_UNDER_TEST = frozenset(
    {PullRequestState.TESTING, PullRequestState.TESTS_PASSED, PullRequestState.PENDING_FAILURE}
)

RunGroup = tuple[Submission, ...]
"""Submissions tested together by one run."""


class Progress(Struct, frozen=True):
    submissions: dict[int, Submission]
    bisection_run_ids: frozenset[str] = frozenset()
    """The ids of bisection runs."""

    @property
    def concluded_count(self) -> int:
        return sum(submission.state in TERMINAL_STATES for submission in self.submissions.values())

    @property
    def is_finished(self) -> bool:
        return self.concluded_count == len(SAMPLE_PULL_REQUESTS)

    @property
    def is_urgent_merged(self) -> bool:
        return any(submission.skip_the_line for submission in self.list_in_state(PullRequestState.MERGED))

    def list_in_state(self, state: PullRequestState) -> RunGroup:
        return tuple(submission for submission in self.submissions.values() if submission.state is state)

    def list_groups(self) -> list[RunGroup]:
        """Submissions under test: active batches in order, then those being bisected."""
        under_test = [submission for submission in self.submissions.values() if submission.state in STATES_UNDER_TEST]
        under_test.sort(key=lambda submission: submission.position or 0)
        return [
            tuple(group)
            for _, group in groupby(under_test, key=lambda submission: (submission.test_run_id, submission.state))
        ]

    def is_bisection(self, group: RunGroup) -> bool:
        return group[0].test_run_id in self.bisection_run_ids


class ProgressPoller:
    def __init__(self, client: DemoClient) -> None:
        self._client = client
        self._is_bisection_by_run: dict[str, bool] = {}
        """Whether each known run is a bisection."""

    async def poll(self) -> Progress:
        stays = await self._client.list_submissions()
        for run in {submission.test_run_id for submission in stays.values()} - self._is_bisection_by_run.keys():
            if run is not None:
                self._is_bisection_by_run[run] = (await self._client.get_run(run)).is_bisection
        return Progress(
            stays, frozenset(run for run, is_bisection in self._is_bisection_by_run.items() if is_bisection)
        )
