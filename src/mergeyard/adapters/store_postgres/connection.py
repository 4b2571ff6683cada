"""Connections to PostgreSQL: pool, named queries, migrations, and the translation of errors."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from importlib import resources
from types import MappingProxyType
from typing import Any, Protocol, cast
from urllib.parse import parse_qs, urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
from asyncpg import exceptions as e  # pyright: ignore[reportMissingTypeStubs]
from msgspec import Struct

from mergeyard.ports.store import StoreUnavailable

Value = None | int | str | bytes | Sequence[Any]
Row = tuple[Any, ...]
NotificationCallback = Callable[["Connection", int, str, str], None]
"""Called with connection, process id of the sender, channel and payload."""


class Connection(Protocol):
    async def fetch(self, query: str, *args: Value, timeout: float | None = None) -> list[Row]: ...

    async def execute(self, query: str, *args: Value, timeout: float | None = None) -> str: ...

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]: ...

    async def add_listener(self, channel: str, callback: NotificationCallback) -> None: ...

    def add_termination_listener(self, callback: Callable[["Connection"], None]) -> None: ...

    async def close(self, *, timeout: float | None = None) -> None: ...

    def terminate(self) -> None: ...


class Pool(Protocol):
    def acquire(self, *, timeout: float | None = None) -> AbstractAsyncContextManager[Connection]: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


class Connect(Protocol):
    def __call__(
        self,
        dsn: str,
        *,
        timeout: float,
        command_timeout: float | None = None,
        server_settings: Mapping[str, str],
    ) -> Awaitable[Connection]: ...


class MakePool(Protocol):
    def __call__(
        self,
        dsn: str,
        *,
        min_size: int,
        max_size: int,
        timeout: float,
        command_timeout: float,
        server_settings: Mapping[str, str],
        reset: Callable[[Connection], Awaitable[None]],
    ) -> Awaitable[Pool]: ...


connect = cast(Connect, asyncpg.connect)
create_pool = cast(MakePool, asyncpg.create_pool)


POOL_SIZE = 10
"""More would only wait for each other on the server: a transaction takes a millisecond or two."""
CONNECT_TIMEOUT_S = 5.0
STATEMENT_TIMEOUT_S = 10.0

SETTINGS = {
    "application_name": "mergeyard",
    # Whatever the server's default is: a commit returns only when it is durable.
    "synchronous_commit": "on",
    # A process that is suspended in the middle of a commit would keep its queue locked for all others. Milliseconds.
    "idle_in_transaction_session_timeout": "5000",
    # The best plan does not depend on array lengths; by default PostgreSQL would plan every decision again.
    "plan_cache_mode": "force_generic_plan",
}


async def open_pool(url: str) -> Pool:
    """Connections are opened on demand, and lost ones are replaced on demand."""
    return await create_pool(
        url,
        min_size=0,
        max_size=POOL_SIZE,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=STATEMENT_TIMEOUT_S,
        server_settings=SETTINGS,
        reset=_skip_reset,
    )


async def open_connection(url: str) -> Connection:
    return await connect(url, timeout=CONNECT_TIMEOUT_S, command_timeout=STATEMENT_TIMEOUT_S, server_settings=SETTINGS)


async def open_connection_without_timeout(url: str) -> Connection:
    """Without a timeout for statements: migrations and archives can take long."""
    return await connect(url, timeout=CONNECT_TIMEOUT_S, server_settings=SETTINGS)


async def _skip_reset(_: Connection) -> None:
    """No query changes a connection beyond its transaction, and a reset would cost a round trip."""


SCHEMES = {"postgresql", "postgres"}
HOST_PATTERN = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(:\d+)?")
MALFORMED_URL = (
    "The URL of the database is malformed. Write postgresql://user:password@host:port/database, "
    "and in user and password %40 for @, %2F for /, %3A for :, %3F for ? and %23 for #."
)


def describe_location(url: str) -> str:
    """Refuses a URL with a misplaced `@` or `#`: part of the password could be taken for the host and be shown."""
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise StoreUnavailable(MALFORMED_URL) from None
    login, _, hosts = parts.netloc.rpartition("@")
    misplaced = "@" in login + parts.path + parts.query or parts.fragment
    if parts.scheme not in SCHEMES or misplaced or not _are_hosts(hosts) or not _are_ports(query.get("port", [])):
        raise StoreUnavailable(MALFORMED_URL)
    where = hosts or query.get("host", ["the default address"])[-1]
    return f"The database {parts.path.removeprefix('/')!r} at {where}"


def _are_hosts(hosts: str) -> bool:
    return all(HOST_PATTERN.fullmatch(host) for host in hosts.split(","))


def _are_ports(ports: list[str]) -> bool:
    return all(port.isdecimal() for listed in ports for port in listed.split(","))


ERROR_MESSAGES: dict[type[Exception], str] = {
    e.InvalidAuthorizationSpecificationError: "{location} refuses the login. Check user and password",
    e.InvalidCatalogNameError: "{location} does not exist. Create it, or name another one",
    e.InsufficientPrivilegeError: "{location} does not allow creating tables. Make Mergeyard's user its owner",
    e.UndefinedObjectError: "{location} does not know a setting in the URL. Remove it from the URL",
    e.CantChangeRuntimeParamError: "{location} does not allow changing a setting in the URL. Remove it from the URL",
    e.ReadOnlySQLTransactionError: "{location} is a read-only replica. Name the primary server",
    e.TooManyConnectionsError: "{location} has no free connection. Raise its max_connections, or run fewer replicas",
    e.ObjectNotInPrerequisiteStateError: "{location} accepts no connections. Allow them again; a restart is not needed",
    e.DiskFullError: "The disk of the database is full ({location}). Free some space; a restart is not needed",
    e.InsufficientResourcesError: "{location} lacks memory or another resource. Give its server more",
    e.CannotConnectNowError: "{location} is starting or stopping. Wait until it is up; a restart is not needed",
    e.QueryCanceledError: "{location} took too long. Look for what keeps its server busy",
    e.OperatorInterventionError: "{location} was stopped. Start it again; Mergeyard needs no restart",
    e.IdleInTransactionSessionTimeoutError: "{location} ended an idle transaction. Check what keeps this process busy",
    e.PostgresConnectionError: "The connection was lost ({location}). Check that its server is up and can be reached",
    e.PostgresSystemError: "The disk of the database cannot be read or written ({location}). Check disk and server log",
    e.DataCorruptedError: "{location} is damaged. Stop Mergeyard and restore a backup",
    e.IndexCorruptedError: "{location} is damaged. Stop Mergeyard and restore a backup",
    TimeoutError: "{location} does not respond. Check that its server is up and not overloaded",
    OSError: "{location} cannot be reached. Check host and port, and that its server is up",
    e.ClientConfigurationError: "{location} cannot be opened with this URL. Check the URL of the database",
    e.InternalClientError: "The connection was lost ({location}). Check that its server is up and can be reached",
    e.InterfaceError: "The connection was lost ({location}). Check that its server is up and can be reached",
}
"""The first match counts. Any other error of PostgreSQL is a bug of Mergeyard and is not translated."""

SECRET_ERRORS = (e.ClientConfigurationError,)
"""Their text can contain part of the URL, so it is not shown."""


@contextmanager
def translate_errors(location: str) -> Generator[None]:
    try:
        yield
    except Exception as error:
        if (translated := to_store_error(error, location)) is None:
            raise
        raise translated from None if isinstance(error, SECRET_ERRORS) else error


def to_store_error(error: Exception, location: str) -> StoreUnavailable | None:
    """None for an error that does not mean that the database is unavailable."""
    template = next((template for kind, template in ERROR_MESSAGES.items() if isinstance(error, kind)), None)
    if template is None or _is_invalid_argument(error):
        return None
    detail = "" if isinstance(error, SECRET_ERRORS) else " ".join(str(error).split())
    message = template.format(location=location)
    return StoreUnavailable(f"{message} ({detail})." if detail else f"{message}.")


def _is_invalid_argument(error: Exception) -> bool:
    """asyncpg raises it for an argument that it cannot encode: a bug of Mergeyard, not a lost connection."""
    return (
        isinstance(error, e.InterfaceError) and isinstance(error, ValueError) and not isinstance(error, SECRET_ERRORS)
    )


def not_open_error(location: str) -> StoreUnavailable:
    return StoreUnavailable(f"{location} is not open. Open the store before it is used, and close it last.")


class ConnectionPool:
    def __init__(self, pool: Pool, location: str) -> None:
        self.location = location
        self._pool = pool

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[Connection]:
        with translate_errors(self.location):
            async with self._pool.acquire(timeout=STATEMENT_TIMEOUT_S) as connection:
                yield connection

    @asynccontextmanager
    async def acquire_snapshot(self) -> AsyncGenerator[Connection]:
        """All reads on this connection see one snapshot."""
        async with (
            self.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection

    async def close(self) -> None:
        """Waits for the server to close the connections, unless it does not respond."""
        with suppress(StoreUnavailable), translate_errors(self.location):
            async with asyncio.timeout(STATEMENT_TIMEOUT_S):
                await self._pool.close()


NUL, ESCAPE = "\0", "\1"
ESCAPED_NUL, ESCAPED_ESCAPE = "\1\1", "\1\2"


def encode_text(text: str) -> str:
    if text.isprintable():
        return text
    return text.replace(ESCAPE, ESCAPED_ESCAPE).replace(NUL, ESCAPED_NUL)


def decode_text(text: str) -> str:
    if text.isprintable():
        return text
    return text.replace(ESCAPED_NUL, NUL).replace(ESCAPED_ESCAPE, ESCAPE)


PACKAGE_FOLDER = resources.files("mergeyard.adapters.store_postgres")
NAME_PREFIX = "-- name: "
PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
"""Two colons are a cast, not a parameter."""


class Query(Struct, frozen=True):
    text: str
    names: tuple[str, ...]

    def bind(self, values: Mapping[str, Value]) -> list[Value]:
        return [encode_value(values[name]) for name in self.names]


def encode_value(value: Value) -> Value:
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, list | tuple):
        return [encode_value(part) for part in value]
    return value


def read_sql_files(folder: str) -> Iterator[tuple[str, str]]:
    """Stem and text of every `.sql` file of a folder, sorted by name. A relative folder is one of this package."""
    files = sorted((PACKAGE_FOLDER / folder).iterdir(), key=lambda file: file.name)
    return ((file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in files if file.name.endswith(".sql"))


def _parse_queries(text: str) -> Iterator[tuple[str, Query]]:
    for part in text.split(NAME_PREFIX)[1:]:
        name, _, rest = part.partition("\n")
        yield (
            name,
            number_parameters("\n".join(line for line in rest.splitlines() if line and not line.startswith("--"))),
        )


def number_parameters(text: str) -> Query:
    names = tuple(dict.fromkeys(PARAMETER.findall(text)))
    return Query(PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", text), names)


SQL = MappingProxyType(dict(query for _, text in read_sql_files("queries") for query in _parse_queries(text)))


async def fetch_rows(connection: Connection, query: str, /, **values: Value) -> list[Row]:
    statement = SQL[query]
    return await connection.fetch(statement.text, *statement.bind(values))


async def fetch_row(connection: Connection, query: str, /, **values: Value) -> Row | None:
    found = await fetch_rows(connection, query, **values)
    return found[0] if found else None


async def fetch_value(connection: Connection, query: str, /, **values: Value) -> Any:
    """The first column of the first row; None when there is no row."""
    found = await fetch_rows(connection, query, **values)
    return found[0][0] if found else None


async def fetch_bodies(connection: Connection, query: str, /, **values: Value) -> tuple[bytes, ...]:
    return tuple(body for (body,) in await fetch_rows(connection, query, **values))


MIN_SERVER_VERSION = 14
"""PostgreSQL does not maintain older versions."""


class Migration(Struct, frozen=True):
    number: int
    name: str
    text: str


def read_migrations(folder: str) -> Iterator[Migration]:
    for stem, text in read_sql_files(folder):
        number, _, name = stem.partition("_")
        yield Migration(int(number), name, text)


MIGRATIONS = tuple(read_migrations("migrations"))


async def migrate(connection: Connection, location: str) -> None:
    """Applies all migrations or none. A replica that starts at the same time waits, and then finds none to apply."""
    version, encoding = await fetch_row(connection, "server") or (0, "")
    refuse_unsupported_server(version, encoding, location)
    async with connection.transaction():
        await fetch_rows(connection, "lock_migrations")
        await fetch_rows(connection, "create_migrations_table")
        current = await read_schema_version(connection)
        _refuse_newer_schema(current, location)
        for migration in MIGRATIONS[current:]:
            await apply_migration(connection, migration)


async def read_schema_version(connection: Connection) -> int:
    """The schema version: the number of the last applied migration, 0 if there is none."""
    return await fetch_value(connection, "schema_version")


async def apply_migration(connection: Connection, migration: Migration) -> None:
    await connection.execute(migration.text)
    await fetch_rows(connection, "record_migration", number=migration.number, name=migration.name)


def refuse_unsupported_server(version: int, encoding: str, location: str) -> None:
    if version < MIN_SERVER_VERSION:
        raise StoreUnavailable(
            f"{location} runs on PostgreSQL {version}. Use PostgreSQL {MIN_SERVER_VERSION} or newer."
        )
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"{location} cannot store all characters: its encoding is {encoding}. "
            "Create a database with ENCODING 'UTF8' TEMPLATE template0."
        )


def _refuse_newer_schema(current: int, location: str) -> None:
    supported = MIGRATIONS[-1].number
    if current > supported:
        raise StoreUnavailable(
            f"{location} was written by a newer version of Mergeyard (its schema version is {current}, this version "
            f"supports {supported}). Start that version again, or restore a backup from before it."
        )
