"""Connections to PostgreSQL: pool, named queries, migrations, and the translation of errors."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from importlib import resources
from types import MappingProxyType
from typing import Protocol, cast
from urllib.parse import parse_qs, urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
from asyncpg import exceptions as e  # pyright: ignore[reportMissingTypeStubs]
from msgspec import Struct

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


connect = cast(Callable[..., Awaitable[Connection]], asyncpg.connect)
create_pool = cast(Callable[..., Awaitable[Pool]], asyncpg.create_pool)


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


async def open_connection(url: str, statement_timeout_s: float | None = STATEMENT_TIMEOUT_S) -> Connection:
    """Migrations and archives use no timeout for statements, because they can take long."""
    return await connect(url, timeout=CONNECT_TIMEOUT_S, command_timeout=statement_timeout_s, server_settings=SETTINGS)


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


PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
"""Two colons are a cast, not a parameter."""


def decode_row(row: Row) -> Row:
    return tuple(decode_text(cell) if isinstance(cell, str) else cell for cell in row)


class Query(Struct, frozen=True):
    text: str
    names: tuple[str, ...]

    def bind(self, values: Values) -> list[Value]:
        return [encode_value(values[name]) for name in self.names]


def encode_value(value: Value) -> Value:
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, list | tuple):
        return [encode_value(part) for part in value]
    return value


def number_parameters(text: str) -> Query:
    names = tuple(dict.fromkeys(PARAMETER.findall(text)))
    return Query(PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", text), names)


PACKAGE_FOLDER = resources.files("mergeyard.adapters.store_postgres")
SQL = MappingProxyType({name: number_parameters(text) for name, text in read_queries(PACKAGE_FOLDER / "queries")})
MIGRATIONS = tuple(read_migrations(PACKAGE_FOLDER / "migrations"))
MIN_SERVER_VERSION = 14
"""PostgreSQL does not maintain older versions."""


async def fetch_rows(connection: Connection, query: str, /, **values: Value) -> list[Row]:
    statement = SQL[query]
    return list(map(decode_row, await connection.fetch(statement.text, *statement.bind(values))))


async def migrate(connection: Connection, location: str) -> None:
    """Applies all migrations or none. A replica that starts at the same time waits, and then finds none to apply."""
    ((version, encoding),) = await fetch_rows(connection, "server")
    refuse_unsupported_server(version, encoding, location)
    async with connection.transaction():
        await fetch_rows(connection, "lock_migrations")
        await fetch_rows(connection, "create_migrations_table")
        current = await read_schema_version(connection)
        refuse_newer_schema(current, MIGRATIONS[-1].number, location)
        for migration in MIGRATIONS[current:]:
            await apply_migration(connection, migration)


async def read_schema_version(connection: Connection) -> int:
    """The schema version: the number of the last applied migration, 0 if there is none."""
    ((number,),) = await fetch_rows(connection, "schema_version")
    return number


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
