"""Every test has an empty database, which any number of replicas may open."""

from collections.abc import Iterator

import pytest

from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.ports.sharing import SharedStore
from tests.support.postgres import PostgresServer, shared_server


@pytest.fixture
def url() -> str:
    return shared_server().fresh_database()


@pytest.fixture
def one(url: str) -> SharedStore:
    """Not yet open, and so is the other."""
    return PostgresStore(url)


@pytest.fixture
def other(url: str) -> SharedStore:
    return PostgresStore(url)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that the test may stop."""
    with PostgresServer() as server:
        yield server
