"""Every store adapter fulfills the same contract."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.ports.store import Store
from tests.simulation.store.records import Records
from tests.simulation.store.store import MemoryStore
from tests.support.postgres import shared_server


def sqlite(folder: Path) -> Store:
    return SqliteStore(folder / "mergeyard.db")


def postgres(_: Path) -> Store:
    return PostgresStore(shared_server().store_database())


def memory(_: Path) -> Store:
    return MemoryStore(Records(), WallClock())


ADAPTERS: tuple[Callable[[Path], Store], ...] = (sqlite, postgres, memory)


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.__name__)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, not yet open; it can be opened again after it was closed."""
    return request.param(tmp_path)
