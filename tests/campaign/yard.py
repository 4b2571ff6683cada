"""A yard for one round: the whole service in one process, asked over HTTP, and a host that remembers everything."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from mergeyard.api.app import Application
from mergeyard.domain.tokens import Scope
from mergeyard.service.service import Service
from mergeyard.settings import Settings
from mergeyard.wiring import make_application
from tests.campaign.ambushes import Ambushes
from tests.campaign.evidence import DetailedEvidence
from tests.support.api import Api
from tests.support.ci import Ci
from tests.support.doorway import Doorway
from tests.support.repositories import Files
from tests.support.scenario import Scenario, Stage

PUBLIC_URL = "http://yard.example"
P = ParamSpec("P")
T = TypeVar("T")


class CampaignYard(Scenario):
    application: Application
    api: Api
    ci: Ci
    evidence: DetailedEvidence

    def __init__(self, folder: Path, files: Files) -> None:
        super().__init__(folder, Stage())
        self.origin.commit("main", files)
        self.host_log = Ambushes(self.origin, folder / "host")
        self._doorway = Doorway(lambda: self.application)

    def _new_service(self) -> Service:
        service = super()._new_service()
        self.application = make_application(Settings(data_dir=self.folder), service, PUBLIC_URL)
        return service

    async def begin(self, settings: dict[str, Any]) -> None:
        await self.service.start()
        _, secret = await self.service.tokens.create("campaign", frozenset({Scope.ADMIN}))
        self.api = Api(self._doorway, secret, self.host_log)
        self.ci = Ci(self.origin, self.host_log, self.api)
        self.evidence = DetailedEvidence(self.origin, self.host_log, self.api, self.ci)
        await self.ask("createQueue", **settings)

    async def ask(self, path: str, **members: Any) -> dict[str, Any]:
        """Over HTTP, and then until all that follows from it is done."""
        return await self.apart(self.api.post, path, **members)

    async def apart(self, act: Callable[P, T], *arguments: P.args, **members: P.kwargs) -> T:
        """In a thread, for whoever asks over HTTP waits for the event loop."""
        done = await asyncio.to_thread(act, *arguments, **members)
        await self.rest()
        return done

    async def judge(self, tip: Any) -> None:
        """The CI looks at what it was given, and says what it thinks."""
        await self.apart(self.ci.report, tip, self.ci.verdict(tip))

    async def end(self) -> None:
        await self.service.stop()
        self.api.close()
        self._doorway.close()


@asynccontextmanager
async def a_campaign_yard(folder: Path, files: Files, settings: dict[str, Any]) -> AsyncGenerator[CampaignYard]:
    yard = CampaignYard(folder, files)
    try:
        await yard.begin(settings)
        yield yard
    finally:
        await yard.end()
