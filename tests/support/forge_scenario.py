"""Runs the whole service against a fake forge: real HTTP, real git, real webhooks, a manual clock.

async with a_forge_scenario(tmp_path, GithubDriver) as scenario:
    scenario.open(1)
    await scenario.comment(1, "/merge")
    await scenario.passes(1)
    assert scenario.forge.is_merged(1)
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from msgspec.structs import replace
from starlette.applications import Starlette

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.runs import Run
from mergeyard.ports.forge import Host
from mergeyard.service.comments.texts import COMMENT_MARKER
from mergeyard.service.service import Service
from mergeyard.settings import Settings
from mergeyard.wiring import make_application, make_host
from tests.support.forge_drivers.driver import BOT, ForgeComment, ForgeDriver, ForgeStatus, MakeForgeDriver
from tests.support.forges.faults import ALWAYS, RespondsWith
from tests.support.http_server import BridgeServer
from tests.support.repositories import Files, Origin
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, ScenarioSetup

LABEL = "merge-queue"
RARE_POLL_INTERVAL_S = 3600
"""So rare that a scenario learns of changes only from webhooks."""
USUAL_POLL_INTERVAL_S = 20
COMMAND = re.compile(r"/merge\b")
PUBLIC_URL = "http://yard.example"
QUEUE: dict[str, Any] = {"repo": {"host": "git.local", "owner": "acme", "name": "app"}, "targetBranch": "main"}


class ForgeScenario(Scenario):
    forge: ForgeDriver
    application: Starlette

    def __init__(self, folder: Path, setup: ScenarioSetup, make_forge: MakeForgeDriver, poll_seconds: int) -> None:
        self._make_forge = make_forge
        self._poll_seconds = poll_seconds
        super().__init__(folder, setup)
        self.bridge = BridgeServer(lambda: self.application)
        self.webhook_url = f"{self.bridge.url}/hooks/{self.forge.settings.provider}/{KEY.repo.host}"
        self.forge.add_webhook(self.webhook_url)
        self._secret = ""

    def _new_origin(self) -> Origin:
        self.forge = self._make_forge(self.folder / "forge", self.clock)
        return self.forge.origin

    def _new_host(self) -> Host:
        settings = replace(self.forge.settings, poll_seconds=self._poll_seconds)
        return make_host(KEY.repo.host, settings, self.clock)

    def _new_service(self) -> Service:
        service = super()._new_service()
        self.application = make_application(Settings(data_dir=self.folder), service, PUBLIC_URL)
        return service

    async def set_up(self, config: Config | None) -> None:
        await self.service.start()
        _, self._secret = await self.service.tokens.create("scenarios", frozenset(Scope))
        await self.create_queue(config)
        await self.wait_until_idle()

    async def close(self) -> None:
        await self.service.stop()
        await asyncio.to_thread(self.forge.close)
        await asyncio.to_thread(self.bridge.close)

    # Actions of users on the forge.

    def open(self, *numbers: int, base: str = "main", files: Files | None = None) -> None:
        for number in numbers:
            self.forge.open(number, files or {f"file{number}": f"{number}\n"}, base)

    async def open_fork(self, number: int, files: Files | None = None) -> None:
        self.forge.open_fork(number, files or {f"file{number}": f"{number}\n"})
        await self.wait_until_idle()

    def push(self, number: int, files: Files) -> None:
        self.forge.push(number, files)

    async def comment(self, number: int, *texts: str, person: str = "ada") -> None:
        """`/merge` is replaced by the command prefix of the forge."""
        for text in texts:
            self.forge.comment(number, person, COMMAND.sub(self.forge.command_prefix, text))
        await self.wait_until_idle()

    async def label(self, number: int) -> None:
        self.forge.label(number, LABEL)
        await self.wait_until_idle()

    async def unlabel(self, number: int) -> None:
        self.forge.unlabel(number, LABEL)
        await self.wait_until_idle()

    # Requests of users to the queue.

    async def post(self, path: str, *, token: str = "", **members: Any) -> httpx2.Response:
        """Sends an API request about the queue, with a token of all scopes unless another is given."""
        transport = httpx2.ASGITransport(app=self.application)
        async with httpx2.AsyncClient(transport=transport, base_url=PUBLIC_URL) as client:
            return await client.post(
                f"/v1/{path}", json=QUEUE | members, headers={"x-api-token": token or self._secret}
            )

    async def submit_by_api(self, number: int, **members: Any) -> dict[str, Any]:
        response = await self.post("submitPullRequest", pr={"number": number}, **members)
        assert response.status_code == 200, response.text
        await self.wait_until_idle()
        return response.json()

    # Results of CI, reported to the forge.

    async def report_without_waiting(
        self, commit: Sha, state: StatusState = StatusState.SUCCESS, check: str = "unit"
    ) -> None:
        self.forge.report(commit, check, state, f"https://ci.example/{check}")

    # Time and faults.

    async def wait_until_idle(self) -> None:
        """Also waits until all webhooks of the forge have arrived."""
        log = self.forge.deliveries.log
        while True:
            await super().wait_until_idle()
            arrived_count = len(log)
            await asyncio.to_thread(self.forge.deliveries.wait_until_sent)
            if len(log) == arrived_count:
                return

    def fail_all_requests(self) -> None:
        """The forge responds with 503 to every request until the faults are cleared."""
        self.forge.faults.plan(RespondsWith(503), times=ALWAYS)

    async def advance_one_second(self) -> None:
        """A pull request that was just read is read again one second later."""
        await self.advance_time(SECOND)

    async def advance_one_minute(self) -> None:
        await self.advance_time(MINUTE)

    # State.

    def status_comment(self, number: int) -> str:
        """Our comment that shows the state of the pull request."""
        (text,) = [comment.text for comment in self._own_comments(number) if comment.text.startswith(COMMENT_MARKER)]
        return text

    def replies(self, number: int) -> list[str]:
        """Our replies to commands."""
        return [comment.text for comment in self._own_comments(number) if not comment.text.startswith(COMMENT_MARKER)]

    def reactions(self, number: int) -> list[tuple[str, ...]]:
        """Our reactions to each comment of others, in order."""
        return [comment.reactions for comment in self.forge.comments(number) if comment.author != BOT]

    def commit_status(self, number: int) -> ForgeStatus:
        """Our commit status on its head."""
        status = self.forge.bot_status(self.forge.head(number))
        assert status
        return status

    async def run_details(self, number: int) -> dict[str, Any]:
        """The API's details of the run that tests it or tested it last."""
        run = (await self.view(number)).run_id
        response = await self.post("getMergeQueueTestingDetails", testRunId=run)
        assert response.status_code == 200, response.text
        return response.json()

    def landed_subjects(self) -> list[str]:
        """Subjects of all commits on the target branch since the start, oldest first."""
        return self.origin.subjects("main")[2:]

    def run_with(self, number: int) -> Run:
        """The only run in progress that tests it."""
        (run,) = [
            run for run in self.runs() if PullRequestNumber(number) in [member.number for member in run.tested_members]
        ]
        return run

    def poll_count(self) -> int:
        """Number of polls so far: only the poller lists pull requests of all states."""
        return sum("state=all" in call for call in self.forge.faults.calls)

    def api_call_count(self) -> int:
        """Number of requests to the API of the forge so far."""
        paths = [call.partition(" ")[2] for call in self.forge.faults.calls]
        return sum(re.search(self.forge.paths.api, path) is not None for path in paths)

    def _own_comments(self, number: int) -> list[ForgeComment]:
        return [comment for comment in self.forge.comments(number) if comment.author == BOT]


@asynccontextmanager
async def a_forge_scenario(
    folder: Path,
    make_forge: MakeForgeDriver,
    config: Config | None = None,
    setup: ScenarioSetup | None = None,
    poll_seconds: int = RARE_POLL_INTERVAL_S,
) -> AsyncGenerator[ForgeScenario]:
    scenario = ForgeScenario(folder, setup or ScenarioSetup(), make_forge, poll_seconds)
    try:
        await scenario.set_up(config)
        yield scenario
    finally:
        await scenario.close()
