"""PostgreSQL refuses, stalls or moves elsewhere: it is told so in words, and replicas go on when it is well again."""

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from asyncpg import TooManyConnectionsError  # pyright: ignore[reportMissingTypeStubs]

from mergeyard.adapters.store_postgres.handles import Connection, connect
from tests.replicas.installation import Installation
from tests.support.patience import eventually
from tests.support.postgres import PostgresServer
from tests.support.surroundings import Surroundings
from tests.surroundings.proxies import Proxy
from tests.surroundings.watching import Watching

pytestmark = pytest.mark.long

NOWHERE = 1
"""A port that nobody listens at."""


class Town:
    """Two replicas, the line to their database, and one pull request under test."""

    def __init__(self, folder: Path, server: PostgresServer, proxy: Proxy) -> None:
        self.server = server
        self.proxy = proxy
        direct = server.fresh_database()
        self.database = urlsplit(direct).path.removeprefix("/")
        self.installation = Installation.running(folder, proxy.url(direct), "all", "all")
        self.watching = [Watching(replica) for replica in self.installation.replicas]
        self.queue: Surroundings = self.installation.queue(concurrency=3)
        self.queue.ci.working = False
        self.early = self._submitted("a.txt")
        self.queue.wait_for("testing", self.early)

    def _submitted(self, file: str) -> int:
        number = self.queue.open_pr({file: "1"})
        self.queue.submit(number)
        return number

    def is_cut_off(self) -> bool:
        return not self.server.run(f"SELECT FROM pg_stat_activity WHERE datname = '{self.database}'")

    def is_unready(self, words: str) -> None:
        for watching in self.watching:
            eventually(lambda watching=watching: words in watching.in_the_way(), but=watching.in_the_way)
            assert watching.lives()

    def goes_on(self) -> None:
        """By itself, with what it had and with what comes."""
        for watching in self.watching:
            eventually(watching.is_ready, but=watching.in_the_way)
        late = self._submitted("b.txt")
        self.queue.ci.working = True
        self.queue.wait_for("merged", self.early, late)
        self.installation.hold_to_promises()


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with PostgresServer(max_connections="40") as server, Proxy(server.port) as proxy:
        town = Town(tmp_path, server, proxy)
        try:
            yield town
        finally:
            town.installation.close()


def test_connections_that_are_killed_are_made_again(town: Town):
    for _ in range(5):
        town.server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{town.database}'")
    town.goes_on()


def test_lines_that_are_cut_are_made_again(town: Town):
    for _ in range(5):
        town.proxy.cut()
    town.goes_on()


def test_a_database_that_may_only_be_read_is_called_so(town: Town):
    town.server.run(f"ALTER DATABASE {town.database} SET default_transaction_read_only = on")
    town.proxy.cut()
    town.is_unready("is a copy that may only be read")
    town.server.run(f"ALTER DATABASE {town.database} RESET default_transaction_read_only")
    town.proxy.cut()
    town.goes_on()


def test_a_database_that_accepts_nobody_is_called_so(town: Town):
    town.server.run(f"ALTER DATABASE {town.database} ALLOW_CONNECTIONS false")
    town.proxy.cut()
    town.is_unready("accepts no connections. Allow them again")
    town.server.run(f"ALTER DATABASE {town.database} ALLOW_CONNECTIONS true")
    town.goes_on()


def test_a_server_without_a_connection_to_spare_is_called_so(town: Town):
    with everything_taken(town):
        town.is_unready("has no connection to spare. Raise its max_connections")
    town.goes_on()


@contextmanager
def everything_taken(town: Town) -> Generator[None]:
    """Somebody else took all connections that there are, while the line led nowhere."""
    with asyncio.Runner() as other:
        town.proxy.to = NOWHERE
        town.proxy.cut()
        eventually(town.is_cut_off)
        taken = other.run(take_all(town.server.url("postgres")))
        town.proxy.to = town.server.port
        try:
            yield
        finally:
            other.run(give_back(taken))


async def take_all(url: str) -> list[Connection]:
    taken = list[Connection]()
    with suppress(TooManyConnectionsError):
        while True:
            taken.append(await connect(url, timeout=10, server_settings={}))
    return taken


async def give_back(taken: list[Connection]) -> None:
    for connection in taken:
        await connection.close()


@pytest.mark.parametrize("seconds", [0.2, 30])
def test_a_line_that_became_slow_is_borne_or_called_so(town: Town, seconds: float):
    town.proxy.delay = seconds
    if seconds > 1:
        town.is_unready("does not answer")
    town.proxy.delay = 0.0
    town.goes_on()


def test_a_failover_that_loses_nothing_is_followed(town: Town):
    town.server.stop()
    town.is_unready("The database")
    town.server.port += 1
    town.proxy.to = town.server.port
    town.server.start()
    town.goes_on()


def test_a_disk_of_the_database_that_is_full_is_called_so(town: Town):
    """As far as can be shown without filling a disk: a table that may not grow any more."""
    town.server.run(
        "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE disk_full; END'", town.database
    )
    town.server.run("CREATE TRIGGER no_room BEFORE UPDATE ON pulse EXECUTE FUNCTION no_room()", town.database)
    town.is_unready("The disk of the database is full")
    town.server.run("DROP TRIGGER no_room ON pulse", town.database)
    town.goes_on()
