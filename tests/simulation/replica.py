"""One replica: the production service with simulated hands, in a process that can be killed and begun again."""

import asyncio
from collections.abc import Mapping
from functools import partial

from mergeyard.adapters.sealing import NoSeals
from mergeyard.api.app import Application
from mergeyard.api.doorkeeping import ServiceDoor
from mergeyard.api.handlers import handlers, settling
from mergeyard.api.receiving import Reception
from mergeyard.api.routes import endpoints
from mergeyard.api.serving import Route, served, served_by_query
from mergeyard.domain.ids import RunId
from mergeyard.domain.instants import Instant
from mergeyard.ports.runner import Job, Result
from mergeyard.ports.sending import NotSent, Response
from mergeyard.service.service import Service
from mergeyard.service.turn import Listener
from tests.simulation.far_store import embedded, on_a_server
from tests.simulation.host import SimHost
from tests.simulation.hosting import REPO, Hosting
from tests.simulation.mirror import SimGit, SimMirror
from tests.simulation.process import Line, Process, ProcessClock
from tests.simulation.store.records import Records
from tests.simulation.store.store import MemoryStore
from tests.simulation.timing import VirtualLoop
from tests.simulation.weather import Weather

LOOK_EVERY = 2000


class Premises:
    """What all replicas share."""

    def __init__(self, loop: VirtualLoop, hosting: Hosting, weather: Weather, *, has_forge: bool, shared: bool) -> None:
        self.loop = loop
        self.hosting = hosting
        self.weather = weather
        self.has_forge = has_forge
        self.shared = shared
        self.records = Records()
        self.store_clock = ProcessClock(Process(loop))


class SimReplica:
    def __init__(self, premises: Premises, watch: Listener) -> None:
        self._premises = premises
        self._watch = watch
        self._disk: SimMirror | None = None
        self._begin()

    def _begin(self) -> None:
        premises = self._premises
        self.process = Process(premises.loop)
        self.clock = ProcessClock(self.process)
        line = Line(self.process, premises.weather)
        host = SimHost(premises.hosting, line, premises.weather, has_forge=premises.has_forge)
        self._connection = MemoryStore(premises.records, premises.store_clock)
        git = SimGit(premises.hosting.origin, line, self._disk)
        self._disk = git.disk
        shared = on_a_server(self._connection, line) if premises.shared else None
        self.service = Service(
            store=shared or embedded(self._connection, line),
            shared=shared,
            clock=self.clock,
            git=git,
            hosts={host.name: host},
            runner=NoRunner(),
            sender=NoSender(),
            seals=NoSeals(),
            public_url="http://yard.example",
            look_every=LOOK_EVERY,
        )
        self.service.yard.listeners.append(self._watch)
        self.process.is_relieved = partial(self._is_relieved, self.process, self.service)
        self.door: Application | None = None

    def _is_relieved(self, process: Process, service: Service) -> bool:
        """Whether it was begun again since, or another replica took its duty over."""
        duties = self._premises.records.duties
        taken_over = self._premises.shared and REPO not in duties.repos_of(service.duties.replica)
        return process is not self.process or taken_over

    @property
    def answers(self) -> bool:
        """A stopped one takes requests, and never comes to answer them."""
        return self.process.alive and self.door is not None

    async def start(self) -> None:
        """As a supervisor would: again until it is up."""
        while True:
            try:
                await self.service.start()
                break
            except Exception:
                self._connection.hang_up()
                await asyncio.sleep(1)
                if not self.process.alive:
                    return
                self.process.kill()
                self._begin()
        self.door = _door(self.service)

    def kill(self, *, loses_its_disk: bool) -> None:
        self.process.kill()
        self._connection.hang_up()
        self.door = None
        if loses_its_disk:
            self._disk = None

    async def start_again(self) -> None:
        if not self.process.alive:
            self._begin()
            await self.start()


def _door(service: Service) -> Application:
    keeper, reception = ServiceDoor(service), Reception()
    routes: dict[str, Mapping[str, Route]] = {}
    for endpoint in endpoints(handlers(service, "http://yard.example"), settling(service)):
        by_query = endpoint.method == "GET"
        route = served_by_query(endpoint, keeper) if by_query else served(endpoint, keeper, reception)
        routes[endpoint.path] = {endpoint.method: route}
    return Application(routes)


class NoRunner:
    """CI reports by itself here."""

    async def start(self, job: Job) -> None:
        raise NotImplementedError(job)

    async def stop(self, run: RunId) -> None:
        """Nothing was started."""

    async def next_result(self) -> Result:
        return await asyncio.get_running_loop().create_future()

    def running(self) -> frozenset[RunId]:
        return frozenset()

    async def output(self, run: RunId, check: str) -> bytes | None:  # noqa: ARG002
        return None

    async def delete_outputs(self, before: Instant) -> None:
        """Nothing was written."""

    async def close(self) -> None:
        """Nothing is open."""


class NoSender:
    """Nobody has a webhook here."""

    async def check(self, url: str) -> None:
        """Every address will do."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        raise NotSent(f"{url} {headers} {body!r}")
