"""Opens a SQLite file as an archive: to look at one moment of it, or to fill it in one transaction."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

from mergeyard.adapters.store_sqlite import migrating
from mergeyard.adapters.store_sqlite.archive_tables import SqliteTables
from mergeyard.adapters.store_sqlite.connecting import open_for_reading, open_for_writing
from mergeyard.adapters.store_sqlite.handles import Connection
from mergeyard.adapters.store_sqlite.sql import SQL
from mergeyard.adapters.store_sqlite.trouble import TROUBLES, in_words


class SqliteArchive:
    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self._path = path

    async def form(self) -> int:
        if not self._path.exists():
            return 0
        with told_in_words(self._path), closing(open_for_reading(self._path)) as connection:
            return form_of(connection)

    async def migrate(self) -> None:
        with told_in_words(self._path):
            open_for_writing(self._path).close()

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[SqliteTables]:
        with told_in_words(self._path), closing(open_for_reading(self._path)) as connection:
            connection.execute(SQL["begin_reading"])
            yield SqliteTables(connection, self.place)

    @asynccontextmanager
    async def filling(self) -> AsyncGenerator[SqliteTables]:
        """Closing without a commit takes everything back."""
        with told_in_words(self._path), closing(open_for_writing(self._path)) as connection:
            connection.execute(SQL["begin_writing"])
            yield SqliteTables(connection, self.place)
            connection.execute(SQL["commit"])


def form_of(connection: Connection) -> int:
    """0 for a file without anything of ours."""
    ours = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'").fetchall()
    return migrating.form(connection) if ours else 0


@contextmanager
def told_in_words(path: Path) -> Generator[None]:
    try:
        yield
    except TROUBLES as error:
        raise in_words(error, path) from error
