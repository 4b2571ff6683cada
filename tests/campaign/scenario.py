"""The environment of one round: the whole service in one process, requests over HTTP, and a host with a log."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from starlette.applications import Starlette

from mergeyard.domain.access import Scope
from mergeyard.service.service import Service
from mergeyard.settings import Settings
from mergeyard.wiring import make_application
from tests.campaign.evidence import DetailedEvidence
from tests.campaign.push_hooks import PushHooks
from tests.support.api_client import ApiClient
from tests.support.ci import Ci
from tests.support.http_server import BridgeServer
from tests.support.repositories import Files
from tests.support.scenario import Scenario, ScenarioSetup

PUBLIC_URL = "http://mergeyard.example"
P = ParamSpec("P")
T = TypeVar("T")


class CampaignScenario(Scenario):
    application: Starlette
    api: ApiClient
    ci: Ci
    evidence: DetailedEvidence

    def __init__(self, folder: Path, files: Files) -> None:
        super().__init__(folder, ScenarioSetup())
        self.origin.commit("main", files)
        self.host_log = PushHooks(self.origin, folder / "host")
        self._http = BridgeServer(lambda: self.application)

    def _new_service(self) -> Service:
        service = super()._new_service()
        self.application = make_application(Settings(data_dir=self.folder), service, PUBLIC_URL)
        return service

    async def set_up(self, settings: dict[str, Any]) -> None:
        await self.service.start()
        _, secret = await self.service.tokens.create("campaign", frozenset({Scope.ADMIN}))
        self.api = ApiClient(self._http, secret, self.host_log)
        self.ci = Ci(self.origin, self.host_log, self.api)
        self.evidence = DetailedEvidence(self.origin, self.host_log, self.api, self.ci)
        await self.post("createQueue", **settings)

    async def post(self, path: str, **members: Any) -> dict[str, Any]:
        """Sends a request over HTTP, then waits until all work that follows from it is done."""
        return await self.run_in_thread(self.api.post, path, **members)

    async def run_in_thread(self, act: Callable[P, T], *arguments: P.args, **members: P.kwargs) -> T:
        """Calls a function in a thread: an HTTP client blocks until the event loop has answered."""
        result = await asyncio.to_thread(act, *arguments, **members)
        await self.wait_until_idle()
        return result

    async def report_result(self, commit: Any) -> None:
        """The CI tests a commit and reports the result."""
        await self.run_in_thread(self.ci.report, commit, self.ci.evaluate(commit))

    async def tear_down(self) -> None:
        await self.service.stop()
        self.api.close()
        self._http.close()


@asynccontextmanager
async def a_campaign_scenario(folder: Path, files: Files, settings: dict[str, Any]) -> AsyncGenerator[CampaignScenario]:
    scenario = CampaignScenario(folder, files)
    try:
        await scenario.set_up(settings)
        yield scenario
    finally:
        await scenario.tear_down()
