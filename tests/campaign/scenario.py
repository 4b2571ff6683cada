"""The environment of one round: the whole service in one process, requests over HTTP, and a host with a log."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from starlette.applications import Starlette

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.signing import parse_signing_key
from mergeyard.domain.access import Scope
from mergeyard.ports.git import Identity, Signer
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

    def __init__(self, folder: Path, files: Files, *, heads_first: bool) -> None:
        self._heads_first = heads_first
        signer = make_signer()
        super().__init__(folder, ScenarioSetup(identity=Identity("Mergeyard", "mergeyard@example.org", signer)))
        self.allowed_signers = folder / "allowed-signers"
        self.allowed_signers.write_text(f'* namespaces="git" {signer.public_key}\n')
        self.origin.commit("main", files)
        self.host_log = PushHooks(self.origin, folder / "host", heads_follow=heads_first)
        self._http = BridgeServer(lambda: self.application)

    def _new_host(self) -> PlainHost:
        """With `heads_first`, head branches move in a push of their own, as on GitHub and GitLab."""
        host = PlainHost(self.host_name, self.folder / "repos", self.setup.checks)
        host.moves_heads_first = self._heads_first
        return host

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


def make_signer() -> Signer:
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return parse_signing_key(pem)


@asynccontextmanager
async def a_campaign_scenario(
    folder: Path, files: Files, settings: dict[str, Any], *, heads_first: bool = False
) -> AsyncGenerator[CampaignScenario]:
    scenario = CampaignScenario(folder, files, heads_first=heads_first)
    try:
        await scenario.set_up(settings)
        yield scenario
    finally:
        await scenario.tear_down()
