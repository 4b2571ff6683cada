"""Opens connections: the one that writes, and those that only read."""

import os
from pathlib import Path
from time import monotonic, sleep
from typing import cast

import apsw

from mergeyard.adapters.store_sqlite.handles import Connection
from mergeyard.adapters.store_sqlite.migrating import migrate
from mergeyard.adapters.store_sqlite.sql import SQL
from mergeyard.ports.store import StoreTrouble

PATIENCE = 5.0
"""Seconds that we wait for another process to finish writing."""
BETWEEN_LOOKS = 0.002
"""Short, because a busy server leaves only short gaps in which somebody else can write."""
CACHE_IN_KIB = 32 * 1024
PAGES_BEFORE_CHECKPOINT = 4000
"""16 MiB of log: a busy server then empties it every few groups, and a crash leaves little to read again."""
LARGEST_IDLE_LOG = 64 * 1024 * 1024

LARGEST_CHECKED_AT_START = 1024**3

OLDEST_SOUND_SQLITE = (3, 51, 3)
"""Older ones can damage a database that two processes write to and checkpoint at once."""


def open_for_writing(path: Path) -> Connection:
    """The database in its present form, made if it was not there."""
    _refuse_an_unsound_sqlite()
    _make_for_us_alone(path)
    connection = connect(path)
    if connection.pragma("journal_mode", "wal") != "wal":
        raise StoreTrouble(f"{path} lies on a disk that SQLite cannot share between processes. Use a local disk.")
    connection.pragma("synchronous", "full")
    _refuse_a_damaged_one(connection, path)
    migrate(connection, path)
    connection.pragma("foreign_keys", 1)
    connection.pragma("journal_size_limit", LARGEST_IDLE_LOG)
    connection.wal_autocheckpoint(PAGES_BEFORE_CHECKPOINT)
    return connection


def open_for_reading(path: Path) -> Connection:
    connection = connect(path)
    connection.pragma("query_only", 1)
    connection.pragma("temp_store", "memory")
    return connection


def connect(path: Path) -> Connection:
    connection = cast(Connection, apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE))
    connection.set_busy_handler(Patience())
    connection.pragma("cache_size", -CACHE_IN_KIB)
    return connection


class Patience:
    """Waits for others, by the clock: on a busy machine a look takes longer than it should."""

    def __init__(self) -> None:
        self._begun = 0.0

    def __call__(self, looks: int) -> bool:
        if looks == 0:
            self._begun = monotonic()
        sleep(BETWEEN_LOOKS)
        return monotonic() - self._begun < PATIENCE


def _refuse_an_unsound_sqlite() -> None:
    version = apsw.sqlite_lib_version()
    if tuple(map(int, version.split("."))) < OLDEST_SOUND_SQLITE:
        raise StoreTrouble(f"SQLite {version} can damage databases. Install apsw from its wheel, which brings its own.")


def _refuse_a_damaged_one(connection: Connection, path: Path) -> None:
    """A large one would keep everybody waiting: `mergeyard db check` reads that."""
    if path.stat().st_size <= LARGEST_CHECKED_AT_START:
        ((finding,),) = connection.execute(SQL["quick_check"]).fetchall()
        if finding != "ok":
            raise apsw.CorruptError(" ".join(finding.split()))


def _make_for_us_alone(path: Path) -> None:
    """The file is there before SQLite opens it; its log and index take over its permissions.

    An existing file is not opened here: closing it would drop the locks that this process holds on it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreTrouble(f"{path} cannot be made ({error}). Check who owns its folder.") from error
