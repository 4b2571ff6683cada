"""Tells stories through the whole service at a forge: real HTTP, real git, real webhooks, a hand-moved clock.

async with a_forge_scenario(tmp_path, GithubPlace) as scenario:
    scenario.open(1)
    await scenario.say(1, "/merge")
    await scenario.passes(1)
    assert scenario.place.is_merged(1)
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from mergeyard.api.app import Application
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.runs import Run
from mergeyard.domain.statuses import StatusState
from mergeyard.domain.tokens import Scope
from mergeyard.ports.host import Host
from mergeyard.service.service import Service
from mergeyard.service.talking.words import MARK
from mergeyard.settings import Settings
from mergeyard.wiring import make_application, make_host
from tests.support.doorway import Doorway
from tests.support.forges.faults import ALWAYS, Answers
from tests.support.meeting_places.place import US, MakePlace, MeetingPlace, Said, Shown
from tests.support.repositories import Files, Origin
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, Stage

LABEL = "merge-queue"
SELDOM = 3600
"""Whatever a story does not find out by webhooks, it does not find out by itself."""
USUAL = 20
COMMAND = re.compile(r"/merge\b")
YARD = "http://yard.example"
QUEUE: dict[str, Any] = {"repo": {"host": "git.local", "owner": "acme", "name": "app"}, "targetBranch": "main"}


class ForgeScenario(Scenario):
    place: MeetingPlace
    application: Application

    def __init__(self, folder: Path, stage: Stage, make_place: MakePlace, poll_seconds: int) -> None:
        self._make_place = make_place
        self._poll_seconds = poll_seconds
        super().__init__(folder, stage)
        self.doorway = Doorway(lambda: self.application)
        self.hook = f"{self.doorway.url}/hooks/{self.place.settings.provider}/{KEY.repo.host}"
        self.place.tell(self.hook)
        self._secret = ""

    def _new_origin(self) -> Origin:
        self.place = self._make_place(self.folder / "forge", self.clock)
        return self.place.origin

    def _new_host(self) -> Host:
        settings = replace(self.place.settings, poll_seconds=self._poll_seconds)
        return make_host(KEY.repo.host, settings, self.clock)

    def _new_service(self) -> Service:
        service = super()._new_service()
        self.application = make_application(Settings(data_dir=self.folder), service, YARD)
        return service

    async def begin(self, config: Config | None) -> None:
        await self.service.start()
        _, self._secret = await self.service.tokens.create("stories", frozenset(Scope))
        await self.create_queue(config)
        await self.rest()

    async def close(self) -> None:
        await self.service.stop()
        await asyncio.to_thread(self.place.close)
        await asyncio.to_thread(self.doorway.close)

    # What people do at the forge.

    def open(self, *numbers: int, upon: str = "main", files: Files | None = None) -> None:
        for number in numbers:
            self.place.open(number, files or {f"file{number}": f"{number}\n"}, upon)

    async def open_fork(self, number: int, files: Files | None = None) -> None:
        self.place.open_fork(number, files or {f"file{number}": f"{number}\n"})
        await self.rest()

    def push(self, number: int, files: Files) -> None:
        self.place.push(number, files)

    async def say(self, number: int, *texts: str, person: str = "ada") -> None:
        """Commands are given in the words of the place."""
        for text in texts:
            self.place.say(number, person, COMMAND.sub(self.place.word, text))
        await self.rest()

    async def label(self, number: int) -> None:
        self.place.label(number, LABEL)
        await self.rest()

    async def unlabel(self, number: int) -> None:
        self.place.unlabel(number, LABEL)
        await self.rest()

    # What people ask of the queue.

    async def ask(self, path: str, *, token: str = "", **members: Any) -> httpx.Response:
        """Over HTTP, about the one queue; with a token that may do everything, unless another is given."""
        transport = httpx.ASGITransport(app=self.application)
        async with httpx.AsyncClient(transport=transport, base_url=YARD) as client:
            return await client.post(
                f"/v1/{path}", json=QUEUE | members, headers={"x-api-token": token or self._secret}
            )

    async def submit_by_api(self, number: int, **members: Any) -> dict[str, Any]:
        answer = await self.ask("submitPullRequest", pr={"number": number}, **members)
        assert answer.status_code == 200, answer.text
        await self.rest()
        return answer.json()

    # What CI says, at the forge.

    async def hear(self, commit: Sha, state: StatusState = StatusState.SUCCESS, check: str = "unit") -> None:
        self.place.report(commit, check, state, f"https://ci.example/{check}")

    # What time and chance do.

    async def rest(self) -> None:
        """Also until everything has arrived that the forge has sent."""
        log = self.place.deliveries.log
        while True:
            await super().rest()
            arrived = len(log)
            await asyncio.to_thread(self.place.deliveries.settle)
            if len(log) == arrived:
                return

    def break_down(self) -> None:
        """The forge answers nobody any more, until the faults are cleared."""
        self.place.faults.plan(Answers(503), times=ALWAYS)

    async def a_moment_passes(self) -> None:
        """Who was just looked at is looked at again a moment later."""
        await self.time_passes(SECOND)

    async def a_minute_passes(self) -> None:
        await self.time_passes(MINUTE)

    # What there is to see.

    def comment(self, number: int) -> str:
        """The one in which we tell its state."""
        (ours,) = [said.text for said in self._ours(number) if said.text.startswith(MARK)]
        return ours

    def answers(self, number: int) -> list[str]:
        """What we said to those who asked for something."""
        return [said.text for said in self._ours(number) if not said.text.startswith(MARK)]

    def signs(self, number: int) -> list[tuple[str, ...]]:
        """How we reacted to everything that others said, in order."""
        return [said.signs for said in self.place.said(number) if said.author != US]

    def shown(self, number: int) -> Shown:
        """Our status on its head."""
        shown = self.place.shown(self.place.head(number))
        assert shown
        return shown

    async def details(self, number: int) -> dict[str, Any]:
        """Of the run that tests it, or did so last."""
        run = (await self.view(number)).run
        answer = await self.ask("getMergeQueueTestingDetails", testRunId=run)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def landed(self) -> list[str]:
        """The first lines of all that came upon the target since the beginning, oldest first."""
        return self.origin.subjects("main")[2:]

    def run_with(self, number: int) -> Run:
        """The only run in progress that tests it."""
        (run,) = [run for run in self.runs() if PrNumber(number) in [member.number for member in run.tested]]
        return run

    def laps(self) -> int:
        """How often the watch has looked so far: nobody else asks for all pull requests."""
        return sum("state=all" in call for call in self.place.faults.calls)

    def asked(self) -> int:
        """How often the API of the forge was asked so far."""
        addresses = [call.partition(" ")[2] for call in self.place.faults.calls]
        return sum(re.search(self.place.paths.api, address) is not None for address in addresses)

    def _ours(self, number: int) -> list[Said]:
        return [said for said in self.place.said(number) if said.author == US]


@asynccontextmanager
async def a_forge_scenario(
    folder: Path,
    make_place: MakePlace,
    config: Config | None = None,
    stage: Stage | None = None,
    poll_seconds: int = SELDOM,
) -> AsyncGenerator[ForgeScenario]:
    scenario = ForgeScenario(folder, stage or Stage(), make_place, poll_seconds)
    try:
        await scenario.begin(config)
        yield scenario
    finally:
        await scenario.close()
