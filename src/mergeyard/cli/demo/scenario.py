"""The demo: authors act, the server tests and merges, and every result is verified at the end."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import assert_never

import httpx2
from rich.console import Console

from mergeyard.adapters.host_plain.editor import PullRequestChange, update_pull_request
from mergeyard.cli.demo import display
from mergeyard.cli.demo.environment import (
    DemoEnvironment,
    DemoServerError,
    log_path,
    start_environment,
    temporary_folder,
)
from mergeyard.cli.demo.sample_repository import (
    QUEUE,
    SAMPLE_PULL_REQUESTS,
    AuthorAction,
    build_later_pull_requests,
    open_sample_pull_request,
)
from mergeyard.cli.demo.verification import Progress, verify_all
from mergeyard.client import AsyncClient, MergeyardError, Settings, Unreachable
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.states import PullRequestState, Reason

QUEUE_SETTINGS: Settings = {
    "batch": True,
    "batching_min_size": 3,
    "batching_max_wait_time_minutes": 0,
    "concurrency": 4,
}
READY_REASONS = {Reason.QUEUE_PAUSED, Reason.DRAFT}


class Scenario:
    """The pending actions of the authors. Whether one is due depends on the progress, never on a clock."""

    def __init__(
        self, admin_client: AsyncClient, author_client: AsyncClient, repository: Path, report: Callable[[str], None]
    ) -> None:
        self._admin_client = admin_client
        self._author_client = author_client
        self._repository = repository
        self._report = report
        self._resumed = False
        self._pending_actions = {
            number: pull_request.action
            for number, pull_request in enumerate(SAMPLE_PULL_REQUESTS, start=1)
            if pull_request.action is not None
        }

    async def start(self) -> None:
        """Submits all pull requests before the first run starts, so that the order does not depend on timing."""
        await self._admin_client.create_queue(QUEUE, **QUEUE_SETTINGS)
        await self._admin_client.update_queue(QUEUE, state="PAUSED")
        for number, pull_request in enumerate(SAMPLE_PULL_REQUESTS, start=1):
            if pull_request.action is not AuthorAction.SUBMIT_URGENTLY:
                await self._author_client.submit(QUEUE, number)

    async def advance(self, progress: Progress) -> None:
        if not self._resumed:
            await self._resume_when_ready(progress)
            return
        for number, action in list(self._pending_actions.items()):
            if is_due(action, number, progress):
                del self._pending_actions[number]
                await self._perform_action(action, number)

    async def _resume_when_ready(self, progress: Progress) -> None:
        if all(submission.reason.code in READY_REASONS for submission in progress.submissions.values()):
            self._resumed = True
            self._report("The queue resumes.")
            await self._admin_client.update_queue(QUEUE, state="RUNNING")

    async def _perform_action(self, action: AuthorAction, number: int) -> None:
        author = SAMPLE_PULL_REQUESTS[number - 1].author
        match action:
            case AuthorAction.SUBMIT_URGENTLY:
                self._report(f"{author} submits #{number} with priority urgent.")
                await self._author_client.submit(QUEUE, number, priority="urgent")
            case AuthorAction.MARK_READY:
                self._report(f"{author} marks #{number} as ready.")
                await update_pull_request(self._repository, PullRequestNumber(number), PullRequestChange(draft=False))
            case AuthorAction.CANCEL:
                self._report(f"{author} sees that the test of #{number} never ends, and removes it from the queue.")
                await self._author_client.cancel(QUEUE, number)
            case _:
                assert_never(action)


def is_due(action: AuthorAction, number: int, progress: Progress) -> bool:
    match action:
        case AuthorAction.SUBMIT_URGENTLY:
            return bool(progress.list_in_state(PullRequestState.MERGED))
        case AuthorAction.CANCEL:
            return progress.submissions[number].state == PullRequestState.TESTING and progress.is_urgent_merged
        case AuthorAction.MARK_READY:
            return bool(progress.list_in_state(PullRequestState.FAILED))
        case _:
            assert_never(action)


class ProgressPoller:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._is_bisection_by_run: dict[str, bool] = {}

    async def poll(self) -> Progress:
        listed = (await self._client.list_pull_requests(QUEUE, take=100)).pull_requests
        for run in {submission.test_run_id for submission in listed if submission.test_run_id is not None}:
            if run not in self._is_bisection_by_run:
                self._is_bisection_by_run[run] = (await self._client.get_run(QUEUE, run)).is_bisection
        bisections = frozenset(run for run, is_bisection in self._is_bisection_by_run.items() if is_bisection)
        return Progress({submission.pr_number: submission for submission in reversed(listed)}, bisections)


POLL_INTERVAL_S = 0.2
SCENARIO_TIMEOUT_S = 120
"""Until all pull requests are concluded; a third of it is enough on a slow machine."""
LOG_WIDTH = 150


async def run(*, exit_when_done: bool, keep: bool) -> bool:
    cancel_on_signal(signal.SIGTERM)
    console = Console(width=None if sys.stdout.isatty() else LOG_WIDTH)
    async with AsyncExitStack() as stack:
        folder = await stack.enter_async_context(temporary_folder(keep=keep))
        environment = await stack.enter_async_context(start_environment(folder))
        display.show_introduction(console, environment)
        admin_client, author_client = [
            await stack.enter_async_context(
                AsyncClient(environment.url, token, transport=httpx2.AsyncHTTPTransport())  # ignores proxies
            )
            for token in (environment.admin_token, environment.author_token)
        ]
        progress = await run_scenario(console, environment, admin_client, author_client)
        succeeded = await verify(console, environment, progress, author_client)
        if not exit_when_done:
            display.show_next_steps(console, environment)
            await continue_until_interrupted(environment, author_client)
            console.print()
    return succeeded


async def run_scenario(
    console: Console, environment: DemoEnvironment, admin_client: AsyncClient, author_client: AsyncClient
) -> Progress:
    progress, poller = Progress({}), ProgressPoller(author_client)
    with display.open_display(console) as screen, suppress(TimeoutError):
        scenario = Scenario(admin_client, author_client, environment.repository, screen.report)
        async with asyncio.timeout(SCENARIO_TIMEOUT_S):
            await scenario.start()
            while not progress.is_finished:
                progress = await poller.poll()
                screen.show(progress)
                await scenario.advance(progress)
                await asyncio.sleep(POLL_INTERVAL_S)
    return progress


async def verify(
    console: Console, environment: DemoEnvironment, progress: Progress, author_client: AsyncClient
) -> bool:
    display.show_outcomes(console, progress)
    succeeded = True
    async for finding in verify_all(progress, author_client, environment.repository, environment.folder):
        display.show_finding(console, finding)
        succeeded = succeeded and not finding.differences
    return succeeded


LATER_GROUP_SIZE = 5
LATER_GROUP_INTERVAL_S = 6


async def continue_until_interrupted(environment: DemoEnvironment, author_client: AsyncClient) -> None:
    more = asyncio.create_task(submit_later_pull_requests(environment.repository, author_client))
    with suppress(asyncio.CancelledError):
        try:
            await environment.server.wait()
        finally:
            more.cancel()
        raise DemoServerError(
            f"The server exited unexpectedly. Its last lines:\n{log_path(environment.folder).read_text()[-2000:]}"
        )


async def submit_later_pull_requests(repository: Path, author_client: AsyncClient) -> None:
    """A user can pause or delete the queue meanwhile, and the next one is submitted all the same."""
    for index, pull_request in enumerate(build_later_pull_requests()):
        number = await open_sample_pull_request(repository, pull_request)
        with suppress(MergeyardError, Unreachable):
            await author_client.submit(QUEUE, number)
        if index % LATER_GROUP_SIZE == 0:
            await asyncio.sleep(LATER_GROUP_INTERVAL_S)


def cancel_on_signal(signal_number: signal.Signals) -> None:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal_number, task.cancel)
