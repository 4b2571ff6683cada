"""Connections to SQLite: one that writes, any number that read; named queries, migrations, errors."""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path
from time import monotonic, sleep
from types import MappingProxyType
from typing import Any, Protocol, cast

import apsw

from mergeyard.adapters.store_sql.statements import (
    Migration,
    Row,
    Value,
    Values,
    read_migrations,
    read_queries,
    refuse_newer_schema,
)
from mergeyard.ports.store import StoreUnavailable


class Cursor(Protocol):
    @property
    def connection(self) -> "Connection": ...

    def execute(self, statements: str, bindings: Values | None = None) -> "Cursor": ...

    def executemany(self, statements: str, sequenceofbindings: Iterable[Values]) -> "Cursor": ...

    def fetchall(self) -> list[Row]: ...


class Backup(Protocol):
    def step(self, pages: int, /) -> bool: ...


class Connection(Protocol):
    @property
    def in_transaction(self) -> bool: ...

    def cursor(self) -> Cursor: ...

    def execute(self, statements: str, bindings: Values | None = None) -> Cursor: ...

    def changes(self) -> int:
        """How many rows the last statement changed."""
        ...

    def pragma(self, name: str, value: Value = None) -> Any: ...

    def set_busy_handler(self, handler: Callable[[int], bool], /) -> None: ...

    def backup(self, database: str, source: "Connection", source_name: str, /) -> AbstractContextManager[Backup]: ...

    def wal_autocheckpoint(self, pages: int, /) -> None: ...

    def wal_checkpoint(self, *, mode: int) -> tuple[int, int]: ...

    def close(self) -> None: ...


ERROR_MESSAGES: dict[type[apsw.Error], str] = {
    apsw.FullError: "The disk that holds {path} is full. Free some space; a restart is not needed",
    apsw.IOError: "The disk that holds {path} cannot be read or written. Check the disk and the system's log",
    apsw.BusyError: "Another process keeps {path} locked. End it, or wait until it is done",
    apsw.LockedError: "Another process keeps {path} locked. End it, or wait until it is done",
    apsw.ProtocolError: "Another process keeps {path} locked. End it, or wait until it is done",
    apsw.CorruptError: "{path} is damaged. Stop Mergeyard, keep a copy of the file and restore a backup",
    apsw.NotADBError: "{path} is not a database. Name another file, or restore a backup",
    apsw.ReadOnlyError: "{path} is not writable. Check who owns the file and its folder",
    apsw.PermissionsError: "{path} is not writable. Check who owns the file and its folder",
    apsw.CantOpenError: "{path} cannot be opened. Check that its folder exists and who owns it",
    apsw.NoMemError: "There is not enough memory to use {path}. Give the process more",
    apsw.ConnectionClosedError: "{path} is closed. Open the store first",
    apsw.CursorClosedError: "{path} is closed. Open the store first",
}
"""Any other error of SQLite is a bug of Mergeyard and is not translated."""

DATABASE_ERRORS = tuple(ERROR_MESSAGES)


CORRUPTION_ERRORS = (apsw.CorruptError, apsw.NotADBError)


class CorruptionState:
    """Records corruption that a connection met. It is permanent, and further writes would make it worse."""

    def __init__(self, path: Path) -> None:
        self.error: StoreUnavailable | None = None
        self._path = path

    def translate_error(self, error: apsw.Error) -> StoreUnavailable:
        translated = to_store_error(error, self._path)
        if isinstance(error, CORRUPTION_ERRORS):
            self.error = translated
        return translated


def to_store_error(error: apsw.Error, path: Path) -> StoreUnavailable:
    message = next(message for kind, message in ERROR_MESSAGES.items() if isinstance(error, kind))
    return StoreUnavailable(f"{message.format(path=path)} ({error}).")


def slow_write_error(path: Path, seconds: float) -> StoreUnavailable:
    message = f"Writing to {path} takes longer than {seconds:g} seconds"
    return StoreUnavailable(
        f"{message}. Look for a process that keeps it locked, and check whether the disk is overloaded."
    )


def unreadable_file_error(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} cannot be read ({error.strerror}). Check its disk and the permissions of its folder."
    )


def replaced_file_error(path: Path) -> StoreUnavailable:
    return StoreUnavailable(f"{path} was removed or replaced while it was open. Put it back and restart Mergeyard.")


PACKAGE_FOLDER = resources.files("mergeyard.adapters.store_sqlite")
SQL = MappingProxyType(dict(read_queries(PACKAGE_FOLDER / "queries")))
MIGRATIONS = tuple(read_migrations(PACKAGE_FOLDER / "migrations"))


def migrate(connection: Connection, path: Path) -> None:
    connection.execute(SQL["create_migrations_table"])
    current = read_schema_version(connection)
    refuse_newer_schema(current, MIGRATIONS[-1].number, path)
    for migration in MIGRATIONS[current:]:
        apply_migration(connection, migration)


def read_schema_version(connection: Connection) -> int:
    """The schema version: the number of the last applied migration, 0 if there is none."""
    ((number,),) = connection.execute(SQL["schema_version"]).fetchall()
    return number


def apply_migration(connection: Connection, migration: Migration) -> None:
    connection.execute(SQL["begin_writing"])
    try:
        # Another process can have applied it while this one waited for the write lock.
        if read_schema_version(connection) < migration.number:
            connection.execute(migration.text)
            connection.execute(SQL["record_migration"], {"number": migration.number, "name": migration.name})
        connection.execute(SQL["commit"])
    finally:
        if connection.in_transaction:
            connection.execute(SQL["rollback"])


BUSY_TIMEOUT_S = 5.0
"""How long to wait for another process that holds the write lock."""
BUSY_POLL_S = 0.002
"""Short, because a busy server leaves only short gaps in which another process can take the write lock."""
CACHE_KIB = 32 * 1024
CHECKPOINT_PAGES = 4000
"""16 MiB of WAL: a busy server then checkpoints every few groups, and after a crash there is little to replay."""
MAX_IDLE_WAL_BYTES = 64 * 1024 * 1024

MAX_STARTUP_CHECK_BYTES = 1024**3

MIN_SQLITE_VERSION = (3, 51, 3)
"""Older versions can corrupt a database that two processes write to and checkpoint at the same time."""


def open_for_writing(path: Path) -> Connection:
    """Opens the database, creates the file if it does not exist, and migrates the schema."""
    _refuse_old_sqlite()
    _create_private_file(path)
    connection = connect(path)
    if connection.pragma("journal_mode", "wal") != "wal":
        raise StoreUnavailable(f"{path} is on a disk that SQLite cannot share between processes. Use a local disk.")
    connection.pragma("synchronous", "full")
    _refuse_damaged_file(connection, path)
    migrate(connection, path)
    connection.pragma("foreign_keys", 1)
    connection.pragma("journal_size_limit", MAX_IDLE_WAL_BYTES)
    connection.wal_autocheckpoint(CHECKPOINT_PAGES)
    return connection


def open_for_reading(path: Path) -> Connection:
    connection = connect(path)
    connection.pragma("query_only", 1)
    connection.pragma("temp_store", "memory")
    return connection


def connect(path: Path) -> Connection:
    connection = cast(Connection, apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE))
    connection.set_busy_handler(BusyHandler())
    connection.pragma("cache_size", -CACHE_KIB)
    return connection


class BusyHandler:
    """Waits for the lock by the clock, not by a number of attempts: on a busy machine an attempt can take long."""

    def __init__(self) -> None:
        self._started_at = 0.0

    def __call__(self, attempts: int) -> bool:
        if attempts == 0:
            self._started_at = monotonic()
        sleep(BUSY_POLL_S)
        return monotonic() - self._started_at < BUSY_TIMEOUT_S


def _refuse_old_sqlite() -> None:
    version = apsw.sqlite_lib_version()
    if tuple(map(int, version.split("."))) < MIN_SQLITE_VERSION:
        raise StoreUnavailable(
            f"SQLite {version} can corrupt databases. Install apsw from its wheel, which includes a newer SQLite."
        )


def _refuse_damaged_file(connection: Connection, path: Path) -> None:
    """Skips large files, because the check would delay the start: `mergeyard db check` reads those."""
    if path.stat().st_size <= MAX_STARTUP_CHECK_BYTES:
        ((result,),) = connection.execute(SQL["quick_check"]).fetchall()
        if result != "ok":
            raise apsw.CorruptError(" ".join(result.split()))


def _create_private_file(path: Path) -> None:
    """Creates the file before SQLite opens it, readable only by our user; WAL and index file inherit its permissions.

    An existing file is not opened here: closing it would drop the POSIX locks that this process holds on it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be created ({error}). Check who owns its folder.") from error
