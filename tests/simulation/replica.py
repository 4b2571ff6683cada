"""One replica: the production service with simulated adapters, in a process that can be killed and restarted."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

from starlette.applications import Starlette

from mergeyard.adapters.encryption import UnconfiguredSecretBox
from mergeyard.api.app import build_app, build_effect_waits, build_handlers
from mergeyard.api.auth import Authenticator
from mergeyard.api.dispatch import Dispatcher
from mergeyard.api.routes import build_endpoints
from mergeyard.domain.ids import RunId
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import CheckJob, CheckResult, SendFailed, SendResponse
from mergeyard.ports.store import SharedStore, Store, StoreUnavailable
from mergeyard.service.queue_actor import Listener, QueueActor
from mergeyard.service.service import Service
from tests.simulation.faults import Family, FaultInjector
from tests.simulation.git import SimGit, SimMirror
from tests.simulation.host import REPO, HostState, SimHost
from tests.simulation.process import Connection, Process, ProcessClock, VirtualLoop
from tests.simulation.store.records import Records
from tests.simulation.store.store import MemoryStore

USUAL_DELAYS_S = {"commit": 0.02, "renew_leases": 0.01, "acquire_leases": 0.02, "register_worker": 0.02}
"""Seconds one way; reads take none unless a fault slows them down."""
LOCAL = frozenset({"open", "close", "listen"})


class RemoteStore:
    def __init__(self, store: MemoryStore, connection: Connection, losses: Family | None) -> None:
        self._store = store
        self._connection = connection
        self._losses = losses

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._store, name)
        if name in LOCAL:
            return method

        async def call(*args: Any, **named: Any) -> Any:
            def effect() -> Any:
                return run_to_completion(method(*args, **named))

            return await self._connection.call(
                effect, USUAL_DELAYS_S.get(name, 0), StoreUnavailable, Family.STORE, self._losses
            )

        return call


def connect_to_server(store: MemoryStore, connection: Connection) -> SharedStore:
    return cast("SharedStore", RemoteStore(store, connection, losses=Family.STORE))


def connect_to_embedded(store: MemoryStore, connection: Connection) -> Store:
    """The response of a commit is never lost."""
    return cast("Store", RemoteStore(store, connection, losses=None))


def run_to_completion(work: Any) -> Any:
    """The result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError(f"{work} waits")


POLL_INTERVAL_MS = 2000


class SharedEnvironment:
    """Everything that all replicas share."""

    def __init__(
        self, loop: VirtualLoop, host_state: HostState, faults: FaultInjector, *, has_forge: bool, shared: bool
    ) -> None:
        self.loop = loop
        self.host_state = host_state
        self.faults = faults
        self.has_forge = has_forge
        self.shared = shared
        self.records = Records()
        self.store_clock = ProcessClock(Process(loop))


class SimReplica:
    def __init__(self, environment: SharedEnvironment, listener: Listener) -> None:
        self._environment = environment
        self._listener = listener
        self._disk: SimMirror | None = None
        self._create()

    def _create(self) -> None:
        environment = self._environment
        self.process = Process(environment.loop)
        self.clock = ProcessClock(self.process)
        connection = Connection(self.process, environment.faults)
        host = SimHost(environment.host_state, connection, environment.faults, has_forge=environment.has_forge)
        self._store = MemoryStore(environment.records, environment.store_clock)
        git = SimGit(environment.host_state.origin, connection, self._disk)
        self._disk = git.disk
        shared = connect_to_server(self._store, connection) if environment.shared else None
        self.service = Service(
            store=shared or connect_to_embedded(self._store, connection),
            shared_store=shared,
            clock=self.clock,
            git=git,
            hosts={host.name: host},
            runner=NoRunner(),
            sender=NoSender(),
            secret_box=UnconfiguredSecretBox(),
            public_url="http://mergeyard.example",
            poll_interval_ms=POLL_INTERVAL_MS,
        )
        raising = RaisingListener()
        self.service.registry.listeners += (raising.on_change, self._listener)
        self.service.leases.listeners.append(raising)
        self.process.is_superseded = partial(self._is_superseded, self.process, self.service)
        self.application: Starlette | None = None

    def _is_superseded(self, process: Process, service: Service) -> bool:
        """Whether it was restarted since, or another replica took over its lease."""
        leases = self._environment.records.leases
        taken_over = self._environment.shared and REPO not in leases.repos_of(service.leases.replica_name)
        return process is not self.process or taken_over

    @property
    def answers(self) -> bool:
        """A stopped process accepts requests and does not answer them."""
        return self.process.alive and self.application is not None

    async def start(self) -> None:
        """As a supervisor would: retries until it is running."""
        while True:
            try:
                await self.service.start()
                break
            except Exception:
                self._store.disconnect()
                await asyncio.sleep(1)
                if not self.process.alive:
                    return
                self.process.kill()
                self._create()
        self.application = _build_application(self.service)

    def kill(self, *, loses_its_disk: bool) -> None:
        self.process.kill()
        self._store.disconnect()
        self.application = None
        if loses_its_disk:
            self._disk = None

    async def start_again(self) -> None:
        if not self.process.alive:
            self._create()
            await self.start()


class InjectedBug(Exception):
    """The only error that a world may log: our listener raised it."""


class RaisingListener:
    """Is called before all others. Raises every third time: a bug in one listener must not harm the rest."""

    def __init__(self) -> None:
        self._calls = 0

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:  # noqa: ARG002
        self._raise_sometimes()

    def on_lease_lost(self, queue_actor: QueueActor) -> None:  # noqa: ARG002
        self._raise_sometimes()

    def _raise_sometimes(self) -> None:
        self._calls += 1
        if self._calls % 3 == 0:
            raise InjectedBug


def _build_application(service: Service) -> Starlette:
    authenticator = Authenticator(service.tokens, service.token_uses, service.refusal_log, service.wall_clock)
    dispatcher = Dispatcher(authenticator, service.idempotency)
    endpoints = build_endpoints(build_handlers(service, "http://mergeyard.example"), build_effect_waits(service))
    return build_app([dispatcher.build_route(endpoint) for endpoint in endpoints])


class NoRunner:
    """CI reports on its own here."""

    async def start(self, job: CheckJob) -> None:
        raise NotImplementedError(job)

    async def stop(self, run: RunId) -> None:
        """Nothing was started."""

    async def next_result(self) -> CheckResult:
        return await asyncio.get_running_loop().create_future()

    def active_run_ids(self) -> frozenset[RunId]:
        return frozenset()

    async def output(self, run: RunId, check: str) -> bytes | None:  # noqa: ARG002
        return None

    async def delete_outputs(self, before: Instant) -> None:
        """Nothing was written."""

    async def close(self) -> None:
        """Nothing is open."""


class NoSender:
    """There are no webhooks here."""

    async def check(self, url: str) -> None:
        """Every address is allowed."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> SendResponse:
        raise SendFailed(f"{url} {headers} {body!r}")
