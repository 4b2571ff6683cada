"""Each test has an empty database that any number of replicas can open."""

from collections.abc import Callable
from functools import partial
from typing import cast

import pytest

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.ports.store import SharedStore
from tests.contract.replication.support import YieldingStore
from tests.simulation.store.records import Records
from tests.simulation.store.store import MemoryStore
from tests.support.postgres import PostgresServer, shared_server, stoppable_server

Connect = Callable[[], SharedStore]


def postgres(request: pytest.FixtureRequest) -> Connect:
    return partial(PostgresStore, request.getfixturevalue("url"))


def memory(_: pytest.FixtureRequest) -> Connect:
    records, clock = Records(), WallClock()
    return lambda: cast(SharedStore, YieldingStore(MemoryStore(records, clock)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that uses a server runs only on PostgreSQL."""
    if "connect" in metafunc.fixturenames:
        adapters = (postgres,) if {"url", "server"} & {*metafunc.fixturenames} else (postgres, memory)
        metafunc.parametrize("connect", adapters, indirect=True, ids=lambda adapter: adapter.__name__)


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Connect:
    return request.param(request)


@pytest.fixture
def url() -> str:
    return shared_server().store_database()


@pytest.fixture
def one(connect: Connect) -> SharedStore:
    """Not yet open, like the other store."""
    return connect()


@pytest.fixture
def other(connect: Connect) -> SharedStore:
    return connect()


@pytest.fixture
def server() -> PostgresServer:
    """A server that the test can stop."""
    stoppable_server().ensure_running()
    return stoppable_server()
