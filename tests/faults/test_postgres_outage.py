"""PostgreSQL refuses, stalls or fails over: replicas report the cause, and recover when it is available again."""

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from asyncpg import TooManyConnectionsError  # pyright: ignore[reportMissingTypeStubs]

from mergeyard.adapters.store_postgres.connection import Connection, connect
from tests.faults.health import HealthProbe
from tests.faults.injection import Proxy
from tests.replicas.installation import Installation
from tests.support.environment import QueueEnvironment
from tests.support.polling import eventually
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.long

UNUSED_PORT = 1
"""No process listens on it."""


class Cluster:
    """Two replicas, the proxy to their database, and one pull request in testing."""

    def __init__(self, folder: Path, server: PostgresServer, proxy: Proxy) -> None:
        self.server = server
        self.proxy = proxy
        direct = server.fresh_database()
        self.database = urlsplit(direct).path.removeprefix("/")
        self.installation = Installation.start(folder, proxy.url(direct), "all", "all")
        self.probes = [HealthProbe(replica) for replica in self.installation.replicas]
        self.queue: QueueEnvironment = self.installation.queue(concurrency=3)
        self.queue.ci.enabled = False
        self.early = self._submitted("a.txt")
        self.queue.wait_for("testing", self.early)

    def _submitted(self, file: str) -> int:
        number = self.queue.open_pr({file: "1"})
        self.queue.submit(number)
        return number

    def is_cut_off(self) -> bool:
        return not self.server.run(f"SELECT FROM pg_stat_activity WHERE datname = '{self.database}'")

    def is_unready(self, message: str) -> None:
        for probe in self.probes:
            eventually(lambda probe=probe: message in probe.readiness_error(), describe=probe.readiness_error)
            assert probe.is_alive()

    def recovers(self) -> None:
        """Merges the early pull request and a late one."""
        for probe in self.probes:
            eventually(probe.is_ready, describe=probe.readiness_error)
        late = self._submitted("b.txt")
        self.queue.ci.enabled = True
        self.queue.wait_for("merged", self.early, late)
        self.installation.check_promises()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with PostgresServer(max_connections="40") as server, Proxy(server.port) as proxy:
        cluster = Cluster(tmp_path, server, proxy)
        try:
            yield cluster
        finally:
            cluster.installation.close()


def test_killed_connections_are_opened_again(cluster: Cluster):
    for _ in range(5):
        cluster.server.run(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{cluster.database}'"
        )
    cluster.recovers()


def test_dropped_connections_are_opened_again(cluster: Cluster):
    for _ in range(5):
        cluster.proxy.cut()
    cluster.recovers()


def test_read_only_database_is_reported(cluster: Cluster):
    cluster.server.run(f"ALTER DATABASE {cluster.database} SET default_transaction_read_only = on")
    cluster.proxy.cut()
    cluster.is_unready("is a read-only replica")
    cluster.server.run(f"ALTER DATABASE {cluster.database} RESET default_transaction_read_only")
    cluster.proxy.cut()
    cluster.recovers()


def test_database_that_accepts_no_connections_is_reported(cluster: Cluster):
    cluster.server.run(f"ALTER DATABASE {cluster.database} ALLOW_CONNECTIONS false")
    cluster.proxy.cut()
    cluster.is_unready("accepts no connections. Allow them again")
    cluster.server.run(f"ALTER DATABASE {cluster.database} ALLOW_CONNECTIONS true")
    cluster.recovers()


def test_database_without_a_free_connection_is_reported(cluster: Cluster):
    with all_connections_taken(cluster):
        cluster.is_unready("has no free connection. Raise its max_connections")
    cluster.recovers()


@contextmanager
def all_connections_taken(cluster: Cluster) -> Generator[None]:
    """Another client takes all connections while the proxy forwards to an unused port."""
    with asyncio.Runner() as other:
        cluster.proxy.to = UNUSED_PORT
        cluster.proxy.cut()
        eventually(cluster.is_cut_off)
        taken = other.run(open_all_connections(cluster.server.url("postgres")))
        cluster.proxy.to = cluster.server.port
        try:
            yield
        finally:
            other.run(close_all(taken))


async def open_all_connections(url: str) -> list[Connection]:
    taken = list[Connection]()
    with suppress(TooManyConnectionsError):
        while True:
            taken.append(await connect(url, timeout=10, server_settings={}))
    return taken


async def close_all(taken: list[Connection]) -> None:
    for connection in taken:
        await connection.close()


@pytest.mark.parametrize("seconds", [0.2, 30])
def test_slow_connection_is_tolerated_or_reported(cluster: Cluster, seconds: float):
    cluster.proxy.delay = seconds
    if seconds > 1:
        cluster.is_unready("does not respond")
    cluster.proxy.delay = 0.0
    cluster.recovers()


def test_failover_is_followed(cluster: Cluster):
    cluster.server.stop()
    cluster.is_unready("The database")
    cluster.server.port += 1
    cluster.proxy.to = cluster.server.port
    cluster.server.start()
    cluster.recovers()


def test_full_disk_of_the_database_server_is_reported(cluster: Cluster):
    """Simulated without a full disk: a trigger raises `disk_full`."""
    cluster.server.run(
        "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE disk_full; END'", cluster.database
    )
    cluster.server.run(
        "CREATE TRIGGER no_room BEFORE UPDATE ON write_probe EXECUTE FUNCTION no_room()", cluster.database
    )
    cluster.is_unready("The disk of the database is full")
    cluster.server.run("DROP TRIGGER no_room ON write_probe", cluster.database)
    cluster.recovers()
