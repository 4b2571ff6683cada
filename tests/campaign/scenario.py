"""The environment of one round: the whole service in one process, requests over HTTP, and a host with a log."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec import Struct
from starlette.applications import Starlette

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.signing import parse_signing_key
from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Sha
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import RunStatus
from mergeyard.ports.git import Identity, Signer
from mergeyard.service.service import Service
from mergeyard.settings import Settings
from mergeyard.wiring import make_application
from tests.campaign.evidence import DetailedEvidence
from tests.campaign.push_hooks import PushHooks
from tests.support.api_client import QUEUE, ApiClient
from tests.support.ci import Ci
from tests.support.http_server import BridgeServer
from tests.support.repositories import Files
from tests.support.scenario import SECOND, Scenario, ScenarioSetup

PATIENCE_S = 5
"""Real time, after which a request that has no response must be waiting for the time of the service."""
PUBLIC_URL = "http://mergeyard.example"
P = ParamSpec("P")
T = TypeVar("T")


async def wait_for_response(act: Callable[[], T]) -> T:
    return await asyncio.to_thread(act)


class QueueSite(Struct, frozen=True):
    """One queue, as its users see it, and what is known about it."""

    api: ApiClient
    ci: Ci
    evidence: DetailedEvidence


class CampaignScenario(Scenario):
    application: Starlette
    sites: dict[str, QueueSite]
    """By target branch; that of `main` first."""

    def __init__(self, folder: Path, files: Files, *, heads_first: bool) -> None:
        self._heads_first = heads_first
        signer = make_signer()
        self._passed = defaultdict[Sha, set[str]](set)
        """A status counts for the queues of all branches."""
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
        _, self._secret = await self.service.tokens.create("campaign", frozenset({Scope.ADMIN}))
        self.sites = {}
        await self.add_queue("main", settings)

    async def add_queue(self, branch: str, settings: dict[str, Any]) -> None:
        api = ApiClient(self._http, self._secret, self.host_log, QUEUE | {"targetBranch": branch})
        ci = Ci(self.origin, self.host_log, api)
        ci.passed = self._passed
        self.sites[branch] = QueueSite(api, ci, DetailedEvidence(self.origin, self.host_log, api, ci))
        everything = [site.evidence for site in self.sites.values()]
        for evidence in everything:
            evidence.other_queues = [other for other in everything if other is not evidence]
        await self.post("createQueue", branch, **settings)

    @property
    def targets(self) -> list[str]:
        """The branches that have a queue."""
        return list(self.sites)

    async def post(self, path: str, branch: str = "main", **members: Any) -> dict[str, Any]:
        """Sends a request over HTTP, then waits until all work that follows from it is done."""
        return await self.run_in_thread(self.sites[branch].api.post, path, **members)

    @property
    def queues(self) -> dict[str, Queue]:
        """By target branch."""
        return {queue_actor.key.branch: queue_actor.queue for queue_actor in self.service.registry}

    def all_runs(self) -> list[tuple[str, Run]]:
        """The runs in progress of all queues, with their target branches."""
        runs = ((branch, run) for branch, queue in self.queues.items() for run in queue.runs.values())
        return [(branch, run) for branch, run in runs if run.status is RunStatus.IN_PROGRESS]

    async def run_in_thread(self, act: Callable[P, T], *arguments: P.args, **members: P.kwargs) -> T:
        """Calls a function in a thread: an HTTP client blocks until the event loop has answered. A pause waits for the
        landing in progress, which can wait for the time."""
        task = asyncio.create_task(wait_for_response(partial(act, *arguments, **members)))
        await asyncio.wait({task}, timeout=PATIENCE_S)
        result = await self._while_time_passes(task)
        await self.wait_until_idle()
        return result

    async def while_time_passes(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        await self.wait_until_idle()
        return await self._while_time_passes(task)

    async def _while_time_passes(self, task: asyncio.Task[T]) -> T:
        while not task.done():
            await self.advance_time(SECOND)
        return task.result()

    async def report_result(self, branch: str, commit: Sha) -> None:
        """The CI tests a commit and reports the result."""
        ci = self.sites[branch].ci
        await self.run_in_thread(ci.report, commit, ci.evaluate(commit))

    async def tear_down(self) -> None:
        await self.service.stop()
        for site in self.sites.values():
            site.api.close()
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
