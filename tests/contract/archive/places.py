"""Databases of every kind, to be seen as stores, as archives, and as what they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from mergeyard.adapters.store_postgres.archive import PostgresArchive
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sqlite.archive import SqliteArchive
from mergeyard.adapters.store_sqlite.connecting import connect
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.ports.archive import Archive
from mergeyard.ports.store import Store
from tests.support.postgres import ask, shared_server


class Place(Protocol):
    kind: str
    option: str
    """As a command names it."""

    @property
    def archive(self) -> Archive: ...

    def store(self) -> Store: ...

    async def ask(self, statement: str) -> list[tuple[Any, ...]]: ...


class SqlitePlace:
    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.option = f"sqlite:///{path}"
        self.archive = SqliteArchive(path)

    def store(self) -> Store:
        return SqliteStore(self.path)

    async def ask(self, statement: str) -> list[tuple[Any, ...]]:
        connection = connect(self.path)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()


class PostgresPlace:
    kind = "postgres"

    def __init__(self, url: str) -> None:
        self.option = url
        self.archive = PostgresArchive(url)

    def store(self) -> Store:
        return PostgresStore(self.option)

    async def ask(self, statement: str) -> list[tuple[Any, ...]]:
        return await ask(self.option, statement)


def sqlite(folder: Path) -> Place:
    return SqlitePlace(folder / "data" / "mergeyard.db")


def postgres(_: Path) -> Place:
    return PostgresPlace(shared_server().fresh_database())


MakePlace = Callable[[Path], Place]
KINDS: tuple[MakePlace, ...] = (sqlite, postgres)
