"""Checks before and after database commands: integrity, versions, whether a server runs, and row counts."""

import errno
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from rich.console import Console

from mergeyard.cli.local_store import DataDirLocked, lock_data_dir
from mergeyard.cli.output import build_table, print_output, sanitize
from mergeyard.ports.archive import SCHEMA_VERSION, TABLES, Archive, ArchiveReader, Row, Table


class DatabaseCommandError(Exception):
    """A database command cannot run; nothing was changed."""


OS_ERROR_ADVICE = {
    errno.ENOENT: "{path} does not exist: check the path, and that its folder exists",
    errno.ENOTDIR: "{path} does not exist: check the path, and that its folder exists",
    errno.EISDIR: "{path} is a folder: choose a file in it",
    errno.EACCES: "{path} is not accessible: check the owner and mode of it and its folder",
    errno.EPERM: "{path} is not accessible: check the owner and mode of it and its folder",
    errno.EROFS: "{path} is on a read-only file system: choose a file elsewhere",
    errno.ENOSPC: "The disk of {path} is full: free some space, or choose a file elsewhere",
    errno.EDQUOT: "Your disk quota for {path} is used up: free some space, or choose a file elsewhere",
    errno.EFBIG: "{path} would exceed the maximum file size: choose a file elsewhere",
}


@contextmanager
def explain_os_errors(path: Path) -> Generator[None]:
    """Explains OSErrors in the block as problems of this file, except lost connections."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        advice = OS_ERROR_ADVICE.get(error.errno or 0, "{path} cannot be used: check its disk and the system's log")
        raise DatabaseCommandError(f"{advice.format(path=path)} ({error.strerror}).") from error


def require_current_schema(schema_version: int, location: str) -> None:
    if schema_version == 0:
        raise DatabaseCommandError(
            f"{location} contains no Mergeyard database. Choose another one with --data-dir or --database-url, "
            "or create it with `mergeyard db migrate`."
        )
    if schema_version < SCHEMA_VERSION:
        raise DatabaseCommandError(
            f"{location} has the older schema version {schema_version}, not {SCHEMA_VERSION}. "
            "Run `mergeyard db migrate` first."
        )
    if schema_version > SCHEMA_VERSION:
        raise DatabaseCommandError(
            f"{location} was written by a newer version of Mergeyard (its schema version is {schema_version}, "
            f"this version knows {SCHEMA_VERSION}). Use that version."
        )


@contextmanager
def exclude_server(folder: Path) -> Generator[None]:
    with ExitStack() as locks:
        try:
            with explain_os_errors(folder):
                locks.enter_context(lock_data_dir(folder))
        except DataDirLocked:
            raise DatabaseCommandError(
                f"A server is using {folder}: stop it first, and start it again afterwards."
            ) from None
        yield


def refuse_existing_file(path: Path) -> None:
    if path.exists():
        raise DatabaseCommandError(f"{path} already exists: choose another file, or overwrite it with --force.")


@contextmanager
def write_atomically(path: Path) -> Generator[Path]:
    """Yields an empty temporary file in the same folder. It is deleted if an error occurs."""
    with explain_os_errors(path):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(descriptor)
        temporary = Path(name)
        try:
            yield temporary
            _flush(temporary)
            temporary.replace(path)
            _flush(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_encode = msgspec.json.Encoder().encode


class TableCount(Struct, frozen=True):
    """Row count and checksum of one table."""

    table: str
    rows: int
    checksum: str


class TableCounter:
    def __init__(self, table: Table) -> None:
        self.table = table
        self._rows = 0
        self._digest = sha256()

    def add(self, line: bytes) -> None:
        self._rows += 1
        self._digest.update(line)

    @property
    def count(self) -> TableCount:
        return TableCount(self.table.name, self._rows, self._digest.hexdigest())


def encode_row(row: Row) -> bytes:
    """The canonical encoding of a row: compact JSON, bytes in base64, one line."""
    return _encode(row) + b"\n"


async def count_tables(reading: ArchiveReader) -> tuple[TableCount, ...]:
    counters = [TableCounter(table) for table in TABLES]
    for counter in counters:
        async for row in reading.rows(counter.table):
            counter.add(encode_row(row))
    return tuple(counter.count for counter in counters)


class DatabaseReport(Struct, frozen=True, kw_only=True, rename="camel"):
    database: str
    schema_version: int
    tables: Sequence[TableCount]
    problems: Sequence[str]
    """One sentence per problem."""


async def check_database(archive: Archive) -> DatabaseReport:
    schema_version = await archive.schema_version()
    require_current_schema(schema_version, archive.location)
    async with archive.open_reader() as reading:
        problems = [*await reading.find_problems(), *await _find_queue_problems(reading)]
        return DatabaseReport(
            database=archive.location,
            schema_version=schema_version,
            tables=await count_tables(reading),
            problems=problems,
        )


async def _find_queue_problems(reading: ArchiveReader) -> Sequence[str]:
    from mergeyard.service.persistence import decode_queue

    problems: list[str] = []
    for queue in await reading.queues():
        loaded = await reading.load(queue.id)
        try:
            decode_queue(loaded)
        except Exception as error:  # Any error here would keep the service from starting.
            problems.append(f"The queue of {queue.key} cannot be loaded: {type(error).__name__}, {error}.")
    return problems


CHECKSUM_DIGITS = 16
"""Enough to compare by eye."""


def show_counts(counts: Sequence[TableCount]) -> None:
    table = build_table("table", "rows", "checksum")
    table.columns[1].justify = "right"
    for count in counts:
        table.add_row(count.table, f"{count.rows:,}", count.checksum[:CHECKSUM_DIGITS])
    print_output(table)


def show_report(report: DatabaseReport) -> None:
    console = Console(soft_wrap=True, markup=False, highlight=False)
    console.print(f"{report.database}: schema version {report.schema_version}")
    show_counts(report.tables)
    for problem in report.problems:
        console.print(sanitize(problem))
    if report.problems:
        console.print("Problems found: keep a copy of the database, then restore a backup.")
    else:
        console.print("No problems found: references are consistent, and every queue can be loaded.")
